"""Models on disk: read back unchanged, without executing code, and refused when they are something else."""

import io
import json
import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from refusals import refused
from simulated import SPACES, gap, simulated

import consilience as cs
from consilience import storage
from consilience.exceptions import FileFormatError, ModelFormatError


def spread(left, right):
    return np.abs(left - right).sum(axis=-1)


def as_points(batch):
    return np.asarray(batch, dtype=float).reshape(len(batch), -1)


@pytest.fixture(autouse=True)
def _registered():
    """Register the distances of this file."""
    cs.label_types.register_distance("test gap", gap)
    cs.label_types.register_distance("test spread", spread)
    cs.label_types.register_distance("test points", as_points)
    cs.label_types.register_distance("test differs", differs)


def round_trip(model: cs.LabelModel, path: Path) -> cs.LabelModel:
    model.save(path)
    return cs.LabelModel.load(path)


def fitted(kind: str = "three classes", **settings) -> tuple[cs.LabelModel, cs.Votes]:
    data = simulated(kind)
    return cs.LabelModel(data.space, **settings).fit(data.votes), data.votes


@pytest.mark.parametrize("kind", SPACES)
def test_model_of_every_space_is_the_same_after_a_round_trip(kind, tmp_path):
    model, votes = fitted(kind, dependencies=[("ann", "bob")])
    back = round_trip(model, tmp_path / "model without suffix")
    assert np.array_equal(back.predict(votes), model.predict(votes))
    assert np.array_equal(back.confidence(votes), model.confidence(votes))
    if model.space.n_labels:
        assert np.array_equal(back.predict_proba(votes), model.predict_proba(votes))
    assert back.sources_.columns == model.sources_.columns
    assert repr(back.sources_) == repr(model.sources_)
    assert back.diagnostics_ == model.diagnostics_
    assert np.array_equal(back.source_model_.correlation, model.source_model_.correlation)
    for name in ("sources", "n_items", "method", "reason", "dependencies", "names_given"):
        assert getattr(back.source_model_, name) == getattr(model.source_model_, name)


def test_settings_are_the_same_after_a_round_trip(tmp_path):
    settings = {
        "method": "triplets",
        "dependencies": [("ann", "bob"), (2, 3)],
        "prior": [0.2, 0.3, 0.5],
        "decode": "bayes",
        "random_state": 7,
    }
    model, votes = fitted(**settings)
    back = round_trip(model, tmp_path / "model.npz")
    assert {name: value for name, value in back.get_params().items() if name != "space"} == settings
    assert np.array_equal(back.fit(votes).weight_, model.weight_)
    model, votes = fitted(dependencies={("ann", "bob")})  # a set
    assert round_trip(model, tmp_path / "model.npz").fit(votes).source_model_.dependencies == (("ann", "bob"),)


def test_estimator_of_ones_own_is_not_stored_but_what_it_learned_is(tmp_path):
    class Equal:
        def estimate(self, moments, space, dependencies):
            return np.full(len(moments.sources), 2.0)

    model, votes = fitted(method=Equal())
    back = round_trip(model, tmp_path / "model.npz")
    assert (back.method, back.source_model_.method) == ("auto", "Equal")
    assert np.array_equal(back.predict_proba(votes), model.predict_proba(votes))


@pytest.mark.parametrize(
    "space",
    [
        cs.Classes(["ham", "spam"]),
        cs.Classes([0.5, 2.5]),
        cs.Classes([False, True]),
        cs.FiniteMetric([("cat", "animal"), ("animal", "dog")]),
        cs.FiniteMetric(nx.grid_2d_graph(2, 2)),
    ],
    ids=repr,
)
def test_names_of_any_kind_survive(space, tmp_path):
    codes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    names = space.as_labels(codes.reshape(-1), np.dtype(object)).reshape(codes.shape)
    back = round_trip(cs.LabelModel(space, method="majority").fit(names), tmp_path / "model.npz")
    assert back.space.names == space.names
    assert [type(name) for name in back.space.names] == [type(name) for name in space.names]


def differs(left, right):
    return float(left != right)


@pytest.mark.parametrize(
    ("distance", "settings"),
    [
        (spread, {"candidates": np.array([[0.0, 0.0], [1.0, 1.0]])}),
        (gap, {"candidates": np.array([0.0, 1.0])}),
        (gap, {}),
        (gap, {"embed": as_points}),
        (differs, {"candidates": ["gray", "grey", "black"]}),
    ],
    ids=["rows", "numbers", "none", "embedding", "text"],
)
def test_candidates_and_embeddings_survive(distance, settings, tmp_path):
    codes = simulated("two classes", coverage=1.0).votes.labels.astype(float)
    votes = {gap: codes, spread: np.stack([codes, codes], axis=2), differs: np.where(codes, "grey", "black")}[distance]
    model = cs.LabelModel(cs.Metric(distance, vectorized=distance is not differs, **settings)).fit(votes)
    back = round_trip(model, tmp_path / "model.npz")
    assert np.array_equal(back.predict(votes), model.predict(votes))
    assert back.space.embedding is settings.get("embed")


