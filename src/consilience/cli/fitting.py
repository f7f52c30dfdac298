"""A model from votes and from what the options say about sources and labels."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from consilience.cli.commands import did_you_mean

if TYPE_CHECKING:
    from consilience.cli.loading import Loaded
    from consilience.label_model import LabelModel
    from consilience.label_types.base import LabelSpace

__all__ = ["dependent_pairs", "fit", "fit_votes", "prior_of_text"]

#: Words for priors that are not written out.
PRIORS = ("auto", "uniform", "gibbs")


def fit(
    loaded: Loaded,
    method: str,
    pairs: list[tuple[str, str]],
    seed: int,
    gold: Any = None,
    prior: str = "auto",
) -> LabelModel:
    """Return a model fitted to what was read."""
    return fit_votes(loaded.space, loaded.votes, loaded.gold if gold is None else gold, method, pairs, seed, prior)


def fit_votes(
    space: LabelSpace,
    votes: Any,
    gold: Any,
    method: str,
    pairs: list[tuple[str, str]],
    seed: int,
    prior: str = "auto",
) -> LabelModel:
    """Return a fitted model; what it would warn of is in its diagnostics."""
    from consilience.exceptions import ConsilienceWarning, UnsupportedError
    from consilience.label_model import LabelModel

    names = space.law.methods
    if method not in names:
        hint = did_you_mean(method, names)
        raise UnsupportedError(
            f"There is no method {method!r} for this label type. {hint}{' ' * bool(hint)}Use one of {', '.join(names)}."
        )
    settings: dict[str, Any] = {"dependencies": pairs} if pairs else {}
    model = LabelModel(space, method=method, prior=prior_of_text(prior, space), random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return model.fit(votes, gold=gold)


def dependent_pairs(depends: tuple[str, ...], repeated: tuple[tuple[str, str], ...] = ()) -> list[tuple[str, str]]:
    """Return the pairs of sources that `--depends` names, and those that are runs of one source."""
    pairs = list(repeated)
    for group in depends:
        names = [name.strip() for name in group.split(",") if name.strip()]
        if len(names) < 2:
            raise click.BadParameter(f"{group!r} names one source. Write --depends a,b.", param_hint="--depends")
        pairs += combinations(names, 2)
    return pairs


def prior_of_text(text: str, space: LabelSpace) -> Any:
    """Return what `--prior` says: a word, or one number per label such as ``ham=0.9,spam=0.1``."""
    if text in PRIORS:
        return text
    if space.n_labels is None:
        raise click.BadParameter(f"{type(space).__name__} has no list of labels to be frequent.", param_hint="--prior")
    labels = [str(label) for label in space.as_labels(np.arange(space.n_labels), np.dtype(object)).tolist()]
    parts = [part.rpartition("=") for part in text.split(",")]
    given: dict[str, float] = {}
    for name, _, share in parts:
        if name.strip() not in labels:
            hint = did_you_mean(name.strip(), labels)
            raise click.BadParameter(
                f"{name.strip() or share!r} is no label. {hint}{' ' * bool(hint)}Write {_example(labels)}.",
                param_hint="--prior",
            )
        try:
            given[name.strip()] = float(share)
        except ValueError:
            raise click.BadParameter(
                f"{share!r} is no number. Write {_example(labels)}.", param_hint="--prior"
            ) from None
    missing = [label for label in labels if label not in given]
    if missing:
        raise click.BadParameter(f"{missing[0]!r} is missing. Write {_example(labels)}.", param_hint="--prior")
    total = sum(given.values())
    if not total > 0:
        raise click.BadParameter("all shares are zero. Give how frequent the labels are.", param_hint="--prior")
    return [given[label] / total for label in labels]


def _example(labels: list[str]) -> str:
    """Return how a prior over these labels is written."""
    shown = ",".join(f"{label}={1 / len(labels):.2g}" for label in labels[:4])
    return f"--prior {shown}{',...' if len(labels) > 4 else ''}"
