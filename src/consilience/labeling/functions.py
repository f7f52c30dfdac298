"""Labeling functions: Python functions that vote, with a name and what they need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, overload

from consilience.exceptions import InvalidVotesError, UnsupportedError

#: Rows for which a preprocessor caches its result: one chunk.
REMEMBERED = 1 << 15

#: By process: a lock that another thread held at a fork would stay closed in the new process.
_creating: dict[int, threading.RLock] = {}


@dataclass(eq=False)
class once:  # noqa: N801 - it is used like a function
    """A resource that each process creates for itself, by calling `factory` once.

    Use it for objects that are slow to load, large, or impossible to send: models, connections, open files.

    Examples
    --------
    >>> @labeling_function(resources={"words": once(lambda: {"free", "win"})})
    ... def prize(text, words):
    ...     return "spam" if words & set(text.split()) else None
    >>> prize("win a car")
    'spam'
    """

    factory: Callable[[], Any]

    def value(self) -> Any:
        """Return the object that the factory created in this process."""
        process = os.getpid()
        with _creating.setdefault(process, threading.RLock()):
            made = self.__dict__.get("_made")
            if made is None or made[0] != process:  # the parent's object may not survive the fork
                made = self.__dict__["_made"] = (process, self.factory())
            return made[1]

    def __getstate__(self) -> dict[str, Any]:
        return {"factory": self.factory}


@dataclass(eq=False)
class Preprocessor:
    """What happens to a row before labeling functions see it; made by `preprocessor`, and called like the function.

    Examples
    --------
    >>> Preprocessor(str.lower, "lower")("FREE money")
    'free money'
    """

    function: Callable[[Any], Any]
    name: str
    memoize: bool = True

    def __call__(self, row: Any) -> Any:
        memory = self.__dict__.setdefault("_memory", {})
        cells = tuple(vars(row).items()) if isinstance(row, SimpleNamespace) else row
        try:
            if self.memoize and cells in memory:
                return memory[cells]
        except TypeError:  # a cell that cannot be looked up, such as a list
            cells = None
        made = self.function(copy(row) if isinstance(row, SimpleNamespace) else row)
        if self.memoize and cells is not None:
            if len(memory) >= REMEMBERED:
                memory.clear()
            memory[cells] = made
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function, "name": self.name, "memoize": self.memoize}


def preprocessor(
    function: Callable[[Any], Any] | None = None, /, *, name: str | None = None, memoize: bool = True
) -> Any:
    """Turn a function of a row into a step before labeling functions: ``labeling_function(pre=[...])``.

    It returns what the functions receive: the row with more attributes, or anything else. The result for each row is
    cached, so that several functions share the work; ``memoize=False`` turns this off.

    Examples
    --------
    >>> @preprocessor
    ... def words(row):
    ...     row.words = row.text.lower().split()
    ...     return row
    >>> @labeling_function(pre=[words])
    ... def short(row):
    ...     return "ham" if len(row.words) < 4 else None
    >>> from consilience import apply
    >>> apply(short, {"text": ["See you", "You have won a new car"]}).labels.tolist()
    [['ham'], [None]]
    """
    if function is None:
        return partial(preprocessor, name=name, memoize=memoize)
    chosen = getattr(function, "__name__", type(function).__name__) if name is None else name
    return Preprocessor(function, str(chosen), memoize)


@dataclass(frozen=True, eq=False)
class LabelingFunction:
    """A function that votes; made by `labeling_function`, which has the parameters, and called like the function.

    Examples
    --------
    >>> shouts = labeling_function(str.isupper)
    >>> shouts.name, shouts("WIN")
    ('isupper', True)
    """

    function: Callable[..., Any]
    name: str
    resources: Mapping[str, Any] = field(default_factory=dict)
    vectorized: bool = False
    abstain: Any = None
    pre: tuple[Callable[[Any], Any], ...] = ()

    def __call__(self, row: Any) -> Any:
        return self.bound()(row)

    def bound(self) -> Callable[[Any], Any]:
        """Return the function with its resources filled in."""
        values = {key: item.value() if isinstance(item, once) else item for key, item in self.resources.items()}
        call = partial(self.function, **values) if values else self.function
        if not self.pre:
            return call

        def after_steps(row: Any) -> Any:
            for step in self.pre:
                row = step(row)
            return call(row)

        return after_steps

    def __reduce__(self) -> tuple[Any, ...]:
        # The decorator took the name of the plain function, which pickle would look for.
        module, path = getattr(self.function, "__module__", None), getattr(self.function, "__qualname__", "")
        if module not in (None, "__main__") and _named(module, path) is self:
            return _named, (module, path)
        return LabelingFunction, (self.function, self.name, self.resources, self.vectorized, self.abstain, self.pre)


def _named(module: str, path: str) -> Any:
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


@overload
def labeling_function(function: Callable[..., Any], /) -> LabelingFunction: ...


@overload
def labeling_function(
    *,
    name: str | None = None,
    resources: Mapping[str, Any] | None = None,
    vectorized: bool = False,
    abstain: Any = None,
    pre: Iterable[Callable[[Any], Any]] = (),
) -> Callable[[Callable[..., Any]], LabelingFunction]: ...


def labeling_function(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    resources: Mapping[str, Any] | None = None,
    vectorized: bool = False,
    abstain: Any = None,
    pre: Iterable[Callable[[Any], Any]] = (),
) -> LabelingFunction | Callable[[Callable[..., Any]], LabelingFunction]:
    """Turn a function into a source of votes: ``@labeling_function`` or ``@labeling_function(...)``.

    Parameters
    ----------
    function
        Takes one row and returns a label, or None to abstain. The cells of a row of a frame are
        attributes and items, ``row.text`` and ``row["text"]``. Elements of a list or a generator are
        passed unchanged.
    name
        Name of the source; by default that of the function.
    resources
        Passed to the function as keyword arguments. `once` marks resources that each process creates for
        itself.
    vectorized
        Whether the function takes a batch of rows, in the type of the data (a pandas, polars or Arrow
        table, a dict of arrays, a list), and returns one label per row, with None, NaN or null where it
        abstains. Much faster.
    abstain
        A value that means "abstains", in addition to None and NaN, for example -1.
    pre
        Functions applied to each row first, in this order; see `preprocessor`. They may change the row.

    Examples
    --------
    >>> @labeling_function
    ... def has_link(row):
    ...     return "spam" if "http" in row.text else None
    >>> @labeling_function(name="short", vectorized=True)
    ... def is_short(batch):
    ...     return ["ham" if len(text) < 20 else None for text in batch["text"]]
    >>> from consilience import apply
    >>> messages = {"text": ["see you at nine", "http://win.example a car, now!"]}
    >>> apply([has_link, is_short], messages).labels
    array([[None, 'ham'],
           ['spam', None]], dtype=object)
    """
    if function is None:
        settings = {"name": name, "resources": resources, "vectorized": vectorized, "abstain": abstain, "pre": pre}
        return partial(labeling_function, **settings)
    if not callable(function):
        raise UnsupportedError(
            f"A labeling function is a Python function, not {function!r}. "
            "Write @labeling_function above a def, or @labeling_function(name=...)."
        )
    chosen = getattr(function, "__name__", type(function).__name__) if name is None else str(name)
    steps = tuple(pre) if isinstance(pre, Iterable) else (pre,)
    wrong = next((step for step in steps if not callable(step)), None)
    if wrong is not None:
        raise UnsupportedError(f"pre holds {wrong!r}, not a function of a row. Write @preprocessor above a def.")
    if steps and vectorized:
        raise UnsupportedError(
            f"{chosen!r} takes a batch, and the steps of pre= take a row. Prepare the batch in the function, or leave "
            "vectorized=True out."
        )
    return LabelingFunction(function, chosen, dict(resources or {}), vectorized, abstain, steps)


def as_functions(functions: Any) -> tuple[LabelingFunction, ...]:
    """Return labeling functions from one or several of: ours, plain functions, those of snorkel."""
    several = [functions] if callable(functions) else functions
    if isinstance(several, (str, bytes)) or not isinstance(several, Iterable):
        raise UnsupportedError(f"functions={functions!r} is not a list of labeling functions.")
    found: dict[str, LabelingFunction] = {}
    for place, one in enumerate(several):
        if not callable(one):
            raise UnsupportedError(
                f"functions[{place}] is {one!r}, not a function. Pass functions, decorated with @labeling_function or "
                "not."
            )
        name = getattr(one, "name", None)
        if not isinstance(one, LabelingFunction):
            # An object with a name is snorkel's LabelingFunction, for which -1 abstains.
            one = LabelingFunction(one, name, abstain=-1) if isinstance(name, str) else labeling_function(one)
        if one.name in found:
            raise InvalidVotesError(
                f"Two labeling functions are called {one.name!r}, at places {list(found).index(one.name)} and {place} "
                "of the list. Give one of them its own name: labeling_function(name=...), or name= of the "
                "ready-made ones."
            )
        found[one.name] = one
    if not found:
        raise InvalidVotesError("There are no labeling functions. Pass at least one.")
    return tuple(found.values())