def test_unregistered_distance_is_refused_on_save_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.npz"
    fitted()[0].save(path)
    before = path.read_bytes()
    votes = simulated("metric").votes
    model = cs.LabelModel(cs.Metric(lambda left, right: abs(left - right))).fit(votes)
    with refused(ModelFormatError, "<lambda>", "no registered name", "code is never saved", "register_distance"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with refused(ModelFormatError, "'test gap'", "another name"):
        cs.label_types.register_distance("test gap", spread)


def test_distance_that_is_no_longer_registered_is_refused_on_load_unless_the_space_is_passed(tmp_path, monkeypatch):
    model, votes = fitted("metric")
    model.save(tmp_path / "model.npz")
    monkeypatch.setattr("consilience.label_types.registry._DISTANCES", {})
    with refused(ModelFormatError, "'test gap'", "label_types.register_distance('test gap', function)"):
        cs.LabelModel.load(tmp_path / "model.npz")
    back = cs.LabelModel.load(tmp_path / "model.npz", space=model.space)
    assert np.array_equal(back.predict(votes), model.predict(votes))


@dataclass(frozen=True)
class Hours(cs.LabelSpace):
    """Hours of the day, on a circle."""

    def distance(self, left, right):
        apart = np.abs(left - right) % 24.0
        return np.minimum(apart, 24.0 - apart)

    def random(self, n, rng):
        return rng.uniform(0.0, 24.0, size=n)


def test_space_of_ones_own_is_passed_to_load(tmp_path):
    rng = np.random.default_rng(0)
    votes = (rng.uniform(0, 24, size=(200, 1)) + rng.normal(size=(200, 4)) * [0.5, 1.0, 2.0, 4.0]) % 24
    model = cs.LabelModel(Hours()).fit(votes)
    model.save(tmp_path / "model.npz")
    back = cs.LabelModel.load(tmp_path / "model.npz", space=Hours())
    assert np.array_equal(back.predict(votes), model.predict(votes))
    with refused(ModelFormatError, "'Hours'", "not part of consilience", "space=Hours(...)"):
        cs.LabelModel.load(tmp_path / "model.npz")
    fitted()[0].save(tmp_path / "other.npz")
    for space, parts in ((Hours(), ["'Classes'", "'Hours'"]), (cs.Classes(4), ["3 labels", "4"])):
        with refused(ModelFormatError, *parts):
            cs.LabelModel.load(tmp_path / "other.npz", space=space)


def test_file_holds_arrays_and_json_and_no_pickle(tmp_path):
    fitted()[0].save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert json.loads(arrays["header.json"].tobytes())["format"] == storage.FORMAT
    assert all(array.dtype != object for array in arrays.values())


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("readme.txt", "hello")
    return file.getvalue()


NO_MODELS = {
    "text": b"weights: 1, 2, 3",
    "empty": b"",
    "pickle": pickle.dumps({"weight": 1}),
    "arrays": npz(weight=np.arange(3)),
    "objects": npz(**{"header.json": np.array([{"format": 1}], dtype=object)}),
    "words": npz(**{"header.json": np.frombuffer(b"{not json", dtype=np.uint8)}),
    "list": npz(**{"header.json": np.frombuffer(b"[1, 2]", dtype=np.uint8)}),
    "archive": archive(),
}


@pytest.mark.parametrize("name", [*NO_MODELS, "array.npy", "folder"])
def test_file_that_is_no_model_is_refused(name, tmp_path):
    path = tmp_path / name
    if name in NO_MODELS:
        path.write_bytes(NO_MODELS[name])
    elif name == "folder":
        path.mkdir()
    else:
        np.save(path, np.arange(3))
    with refused(ModelFormatError, str(path), "not a consilience model", "LabelModel.save"):
        cs.LabelModel.load(path)


def test_file_that_is_cut_short_lacks_a_part_or_has_another_format_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    fitted()[0].save(path)
    content = path.read_bytes()
    for share in (0.01, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(share * len(content))])
        with refused(ModelFormatError, "damaged"):
            cs.LabelModel.load(path)
    storage.write_document(path, {"space": "Classes", "space_arguments": {"names_or_k": 2}})
    with refused(ModelFormatError, "lacks", "damaged"):
        cs.LabelModel.load(path)
    monkeypatch.setattr(storage, "FORMAT", 99)
    fitted()[0].save(path)
    monkeypatch.undo()
    with refused(ModelFormatError, "format 99", f"reads {storage.FORMAT}", "Fit and save"):
        cs.LabelModel.load(path)


def test_files_and_folders_that_do_not_exist_are_refused(tmp_path):
    with refused(ModelFormatError, "no model at", "nowhere.npz", "Check the path"):
        cs.LabelModel.load(tmp_path / "nowhere.npz")
    with refused(FileFormatError, "no folder", "Create it first"):
        fitted()[0].save(tmp_path / "nowhere" / "model.npz")


def test_failing_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    fitted()[0].save(path)
    before = path.read_bytes()

    def full_disk(*arguments, **settings):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with refused(FileFormatError, "No space left", "Nothing was changed"):
        fitted()[0].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
