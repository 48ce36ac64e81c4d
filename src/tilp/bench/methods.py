"""Methods that a plan can compare: forms of TILP, timestamp rules, forecasts and baselines."""

import inspect
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np

from tilp.bench.data import Case
from tilp.bench.jobs import Workspace
from tilp.bench.report import TEXTS
from tilp.bench.schema import Table, check_keys, one_of, read_value
from tilp.errors import TilpError
from tilp.evaluation import popularity, recurrence
from tilp.forecasting import ForecastSettings, TimestampRules
from tilp.graph import QueryTable
from tilp.model import TILP, TILPConfig
from tilp.scoring import Scorer, Scores
from tilp.scoring.scores import ScoreFunction

_PLAIN, _REACHED = "plain", "reached_only"  # choices that the estimators do not have
_RESOURCES = {"n_jobs", "memory", "backend", "address"}
_OF_THE_RUN = {"self", "random_state", "config", "training", *_RESOURCES}
_FORMS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "rules": {"features": "none"},
    "paper": {"preset": "paper"},
    "static": {"temporal_detail": ("static",), "features": "none"},
}
_TIMED = {"timestamps": TimestampRules, "forecast": ForecastSettings}
_BASELINES = {"popularity": popularity, "recurrence": recurrence}
_ABOUT: Mapping[str, str] = TEXTS["methods"]
# Types that a value may have, by that of the default; an integer is a number too.
_LIKE: Mapping[type, set[type]] = {bool: {bool}, int: {int}, float: {int, float}}


@dataclass(frozen=True)
class Learned:
    """Result of learning: a scorer, and the count of rules if there are any."""

    scorer: ScoreFunction
    seconds: dict[str, float] = field(default_factory=dict)
    rules: int | None = None


@dataclass(frozen=True)
class Method:
    """A method with its parameters: arguments of `TILP`, `TimestampRules` or `ForecastRules`.

    Timestamp rules also have `plain` (rank through every walk, as the original does), TILP also has
    `reached_only` (all candidates that no rule reaches score alike).
    """

    name: str
    base: str  # the method that it is a form of
    choices: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    seeds: int | None = field(default=None, compare=False)  # count of runs, if the plan gives it

    @property
    def seeded(self) -> bool:  # whether another seed gives another result
        return self.base not in _BASELINES

    @property
    def is_tilp(self) -> bool:
        return self.base in _FORMS

    @property
    def is_ours(self) -> bool:  # not one to compare with
        return self.is_tilp or self.base == "forecast"

    def with_choices(self, **choices: Any) -> Self:
        return replace(self, choices={**self.choices, **choices})

    def identity(self, seed: int) -> dict[str, Any]:
        """Return all that decides what it learns, default parameters included."""
        decided: dict[str, Any] = {}
        if self.is_tilp:
            decided = self.tilp(seed, 1).settings.to_json()
        elif self.base in _TIMED:
            decided = asdict(self._timed(seed, ahead=True))
        more = {name: True for name in (_PLAIN, _REACHED) if self.choices.get(name)}
        return {"base": self.base, "decided": decided, **more}

    def learn(self, case: Case, seed: int, workspace: Workspace) -> Learned:
        """Learn from a case, or raise a `TilpError` if it is not for this method."""
        if self.base in _TIMED:
            return self._learn_timed(case, seed, workspace)
        if case.evidence is not None:
            raise TilpError(
                f"{self.name} takes train as evidence, not all facts dated before a query; "
                f"forecast with {' or '.join(_TIMED)}, or a method with one of them as its base"
            )
        if self.is_tilp:
            return self._learn_tilp(case, seed, workspace)
        return Learned(_BASELINES[self.base](case.applied))

    def tilp(self, seed: int, threads: int) -> TILP:
        options = {**_FORMS[self.base], **self._arguments}
        return TILP.from_options(**options, random_state=seed, n_jobs=threads)

    def _learn_tilp(self, case: Case, seed: int, workspace: Workspace) -> Learned:
        model = self.tilp(seed, workspace.threads)
        model.fit(case.learned, folder=workspace.folder, progress=workspace.advance)
        scorer = model.scorer(case.applied)
        scores = ReachedOnly(scorer) if self.choices.get(_REACHED) else scorer
        return Learned(scores, dict(model.seconds), len(model.rules()))

    def _learn_timed(self, case: Case, seed: int, workspace: Workspace) -> Learned:
        # These rules are mined from the graph itself, so it must hold nothing but training facts.
        learned = case.learned.without(np.flatnonzero(case.learned.walked_only))
        rules, evidence = self._timed(seed, ahead=case.evidence is None), case.evidence or "train"
        began, advance = time.perf_counter(), partial(workspace.advance, "fit")
        scorer: ScoreFunction
        if isinstance(rules, ForecastSettings):
            forecasts = rules.fit(learned, progress=advance)
            count, scorer = len(forecasts.rules), forecasts.scorer(case.applied, evidence)
        else:
            model = rules.fit(learned, threads=workspace.threads, progress=advance)
            plain = bool(self.choices.get(_PLAIN))
            count, scorer = len(model.table), model.scorer(case.applied, evidence, plain=plain)
        return Learned(scorer, {"fit": time.perf_counter() - began}, count)

    def _timed(self, seed: int, *, ahead: bool) -> TimestampRules | ForecastSettings:
        """Return what learns from timestamps; `ahead` is the default of timestamp rules."""
        if self.base == "forecast":
            return ForecastSettings(**self._arguments, seed=seed)
        return TimestampRules(**{"ahead": ahead, **self._arguments}, seed=seed)

    @property
    def _arguments(self) -> dict[str, Any]:
        return {key: self.choices[key] for key in self.choices if key not in (_PLAIN, _REACHED)}


