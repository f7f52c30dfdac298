"""The table of sources: what it shows, and what it turns into."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import MissingPackageError


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    votes = cs.simulate(
        cs.Classes(2), rng.integers(2, size=300), [2.0, 1.5, 1.0], rng, sources=["ann", "<bob>", "cleo"]
    )
    return cs.LabelModel(cs.Classes(2)).fit(votes).sources_


def test_it_prints_one_aligned_line_per_source(table):
    *lines, note = repr(table).splitlines()
    assert len(lines) == 4
    assert note == "effective number of sources: 2.6 of 3; 0% of the labels differ from the plain vote"
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("ann")
    assert "100%" in lines[1]


def test_names_are_escaped_in_html(table):
    assert "&lt;bob&gt;" in table._repr_html_()
    assert "<bob>" not in table._repr_html_()


@pytest.mark.parametrize("target", ["to_pandas", "to_polars", "to_arrow"])
def test_it_becomes_a_frame_of_any_kind(table, target):
    frame = getattr(table, target)()
    assert frame.shape == (3, 7)
    assert list(frame["source"] if target != "to_arrow" else frame["source"].to_pylist()) == ["ann", "<bob>", "cleo"]


def test_a_missing_package_is_named_with_its_install_line(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="pip install polars"):
        table.to_polars()
