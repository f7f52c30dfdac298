"""Curves by the number of sources or items, with levels to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves by name, and horizontal lines by name."""

    title: str
    horizontal: str
    vertical: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    levels: Mapping[str, float] = field(default_factory=dict)
    scales: tuple[str, str] = ("linear", "linear")


def draw(path: Path, panels: Sequence[Panel], columns: int | None = None) -> list[str]:
    """Draw the panels; return the line of Markdown that shows the picture, or none where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    columns = columns or len(panels)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    for index, panel in enumerate(panels):
        axis = figure.add_subplot(rows, columns, index + 1)
        for mark, (name, (x, y)) in zip("os^vDPX*<>" * 3, panel.curves.items(), strict=False):
            axis.plot(x, y, marker=mark, markersize=4, linewidth=1.2, label=name)
        for shade, (name, level) in enumerate(panel.levels.items()):
            axis.axhline(level, color=str(0.75 - 0.2 * (shade % 4)), linewidth=1.0, linestyle="--", label=name)
        axis.set(xlabel=panel.horizontal, ylabel=panel.vertical, xscale=panel.scales[0], yscale=panel.scales[1])
        axis.set_title(panel.title, fontsize=9)
        axis.legend(fontsize=6.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return [f"![{path.stem.replace('_', ' ')}]({path.name})"]