METHODS = {base: Method(base, base, about=about) for base, about in _ABOUT.items()}


def read_method(name: str, table: Table, where: str) -> Method:
    """Read a method that a plan defines; an error says what is wrong and what is possible."""
    base: str = read_value(Annotated[str, one_of(list(_ABOUT))], table, "base", where)
    about: str = read_value(str, table, "about", where, default="")
    possible = _parameters(base)
    check_keys(table, ["base", "about", *possible], where)
    choices = {}
    for key in [key for key in table if key in possible]:
        value, default = table[key], possible[key]
        if type(value) not in _LIKE.get(type(default), {type(value)}):
            raise TilpError(f"{where}: {key} is {value!r}; give something like {default}")
        choices[key] = tuple(value) if isinstance(value, list) else value
    listed = ", ".join(f"{key} = {value}" for key, value in choices.items())
    description = f"{base} with {listed}" if choices else _ABOUT[base]
    about = f"{about} ({description})" if about and choices else about or description
    method = Method(name, base, choices, about)
    try:
        method.identity(0)
    except (TilpError, TypeError, ValueError) as failure:
        raise TilpError(f"{where}: {listed}: {failure}") from failure
    return method


def _parameters(base: str) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    if base in _FORMS:
        arguments = inspect.signature(TILP.__init__).parameters.values()
        defaults = {argument.name: argument.default for argument in arguments}
        defaults |= {argument.name: argument.default for argument in fields(TILPConfig)}
        defaults |= {"preset": "default", _REACHED: False}
    elif base in _TIMED:
        defaults = {argument.name: argument.default for argument in fields(_TIMED[base])}
        defaults |= {_PLAIN: False} if base == "timestamps" else {}
    return {name: default for name, default in defaults.items() if name not in _OF_THE_RUN}


@dataclass(frozen=True)
class ReachedOnly:
    """A scorer that scores all candidates that no rule reaches lowest, as the paper's code does."""

    scorer: Scorer

    def __call__(self, queries: QueryTable) -> Scores:
        rules = self.scorer.rule_scorer
        applied = rules.apply_rules(queries)
        scores = self.scorer.score(queries, applied)
        entities = len(rules.walker.graph.entities)
        query = np.repeat(np.arange(len(queries)), np.diff(applied.offsets))
        reached = query * entities + applied.end
        rows = np.flatnonzero(np.isin(scores.query * entities + scores.candidate, reached))
        offsets, score = np.searchsorted(rows, scores.offsets), scores.score[rows]
        default = score.min(initial=0.0) - 1.0
        return Scores(offsets, scores.candidate[rows], score, default, scores.reached)
