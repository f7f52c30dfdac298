"""Notebooks, explanations with code and the gallery run, and the notebooks are those of the tutorials."""

import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.test_docs import PAGES, ROOT, imported_by
from tests.test_public_names import LABEL_TYPES

import make_notebooks

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

NOTEBOOKS = sorted(make_notebooks.NOTEBOOKS.glob("*.ipynb"))
WITH_CELLS = [
    page
    for page in PAGES
    if "```{code-cell}" in page.read_text(encoding="utf-8") and page not in make_notebooks.tutorials()
]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))

# What the votes cannot tell is part of several stories.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


@pytest.fixture
def picture() -> Iterator[None]:
    from matplotlib import pyplot

    yield
    drawn = pyplot.get_fignums()
    pyplot.close("all")
    assert drawn, "an example ends with a picture"


def cells(path: Path) -> list[str]:
    """Return the code cells of a notebook or of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return re.findall(r"^```\{code-cell\}\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.usefixtures("picture")
@pytest.mark.parametrize("path", [*NOTEBOOKS, *WITH_CELLS], ids=lambda path: path.name)
def test_cells_of_a_notebook_or_a_page_run_in_order(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # Classes of a page are pickled and compared by their module, so it has to be there.
    module = type(sys)("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for number, cell in enumerate(cells(path)):
        exec(compile(cell, f"{path.name}, cell {number}", "exec"), vars(module))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_runs_a_notebook_to_a_picture(path, tmp_path):
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in one for one in shown)


@pytest.mark.usefixtures("picture")
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_example_draws_with_public_names(path):
    assert imported_by(path) <= {"consilience", "numpy", "matplotlib", "matplotlib.patches"}
    runpy.run_path(str(path))


def test_every_label_type_has_an_example_in_the_gallery():
    titles = [path.read_text(encoding="utf-8").splitlines()[1] for path in GALLERY]
    assert sorted(title.partition(":")[0] for title in titles) == sorted(LABEL_TYPES)


def test_notebooks_are_those_that_the_tutorials_give():
    notebooks = {path.stem: path.read_text(encoding="utf-8") for path in NOTEBOOKS}
    made = {page.stem: make_notebooks.notebook(page) for page in make_notebooks.tutorials()}
    assert len(made) >= 8
    assert notebooks == made, "run python tools/make_notebooks.py"
