"""`Method`: what can be compared, by name: TILP in its forms, timestamp rules, floors."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from tilp.bench.jobs import Place
from tilp.bench.keys import TEXT, Keys, word_of
from tilp.bench.reached import ReachedOnly
from tilp.bench.refitting import kept_model, refit
from tilp.bench.settings import Case
from tilp.errors import TilpError
from tilp.evaluation import popularity, recurrence
from tilp.forecasting import ForecastRules, TimestampRules
from tilp.model import TILP, TILPConfig
from tilp.model.deprecated import OPTIONS_OF_0_1
from tilp.scoring.scores import ScoreFunction
from tilp.types import BaseMethod

__all__ = ["METHODS", "Learned", "Method", "read_method"]


@dataclass(frozen=True)
class Learned:
    """What a method made of a case.

    Attributes:
        scorer: of the queries.
        seconds: that each stage took.
        rules: how many there are; None where the method has none.
        model: where it is TILP.
    """

    scorer: ScoreFunction
    seconds: dict[str, float] = field(default_factory=dict)
    rules: int | None = None
    model: TILP | None = None


@dataclass(frozen=True)
class Method:
    """A method and what is chosen for it.

    Attributes:
        name: in plans and reports.
        base: the method that it is a form of.
        choices: keyword arguments of `TILP`, `TimestampRules` or `ForecastRules`; of timestamp
            rules also `plain`, the original's way of ranking, to compare times with, and of TILP
            `reached_only`: candidates that no rule reaches all score alike.
        about: what it is, in words.
    """

    name: str
    base: BaseMethod
    choices: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""

    @property
    def seeded(self) -> bool:
        """Whether another seed gives another result."""
        return self.base not in _FLOORS

    @property
    def is_tilp(self) -> bool:
        """Whether it is a form of TILP."""
        return self.base in _FORMS

    @property
    def is_ours(self) -> bool:
        """Whether it is more than a baseline."""
        return self.is_tilp or self.base is BaseMethod.FORECAST

    def with_choices(self, **choices: Any) -> Method:
        """The same with other choices."""
        return Method(self.name, self.base, {**self.choices, **choices}, self.about)

    def identity(self, seed: int) -> dict[str, Any]:
        """All that decides what it makes of a case: choices that are not said among them."""
        decided: dict[str, Any] = {}
        if self.is_tilp:
            decided = self.tilp(seed, 1).settings.to_json()
        elif self.base in _TIMED:
            decided = asdict(self._timed(seed, ahead=True))
        asked = {name: True for name in (_PLAIN, _REACHED) if self._asks(name)}
        return {"base": self.base.value, "decided": decided, **asked}

    def learn(self, case: Case, seed: int, place: Place) -> Learned:
        """Learn from a case.

        Args:
            case: the graphs.
            seed: for everything that is drawn.
            place: where; a run that was killed goes on from what it left there.

        Raises:
            TilpError: the case is not for this method.
        """
        if self.base in _TIMED:
            return self._learn_timed(case, seed, place)
        if case.evidence is not None:
            raise TilpError(
                f"{self.name} takes train as evidence, not all that is dated before a query; "
                f"forecast with {' or '.join(_TIMED)}, or a method with one of them as its base"
            )
        if self.is_tilp:
            return self._learn_tilp(case, seed, place)
        return Learned(_FLOORS[self.base](case.applied))

    def tilp(self, seed: int, threads: int) -> TILP:
        """The estimator, where it is a form of TILP."""
        options = {**_FORMS[self.base], **self._arguments}
        return TILP.from_options(**options, random_state=seed, n_jobs=threads)

    def _learn_tilp(self, case: Case, seed: int, place: Place) -> Learned:
        def make() -> TILP:
            return self.tilp(seed, place.threads)

        def scored(model: TILP) -> ScoreFunction:
            scorer = model.scorer(case.applied)
            return ReachedOnly(scorer) if self._asks(_REACHED) else scorer

        if case.rare is not None:
            model, scorer = refit(make, case, case.rare, place, scored)
            return Learned(scorer, dict(model.seconds), len(model.rules()), model)
        if case.kept:
            model, seconds = kept_model(make, case.learned, place)
        else:
            model = make().fit(case.learned, folder=place.folder, progress=place.advance)
            seconds = model.seconds
        return Learned(scored(model), dict(seconds), len(model.rules()), model)

    def _learn_timed(self, case: Case, seed: int, place: Place) -> Learned:
        # Rules are learned from the graph that they are in: it is all that is learned from.
        learned = case.learned.without(np.flatnonzero(case.learned.walked_only))
        rules, evidence = self._timed(seed, ahead=case.evidence is None), case.evidence or "train"
        began = time.perf_counter()

        def advance(share: float) -> None:
            place.advance("fit", share)

        scorer: ScoreFunction
        if isinstance(rules, ForecastRules):
            forecasts = rules.fit(learned, progress=advance)
            count = len(forecasts.rules)
            scorer = forecasts.scorer(case.applied, evidence)
        else:
            model = rules.fit(learned, threads=place.threads, progress=advance)
            count = len(model.table)
            scorer = model.scorer(case.applied, evidence, plain=self._asks(_PLAIN))
        return Learned(scorer, {"fit": time.perf_counter() - began}, count)

    def _timed(self, seed: int, *, ahead: bool) -> TimestampRules | ForecastRules:
        """What learns from facts at instants.

        Args:
            seed: for everything that is drawn.
            ahead: whether timestamp rules look ahead, where the plan does not say.
        """
        if self.base is BaseMethod.FORECAST:
            return ForecastRules(**self._arguments, seed=seed)
        return TimestampRules(**{"ahead": ahead, **self._arguments}, seed=seed)

    @property
    def _arguments(self) -> dict[str, Any]:
        """The choices that its class takes."""
        asked = (_PLAIN, _REACHED)
        return {name: one for name, one in self.choices.items() if name not in asked}

    def _asks(self, name: str) -> bool:
        return bool(self.choices.get(name, False))


_FORMS: Mapping[BaseMethod, Mapping[str, Any]] = {
    BaseMethod.FULL: {},
    BaseMethod.RULES: {"features": "none"},
    BaseMethod.PAPER: {"preset": "paper"},
    BaseMethod.STATIC: {"temporal_detail": ("static",), "features": "none"},
}
_TIMED = {BaseMethod.TIMESTAMPS: TimestampRules, BaseMethod.FORECAST: ForecastRules}
_PLAIN, _REACHED = "plain", "reached_only"
_FLOORS = {BaseMethod.POPULARITY: popularity, BaseMethod.RECURRENCE: recurrence}
_ABOUT = {
    BaseMethod.FULL: "tilp with default settings: rules and temporal features",
    BaseMethod.RULES: "its rules alone, without temporal features",
    BaseMethod.PAPER: "the system of the paper: length 5, pairs, attention, its features",
    BaseMethod.STATIC: "rules that say nothing of time, without temporal features",
    BaseMethod.TIMESTAMPS: "timestamp rules in the manner of TLogic, applied both ways to complete",
    BaseMethod.FORECAST: "rules for what comes next, weighed by recency and count",
    BaseMethod.POPULARITY: "floor: what answers the relation most often in train",
    BaseMethod.RECURRENCE: "floor: what train already says of the query, the nearest in time first",
}
METHODS: Mapping[str, Method] = {
    base.value: Method(base.value, base, about=_ABOUT[base]) for base in BaseMethod
}
"""The methods that every plan has."""

_OF_THE_RUN = {"self", "random_state", "n_jobs", "backend", "address", "config", "training"}


def read_method(name: str, values: Mapping[str, Any], place: str) -> Method:
    """A method of a plan's own.

    Args:
        name: in the plan.
        values: `base`, `about` and what is chosen.
        place: of the table, for errors.

    Raises:
        TilpError: names what is wrong and what is possible.
    """
    keys = Keys(values, place)
    base = keys.take("base", word_of(BaseMethod))
    about = keys.get("about", TEXT, "")
    choices = keys.rest()
    if base in _FORMS:
        choices = {OPTIONS_OF_0_1.get(key, key): value for key, value in choices.items()}
    possible = _possible(base)
    for key, value in choices.items():
        if key not in possible:
            listed = ", ".join(["about", "base", *sorted(possible)])
            raise TilpError(f"{place}: there is no key {key!r}; possible here: {listed}")
        usual = possible[key]
        if isinstance(usual, bool | int | float) and not _alike(value, usual):
            raise TilpError(f"{place}: {key} is {value!r}; give something like {usual}")
    chosen = {key: tuple(one) if isinstance(one, list) else one for key, one in choices.items()}
    told = _told(base, chosen)
    method = Method(name, base, chosen, f"{about} ({told})" if about and chosen else about or told)
    try:
        method.identity(0)
    except TilpError as failure:
        raise TilpError(f"{place}: {failure}") from failure
    except (TypeError, ValueError) as failure:
        wrong = next(filter(partial(_refuses, base), chosen.items()), None)
        which = "" if wrong is None else f"{wrong[0]} cannot be {wrong[1]!r}: "
        raise TilpError(f"{place}: {which}{failure}") from failure
    return method


def _refuses(base: BaseMethod, choice: tuple[str, Any]) -> bool:
    """Whether a choice is impossible by itself."""
    try:
        Method("", base, dict([choice])).identity(0)
    except (TilpError, TypeError, ValueError):
        return True
    return False


def _possible(base: BaseMethod) -> dict[str, Any]:
    """What can be chosen for a method, with what is usual."""
    found: dict[str, Any] = {}
    if base in _FORMS:
        arguments = inspect.signature(TILP.__init__).parameters.values()
        found = {one.name: one.default for one in arguments} | {_REACHED: False}
        found |= {one.name: one.default for one in fields(TILPConfig)} | {"preset": "default"}
    elif base in _TIMED:
        found = {one.name: one.default for one in fields(_TIMED[base])}
        found |= {_PLAIN: False} if base is BaseMethod.TIMESTAMPS else {}
    return {name: usual for name, usual in found.items() if name not in _OF_THE_RUN}


def _alike(value: object, usual: bool | float) -> bool:
    """Whether a value is of the kind of the usual one; a whole number is a number too."""
    if isinstance(usual, bool) or isinstance(value, bool):
        return isinstance(usual, bool) and isinstance(value, bool)
    return isinstance(value, int) or (isinstance(usual, float) and isinstance(value, float))


def _told(base: BaseMethod, choices: Mapping[str, Any]) -> str:
    chosen = ", ".join(f"{key} = {one}" for key, one in choices.items())
    return f"{base.value} with {chosen}" if chosen else _ABOUT[base]
