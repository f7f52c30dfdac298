"""Write the tutorials of docs/tutorials/ as notebooks into examples/tutorials/, without output.

Run without arguments from anywhere. The pages are the source; a test compares the notebooks with them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "tutorials"
NOTEBOOKS = ROOT / "examples" / "tutorials"


def notebook(page: Path) -> str:
    """Return a page as the text of a notebook: code cells as they are, everything between them as Markdown."""
    text = page.read_text(encoding="utf-8").split("---\n", 2)[2]
    # Links lead from the notebook to the pages.
    text = re.sub(r"\]\(\.\./(?!\.\./)", "](../../docs/", text)
    cells = []
    for place, part in enumerate(re.split(r"^```\{code-cell\}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)):
        source = part.strip("\n")
        if not source:
            continue
        cell = {"cell_type": "code" if place % 2 else "markdown", "id": f"cell-{len(cells)}", "metadata": {}}
        if place % 2:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def tutorials() -> list[Path]:
    """Return the pages that are notebooks."""
    return sorted(page for page in PAGES.glob("*.md") if "{code-cell}" in page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in tutorials():
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook(page), encoding="utf-8")
