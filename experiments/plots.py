"""Figures of the experiments, if matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .tables import FloatArray


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves by name, and horizontal lines by name."""

    title: str
    horizontal: str
    vertical: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    levels: Mapping[str, float] = field(default_factory=dict)
    scales: tuple[str, str] = ("linear", "linear")

    def draw_on(self, axis: Any) -> None:
        for mark, (name, (x, y)) in zip("os^vDPX*<>" * 3, self.curves.items(), strict=False):
            axis.plot(x, y, marker=mark, markersize=4, linewidth=1.2, label=name)
        for shade, (name, level) in enumerate(self.levels.items()):
            axis.axhline(level, color=str(0.75 - 0.2 * (shade % 4)), linewidth=1.0, linestyle="--", label=name)
        axis.set(xlabel=self.horizontal, ylabel=self.vertical, xscale=self.scales[0], yscale=self.scales[1])
        axis.set_title(self.title, fontsize=9)
        axis.legend(fontsize=6.5)


def draw(path: Path, panels: Sequence[Panel], columns: int | None = None) -> list[str]:
    """Draw curves; return the line of Markdown that shows them, or how to get them."""

    def fill(axes: Sequence[Any]) -> None:
        for axis, panel in zip(axes, panels, strict=True):
            panel.draw_on(axis)

    drawn = save_figure(path, len(panels), fill, columns)
    return image_block(drawn, path.name, path.stem.replace("_", " "))


def save_figure(path: Path, panels: int, fill: Callable[[Sequence[Any]], None], columns: int | None = None) -> bool:
    """Fill panels, in one row unless `columns` says otherwise, and save them; say whether matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = columns or panels
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.6 * columns, (3.8 if rows == 1 else 3.4) * rows), layout="constrained")
    fill([figure.add_subplot(rows, columns, index + 1) for index in range(panels)])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return True


def image_block(drawn: bool, name: str, text: str) -> list[str]:
    """Return the line that shows a picture, or how to get one."""
    return [f"![{text}]({name})" if drawn else "No picture: `pip install 'consilience[plot]'` draws one."]


def fitted_slope(sizes: Sequence[int], errors: Sequence[float] | FloatArray) -> float:
    """Return the power of n with which errors fall: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
