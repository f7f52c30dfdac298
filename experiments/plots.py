"""Pictures of the experiments, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .tables import FloatArray


def save_figure(path: Path, panels: int, draw: Callable[[Sequence[Any]], None]) -> bool:
    """Draw into a row of panels and save them; say whether matplotlib is there to do it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(4.6 * panels, 3.8), layout="constrained")
    draw(list(np.atleast_1d(figure.subplots(1, panels))))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return True


def image_block(drawn: bool, name: str, text: str) -> list[str]:
    """Return the line that shows a picture, or how to get one."""
    return [f"![{text}]({name})" if drawn else "No picture: `pip install 'consilience[plot]'` draws one."]


def fitted_slope(sizes: Sequence[int], errors: Sequence[float] | FloatArray) -> float:
    """Return the power of n with which errors fall: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
