"""The facade: votes in, labels with confidence out."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.estimation.passes import SAMPLE_ROWS, VotePasses, keep_sample
from consilience.estimation.pipeline import SourceEstimator, learn, take_moments
from consilience.estimation.protocol import Diagnostic, Posterior
from consilience.exceptions import (
    ConsilienceWarning,
    InvalidVotesError,
    NotFittedError,
    TransposedVotesError,
    UnsupportedError,
    did_you_mean,
)
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import InMemoryPartitions, Moments, VotePartitions
from consilience.prediction.audit import Audit, audit
from consilience.prediction.explain import Explanation, explain
from consilience.prediction.inference import DECODERS, Distribution, Inference, infer
from consilience.prediction.source_model import SourceModel
from consilience.prediction.suggest import Suggestion, suggest
from consilience.progress import working
from consilience.storage import read_model, write_model
from consilience.tables.display import SourceTable, findings_fragment
from consilience.tables.encoding import align_sources, read_gold
from consilience.votes import Votes, as_votes

#: Unnamed tables with at least this many columns, and more columns than rows, look transposed.
SUSPICIOUS_WIDTH = 30


#: Settings of snorkel's label model, and what to use instead.
SNORKEL = {
    "cardinality": "The label type says how many classes there are: LabelModel(Classes(2)).",
    "class_balance": "Pass prior=[...], one probability per class: LabelModel(Classes(2), prior=[0.7, 0.3]).",
    "L_train": "Pass the votes as they are: fit(votes).",
    "n_epochs": "Learning ends by itself. Leave it out.",
    "tie_break_policy": "Ties go to the most probable label; predict_proba(votes) shows how probable each is.",
}


class Configurable:
    """Settings by name, as scikit-learn has them: a constructor stores its arguments under their own names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self._settings()}

    @classmethod
    def _settings(cls) -> dict[str, inspect.Parameter]:
        """Return the parameters of the constructor by name."""
        return {name: one for name, one in inspect.signature(cls.__init__).parameters.items() if name != "self"}

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuse unknown settings."""
        _refuse_unknown(cls.__name__, settings, cls._settings())
        return super().__new__(cls)

    def __init_subclass__(cls) -> None:
        # help() and notebooks show the constructor, not __new__.
        cls.__signature__ = inspect.Signature(list(cls._settings().values()))  # type: ignore[attr-defined]

    def set_params(self, **params: Any) -> Self:
        """Change settings by name."""
        _refuse_unknown(type(self).__name__, params, self._settings())
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=True, allow_nan=True, string=True, categorical=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "source_model_")

    def __repr__(self) -> str:
        shown = []
        for name, parameter in self._settings().items():
            value = getattr(self, name)
            if parameter.kind is parameter.KEYWORD_ONLY and _same(value, parameter.default):
                continue
            shown.append(f"{name}={value!r}" if parameter.kind is parameter.KEYWORD_ONLY else f"{value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _refuse_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error for the first unknown setting, with a hint at the one that is meant."""
    for name in given:
        if name not in known:
            hint = SNORKEL.get(name) or f"{did_you_mean(name, known)} Settings: {', '.join(known)}.".strip()
            raise UnsupportedError(f"{where} has no setting {name!r}. {hint}")


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(_same(one, other) for one, other in zip(left, right, strict=True))
    return left is right or (isinstance(left, (str, int, float, type(None))) and left == right)


