"""Configuration of the documentation site, which `make docs` builds from the root of the repository.

The source directory is the root, so links between pages, tables of results and CONTRIBUTING.md are the same on the site
and in the repository. Neither the build nor the pages use the network.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

import consilience
from consilience.cli import main

ROOT = Path(__file__).resolve().parents[1]
# Kernels of the notebooks take the package from where this build has it.
os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
# They talk to this machine only, so their warning about plain text is left out.
profile = Path(tempfile.mkdtemp()) / "profile_default"
profile.mkdir()
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")
os.environ["IPYTHONDIR"] = str(profile.parent)

project = "consilience"
author = "The consilience authors"
copyright = author
version = release = consilience.__version__
language = "en"

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "benchmarks/**.md",
    "experiments/**.md",
]
exclude_patterns = ["docs/_*", "docs/gallery/*.ipynb", "docs/gallery/*.py", "docs/gallery/searchindex*"]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # the first one is that of generated pages
default_role = "py:obj"  # single backticks in docstrings name objects
suppress_warnings = ["config.cache", "sphinx_gallery.config"]  # its settings hold functions; thumbnails by path

myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True  # a page may write files
nb_merge_streams = True
nb_output_stderr = "remove"  # progress bars, of which a page would keep a line for each time they were drawn

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = [str(ROOT / "docs" / "_templates")]

sphinx_gallery_conf = {
    "examples_dirs": ["examples/gallery"],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": ".py",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "min_reported_time": 10_000,
    "capture_repr": (),  # do not print axes and legends
    "write_computation_times": False,
}

html_title = "consilience"
html_theme = "pydata_sphinx_theme"
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"image_light": "_static/icon.svg", "image_dark": "_static/icon.svg", "text": "consilience"},
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "collapse_navigation": True,  # with the whole tree on each of its hundreds of pages, the build takes twice as long
}
html_math_renderer = "mathml"


class CommandHelp(Directive):
    """The `--help` of every command, as the terminal shows it."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        found: list[nodes.Node] = []
        for name in main.list_commands(click.Context(main)):
            shown = CliRunner().invoke(main, [name, "--help"], prog_name="consilience", terminal_width=100).output
            section = nodes.section(ids=[f"consilience-{name}"])
            section += nodes.title("", "", nodes.literal(text=f"consilience {name}"))
            section += nodes.literal_block(text=shown, language="text")
            found.append(section)
        return found


def show_formula(translator: Any, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    block = isinstance(node, nodes.math_block)
    mathml = latex2mathml.tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="formula">{mathml}</div>' if block else str(mathml))
    raise nodes.SkipNode


def show_value(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Show the beginning of a constant, in place of the docstring of tuples and lists."""
    if what == "data":
        one = getattr(value[0], "__name__", None)
        name = name.replace("consilience", "cs", 1)
        lines[:] = [".. code-block:: python", "", "   >>> import consilience as cs"]
        lines += [f"   >>> {name}[0].__name__", f"   {one!r}"] if one else [f"   >>> {name}[0]", f"   {value[0]!r}"]


def setup(app: Sphinx) -> None:
    """Add what this site has of its own."""
    app.connect("autodoc-process-docstring", show_value)
    app.add_directive("command-help", CommandHelp)
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