class LabelModel(Configurable):
    """Estimate how reliable each source is, and combine the votes on each item into one label.

    Parameters
    ----------
    space
        What a label is: ``Classes(2)``, ``FiniteMetric(graph)``, ``Metric(distance)``, ...
    method
        "auto" uses the trust engine; "majority" gives all sources the same weight; "isotropic", "triplets" and
        "quadratic" are the paper's methods; "em" assumes independent sources; "labelled" learns from `gold` alone; or
        an object that implements `SourceEstimator`.
    dependencies
        By default, the model looks for sources that share errors. If you name pairs of sources, these certainly share
        errors, and the model still looks for others. "none" assumes that all sources are independent given the truth.
        The methods "majority" and "em" assume it, too, and ignore pairs.
    prior
        "auto" learns how frequent the labels are; "uniform"; "gibbs" (the paper's joint law); or one probability per
        label.
    decode
        "map" returns the most probable label, or the label of least weighted cost for types without probabilities;
        "bayes" the label of least expected cost. "auto" is "bayes" for rankings, chains of tags and finite metric
        spaces (but not for the plain vote and prior="gibbs", which take the label nearest to the votes), else "map".
    random_state
        Seed of all random draws. The same seed gives identical results.

    Attributes
    ----------
    source_model_ : SourceModel
    sources_ : SourceTable
        One row per source, best first.
    weight_, standard_error_, expected_cost_, cost_standard_error_ : arrays of shape (n_sources,), in order of votes
    diagnostics_ : tuple of Diagnostic

    Examples
    --------
    >>> from consilience import Classes, LabelModel
    >>> votes = [["spam", "spam", "ham"], ["ham", "ham", "ham"], ["spam", None, "spam"]] * 20
    >>> model = LabelModel(Classes(["ham", "spam"])).fit(votes)
    >>> model.predict(votes)[:3].tolist()
    ['spam', 'ham', 'spam']
    """

    def __init__(
        self,
        space: LabelSpace = None,  # type: ignore[assignment]  # `fit` asks for it
        *,
        method: str | SourceEstimator = "auto",
        dependencies: Any = None,
        prior: Any = "auto",
        decode: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.space = space
        self.method = method
        self.dependencies = dependencies
        self.prior = prior
        self.decode = decode
        self.random_state = random_state

    # --- learning ---------------------------------------------------------------------------------

    def fit(self, votes: Any, gold: Any = None, **unknown: Any) -> Self:
        """Learn the qualities of the sources.

        Parameters
        ----------
        votes
            A `Votes`, an array, a pandas, polars or Arrow frame with one column per source, or a `VotePartitions`.
            NaN and None mean that a source abstains, and so does -1 in arrays of integers.
        gold
            Known labels: one per item, with NaN, None or -1 where unknown, or a pair ``(labels, known)``.
        """
        _refuse_unknown("fit", unknown, ("votes", "gold"))
        self._check_settings()
        with working("counting agreements"):
            partitions, names_given = self._partitions(votes, gold)
            moments, passes = take_moments(self.space, partitions, self._seed)
            model = learn(self.space, moments, passes, names_given=names_given, **self._options())
            self._learned(model, moments, passes.kept or keep_sample(None, passes.partitions, 0, self._seed))
        return self

    def partial_fit(self, votes: Any, gold: Any = None) -> Self:
        """Add votes to those seen before, and learn again from the sums and a kept sample of items."""
        self._check_settings()
        moments: Moments = getattr(self, "_moments", Moments.zero())
        if moments.sources:
            if not isinstance(votes, VotePartitions):  # both must have the same sources in the same order
                votes = align_sources(votes, self.space, moments.sources, self.source_model_.names_given)
        elif hasattr(self, "source_model_"):
            raise UnsupportedError(
                "This model was loaded from a file, which does not contain the sums that partial_fit adds to. "
                "Call fit(votes) with all votes."
            )
        partitions, names_given = self._partitions(votes, gold)
        added, passes = take_moments(self.space, partitions, self._seed, moments.law)
        total = moments + added
        kept = getattr(self, "_kept", None)
        if moments.sources and kept is None:  # learned from moments alone, so there are no old votes
            held = None
        else:
            kept = keep_sample(kept, passes.partitions, moments.n_items, self._seed)
            held = VotePasses(kept, total.n_items, self._seed, complete=kept.n_items == total.n_items)
        model = learn(self.space, total, held, names_given=names_given, **self._options())
        self._learned(model, total, kept)
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Learn from moments alone. Those of several parts of the votes add up."""
        self._check_settings()
        if not isinstance(moments, Moments):
            raise UnsupportedError(f"{type(moments).__name__} is not Moments. Pass Moments.of(votes, space).")
        if moments.law is not None and type(moments.law) is not type(self.space.law):
            raise UnsupportedError(
                f"These moments belong to another label type than {self.space!r}. Take them with the space of the "
                "model: Moments.of(votes, space)."
            )
        model = learn(self.space, moments, None, **self._options())
        self._learned(model, moments, None)
        return self

    # --- labels -----------------------------------------------------------------------------------

    def predict(self, votes: Any, *, fill: str | None = None) -> Batch:
        """Return one label per item, in item order.

        An item without votes gets the missing value of its type (NaN, -1 or None), or with ``fill="prior"`` the label
        that the prior favors. For votes on a cluster use `consilience.partitions.predict_frame` or `predict_to`.
        """
        if fill not in (None, "prior"):
            raise UnsupportedError(f"fill={fill!r} is unknown. Use 'prior', or None for missing values.")
        if fill == "prior" and self.space.n_labels is None:
            raise UnsupportedError(f"{type(self.space).__name__} has no prior to guess from. Leave fill at None.")
        return self._infer(votes, labels_only=True).labels(self.space, fill_missing=fill == "prior")

    def predict_baseline(self, votes: Any) -> Batch:
        """Return the plain vote: one label per item, as if all sources were equally good and independent."""
        plain = self._model.as_baseline()
        return self._infer(votes, plain, labels_only=True).labels(self.space, fill_missing=False)

    def predict_proba(self, votes: Any) -> FloatArray:
        """Return ``(n, k)`` probabilities of the labels of a finite space; the prior for items without votes."""
        probabilities = self._infer(votes).posterior.probabilities
        if probabilities is None:
            raise UnsupportedError(
                f"{type(self.space).__name__} does not have a finite list of labels, so there are no probabilities. "
                "Use confidence(votes) and posterior(votes).details, or FiniteMetric if there are few labels."
            )
        return probabilities

    def predict_distribution(self, votes: Any) -> Distribution:
        """Return mean and standard deviation of every label, with intervals; probabilities for finite spaces.

        An item without votes has the mean NaN and an infinite standard deviation.
        """
        return self._infer(votes).distribution(self.space)

    def confidence(self, votes: Any) -> FloatArray:
        """Return the confidence of each label, between 0 and 1.

        For classes and finite metrics, it is the probability that the label is right. For tags, sequences, trees, boxes
        and spans, it is the expected share that is right. For other types, it is the expected share of the cost of
        uninformed labels that is avoided.
        """
        return self._infer(votes, labels_only=True).confidence

    def posterior(self, votes: Any) -> Posterior:
        """Return labels, confidence, probabilities, and the details that the label type knows about each item.

        For rankings `details` holds ``pair_probability``, ``expected_error`` (share of pairs expected to be in the
        wrong order), and whether the ranking is proven ``optimal``, with its ``gap``; for tags ``tag_probability``;
        for scores ``standard_deviation``. For records the names start with the field, as in ``stars/confidence``.
        """
        inference = self._infer(votes)
        labels = inference.labels(self.space, fill_missing=False)
        return replace(inference.posterior, labels=labels, confidence=inference.confidence)

    def explain(self, votes: Any, item: Any) -> Explanation:
        """Explain the label of the item with this id: who voted how, how much it counted, what would change it."""
        return explain(self._model, self.space, votes, self.decode, item)

    def suggest(self, votes: Any, k: int, purpose: str = "both") -> Suggestion:
        """Return `k` items to label by hand: their ids, and the probability with which each was drawn.

        Items without ids are numbered from 0. `random_state` is the seed of the draw.

        Parameters
        ----------
        purpose
            "audit" draws at random, more often where the model is unsure. Pass the true labels to
            ``audit(votes, gold, weights)``. The order is random, so you may stop at any item.
            "learn" picks the items whose true labels would teach the model most, best first: items with uncertain
            labels on which sources disagree, above all groups of sources that contradict each other. Pass their true
            labels to ``fit(votes, gold)``.
            "both" alternates between the two.
        """
        return suggest(self._model, self.space, votes, self.decode, k, purpose, self._seed)

    def audit(self, votes: Any, gold: Any, weights: Any = None, by: Any = None) -> Audit:
        """Estimate how good the labels of all these items are, from the few whose true label is known.

        The 95% intervals hold even where the model is wrong; well-calibrated confidence makes them shorter. If the
        model learned from some of the known labels, these are compared with labels of models that did not see them.

        Parameters
        ----------
        gold
            Known labels, as for `fit`.
        weights
            One over the probability with which each item was drawn, as returned by
            ``suggest(votes, k, "audit").weights(votes)``. Items that were not drawn at random have NaN and are left
            out. None if all items were equally probable.
        by
            One value per item, such as its language. The labels are also audited separately for each value.

        Examples
        --------
        >>> from consilience import Classes, LabelModel
        >>> votes = [[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]] * 50
        >>> truth = [0, 1, 0, 1] * 10 + [None] * 160
        >>> audit = LabelModel(Classes(2)).fit(votes).audit(votes, truth)
        >>> print(audit.labels)
        1.000 (0.929 to 1.000)
        """
        whole = votes.in_memory("An audit compares") if isinstance(votes, VotePartitions) else votes
        table = self._model.aligned(whole, self.space)
        known = read_gold(gold, self.space, len(table))
        return audit(self._model, self.space, table, known, self.decode, partial(self._refit, table), weights, by)

    def score(self, votes: Any, gold: Any) -> float:
        """Return how good the labels are on items whose label is known; larger is better.

        Accuracy for classes, minus the mean distance otherwise. Items without votes are left out.
        """
        inference = self._infer(votes)
        known = read_gold(gold, self.space, len(inference.voted), as_votes(votes, self.space))
        if known is None:
            raise InvalidVotesError("score needs known labels, but gold contains none. Pass one label per item.")
        rows = np.flatnonzero(known.observed[:, 0] & inference.voted)
        return self.space.score(self.space.as_batch(inference.posterior.labels[rows]), known.labels[rows, 0])

    # --- what was learned ---------------------------------------------------------------------------

    @property
    def sources_(self) -> SourceTable:
        """One row per source, best first: votes, coverage, how good it is in the unit of the label type, weight."""
        return self._model.table(self.space)

    @property
    def weight_(self) -> FloatArray:
        """Weight of each source."""
        return self._model.summary.weight

    @property
    def expected_cost_(self) -> FloatArray:
        """Mean cost of each source's votes."""
        return self._model.summary.expected_cost

    @property
    def standard_error_(self) -> FloatArray:
        """Standard error of `weight_`."""
        return self._model.summary.standard_error

    @property
    def cost_standard_error_(self) -> FloatArray:
        """Standard error of `expected_cost_`."""
        return self._model.summary.cost_standard_error

    @property
    def diagnostics_(self) -> tuple[Diagnostic, ...]:
        """Findings about this fit, worst first."""
        return self._model.diagnostics

    # --- files --------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (arrays and JSON, never code)."""
        write_model(path, self.space, self._model, self.get_params())

    @classmethod
    def load(cls, path: str | Path, space: LabelSpace | None = None) -> Self:
        """Read a model back. Pass `space` where the label type is one of your own."""
        space, source_model, settings = read_model(path, space)
        model = cls(space, **settings)
        model.source_model_ = source_model
        return model

    def _repr_html_(self) -> str:
        title = f"<p><code>{escape(repr(self))}</code></p>"
        if not self.__sklearn_is_fitted__():
            return f"{title}<p>not fitted</p>"
        return f"{title}{self.sources_._repr_html_()}{findings_fragment(self.diagnostics_)}"

    # --- private ------------------------------------------------------------------------------------

    @property
    def _model(self) -> SourceModel:
        model: SourceModel | None = getattr(self, "source_model_", None)
        if model is None:
            raise NotFittedError("This LabelModel has not been fitted. Call fit(votes) first.")
        return model

    @property
    def _seed(self) -> int:
        return 0 if self.random_state is None else int(self.random_state)

    def _options(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "dependencies": self.dependencies,
            "prior": self.prior,
            "seed": self._seed,
        }

    def _check_settings(self) -> None:
        if not isinstance(self.space, LabelSpace):
            fact = "LabelModel has no label type" if self.space is None else f"space={self.space!r} is not a label type"
            raise UnsupportedError(f"{fact}. Pass one, for example LabelModel(Classes(['ham', 'spam'])) or Scores().")
        if self.decode not in DECODERS:
            raise UnsupportedError(f"decode={self.decode!r} is unknown. Use one of {', '.join(DECODERS)}.")
        seed = self.random_state
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0):
            raise UnsupportedError(f"random_state={seed!r} is not a seed. Use a whole number from 0 on, or None.")

    def _infer(self, votes: Any, model: SourceModel | None = None, *, labels_only: bool = False) -> Inference:
        learned = self._model if model is None else model
        if isinstance(votes, VotePartitions) and votes.remote:
            raise UnsupportedError(
                f"The votes of {type(votes).__name__} stay where they are, and this call would collect one answer per "
                "item. Use consilience.partitions.predict_frame or predict_to, or pass votes.sample(size, seed)."
            )
        with working("labeling"):
            return infer(learned, self.space, votes, self.decode, labels_only=labels_only)

    def _refit(self, table: Votes, known: Votes | None) -> SourceModel:
        partitions = self._cut(table, known)
        moments, passes = take_moments(self.space, partitions, self._seed)
        return learn(self.space, moments, passes, names_given=self._model.names_given, **self._options())

    def _partitions(self, votes: Any, gold: Any) -> tuple[VotePartitions, bool]:
        if isinstance(votes, VotePartitions):
            if gold is not None:
                raise InvalidVotesError("Partitions carry their own known labels. Do not pass gold= as well.")
            return votes, True
        table = as_votes(votes, self.space)
        if not table.names_given and table.n_sources >= SUSPICIOUS_WIDTH and table.n_sources > table.n_items:
            raise TransposedVotesError(
                f"{table.n_items} items by {table.n_sources} unnamed sources looks transposed: votes have one row per "
                "item and one column per source. Pass matrix.T, or name the sources (sources=[...]) if this is right."
            )
        known = read_gold(gold, self.space, len(table), table)
        return self._cut(table, known), table.names_given

    def _cut(self, table: Votes, known: Votes | None) -> InMemoryPartitions:
        law = self.space.law
        return InMemoryPartitions.suited(table, law, known, rows=max(law.rows, SAMPLE_ROWS))

    def _learned(self, model: SourceModel, moments: Moments, kept: InMemoryPartitions | None) -> None:
        """Store a finished estimate in one step, so that a fit that fails leaves the model unchanged."""
        self.source_model_, self._moments, self._kept = model, moments, kept
        serious = [item for item in self.diagnostics_ if item.severity != "info"]
        if serious:
            warnings.warn(
                "; ".join(f"{item.code}: {item.message}" for item in serious),
                ConsilienceWarning,
                stacklevel=3,
            )
