"""`ForecastRules`: the estimator for what comes next, from what was before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats, Ids, Mask
from tilp._utils.progress import Progress, Stages
from tilp.errors import TilpError
from tilp.forecasting import Curve, ForecastModel, ForecastScorer, ForecastSettings
from tilp.graph import QueryTable, TemporalGraph, merge_facts
from tilp.model.fitted_model import old_relations
from tilp.model.persistence import load_forecast, save_forecast, saved_state
from tilp.model.tilp import TILP
from tilp.model.update import UpdateReport
from tilp.rules import Phrasings, Rule, RuleSet
from tilp.scoring.topk import TopKPredictor
from tilp.time import format_time
from tilp.types import Backend, ByLabel, choose

_PARAMETERS = ("classes", "warm", "rate", "own_rate")
_PAIRS = 2000  # subjects and relations whose next objects are predicted together


class ForecastRules(TILP):
    """Rules for what comes next, each weighted by how long ago and how often its body held.

    All facts dated before a query are evidence for it, of every split; a fact counts as an event at
    its start. A query without a date is asked at the first instant after all facts. `fit` goes
    through train once, in the order of time; `update` adds facts as they come. Everything that asks
    a fitted model works as for `TILP`: `predict`, `explain`, `evaluate`, `predict_to`.

    Args:
        classes: Tell this many classes of recency apart (int, default 12). Each holds equally many
            of the times between two meetings of the same entities.
        warm: Take this earliest share of train as evidence only (float, default 0.1).
        rate: Learning rate of the weights that rules share (float, default 0.05).
        own_rate: Learning rate of each rule's own recency curve (float, default 0.02).
        random_state: Seed of the order of queries of one time (int, default 0).
        n_jobs: How many threads answer queries (int, default None: one for each core). Fitting uses
            one. It does not change the result.
        memory: Work in this much memory; see `TILP`.
        backend: What runs the work (default `"threads"`): `threads`, `serial` or `ray`.
        address: The address of a Ray cluster (default None: one is started here).

    Raises:
        TilpError: A parameter has no such value.

    Example:
        >>> import tilp
        >>> graph = tilp.datasets.world(seed=0, size=1000).graph
        >>> model = tilp.ForecastRules().fit(graph)
        >>> print(model.rules("diedIn")[0].rule)
        diedIn(E1,E2,I2) ← bornIn(E1,E2,I1) ∧ earlier_than(I1,I2)
    """

    forecasts = True

    def __init__(
        self,
        classes: int = 12,
        *,
        warm: float = 0.1,
        rate: float = 0.05,
        own_rate: float = 0.02,
        random_state: int = 0,
        n_jobs: int | None = None,
        memory: int | str | None = None,
        backend: Backend | str = Backend.THREADS,
        address: str | None = None,
    ) -> None:
        self.classes, self.warm, self.rate, self.own_rate = classes, warm, rate, own_rate
        self.random_state, self.n_jobs, self.memory = random_state, n_jobs, memory
        self.backend, self.address = choose(Backend, backend, "backend"), address
        self._learner()
        self._model: ForecastModel | None = None
        self._graph: TemporalGraph | None = None
        self._evidence: TemporalGraph | None = None
        self._forecaster: ForecastScorer | None = None
        self._seconds: dict[str, float] = {}
        self._updates: tuple[dict[str, Any], ...] = ()
        self.last_update: UpdateReport | None = None
        self.phrasings = Phrasings()

    def _learner(self) -> ForecastSettings:
        parameters = {name: getattr(self, name) for name in _PARAMETERS}
        return ForecastSettings(**parameters, seed=self.random_state)

    def _status(self) -> str:
        return "not fitted" if self._model is None else f"{len(self._model.rules):,} rules"

    def _need_fit(self) -> Any:
        if self._model is None:
            raise TilpError("the model is not fitted yet: call fit(graph) first")
        return self._model

    def _digest(self) -> str:
        digest = hashlib.sha256(json.dumps([self.graph.fingerprint()]).encode())
        for name, array in self._need_fit().to_arrays().items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    def fit(  # type: ignore[override]
        self,
        graph: TemporalGraph,
        *,
        folder: Path | str | None = None,  # noqa: ARG002
        progress: Progress | None = None,
    ) -> ForecastRules:
        """Learn from the train split, for every relation in both directions.

        Args:
            graph: The facts.
            folder: Not used: a fit is short, and is not resumed.
            progress: Called with the name of the stage, `fit`, and the share that is done.

        Returns:
            The model itself.

        Raises:
            TilpError: No training fact has a date.
        """
        stages, graph = Stages(progress), graph.canonical()
        with stages("fit") as advance:
            fitted = self._learner().fit(graph, progress=advance)
        self._use(graph, fitted)
        self._seconds, self._updates = stages.seconds, ()
        return self

    def _use(self, graph: TemporalGraph, fitted: ForecastModel) -> None:
        self._graph, self._model = graph, fitted
        self._evidence = self._forecaster = None

    def evidence(self, graph: TemporalGraph | None = None) -> TemporalGraph:
        """Return the facts of all splits as those of train, in the same rows.

        Args:
            graph: Another graph to apply the model on (default None: the model's).
        """
        if graph is not None and graph is not self.graph:
            return _all_in_train(graph)
        if self._evidence is None:
            self._evidence = _all_in_train(self.graph)
        return self._evidence

    def scorer(self, graph: TemporalGraph | None = None) -> ForecastScorer:
        """Return what scores the candidates of queries by the facts before them.

        Args:
            graph: Use its facts as evidence (default None: those of the model's graph). It has the
                same unit of time; relations that the model does not know have no rules.
        """
        fitted, evidence = self._need_fit(), self.evidence(graph)
        if graph is not None and graph is not self.graph:
            old = old_relations(graph, self.graph)
            fitted = replace(fitted.for_relations(graph.relations, old), unit=fitted.unit)
            other: ForecastScorer = fitted.scorer(evidence)
            return other
        if self._forecaster is None:
            self._forecaster = fitted.scorer(evidence)
        return self._forecaster

    @property
    def evidence_note(self) -> str:
        """Which facts answers rest on, in words."""
        undated = f"a query without a date is about {self.now}"
        return f"the facts before the query's time, of all splits; {undated}"

    @property
    def now(self) -> str:
        """The first instant after all facts, which queries without a date are asked at."""
        return format_time(self.scorer().now, self.graph.unit)

    @property
    def seconds(self) -> dict[str, float]:
        """The time that fitting took."""
        return self._seconds

    def rules(self, relation: str | None = None) -> RuleSet:
        """Return the rules of each relation and direction, the most confident first.

        Args:
            relation: Only rules for this relation, `name`, or for its inverse, `name⁻¹` or
                `name^-1` (default None: for all).
        """
        rules: RuleSet = self._need_fit().rules
        if relation is not None:
            relations = self.graph.relations
            label = relations.label(relations.find_directed(relation))
            rules = rules.filter(relation=label)
        return rules.sort()

    def curve(self, rule: Rule) -> Curve:  # type: ignore[override]
        """Return the confidence and weight of a rule by the time since its body last held."""
        found: Curve = self._need_fit().curve(rule)
        return found

    def update(
        self,
        new_facts: TemporalGraph,
        *,
        labels: ByLabel | str = ByLabel.REFUSE,
        progress: Progress | None = None,
    ) -> ForecastRules:
        """Return a model with new facts; this one stays as it is.

        New facts join the evidence, and each new training fact counts as a query for the curves of
        rules. The learned weights stay. Facts that come in the order of time give the same model,
        however they are split into updates.

        Args:
            new_facts: Facts in their splits, named as in `TILP.update`.
            labels: What to do with a name that is the label of something known (default
                `"refuse"`).
            progress: Called with the name of the stage, `count`, and the share that is done.
        """
        labels = choose(ByLabel, labels, "labels")
        merged = merge_facts(self.graph, new_facts, labels=labels)
        fitted, after = self._need_fit(), merged.graph
        with Stages(progress)("count"):
            if len(after.relations) != len(self.graph.relations):
                old = old_relations(after, self.graph)
                fitted = fitted.for_relations(after.relations, old)
            scorer = fitted.scorer(_all_in_train(after))
            if self._forecaster is not None:
                scorer.edges.extending(self._forecaster.edges)
            new = merged.added[merged.added < after.bounds[1]]
            rows = np.flatnonzero(np.isin(scorer.edges.fact, new))
            before, fitted = fitted, fitted.count(scorer.edges, rows)
        names = [after.relations.label(int(one)) for one in np.unique(after.relation[new])]
        known, now = (each.support[: len(each.table.body)].any(axis=1) for each in (before, fitted))
        changed = (fitted.body_support != before.body_support)[: len(known)].any(axis=1)
        counts = {"counted": int((changed & known).sum()), "new_rules": int((now & ~known).sum())}
        report = UpdateReport.of(self.graph, merged, touched=tuple(names), **counts)
        model = ForecastRules(**self.get_params())
        model._use(after, fitted)
        model._forecaster = replace(scorer, model=fitted)
        model._updates = (*self._updates, report.to_json()) if report.anything else self._updates
        model.last_update, model.phrasings, model._saved = report, self.phrasings, self._saved
        return model

    def forecast(self, k: int = 10, *, new_only: bool = False) -> pl.DataFrame:
        """Return the most likely facts of the next instant over all subjects, the best first.

        The probability of a fact is how likely its subject has a fact of the relation so
        long after the last one, times the share of the object among all candidates.

        Args:
            k: How many facts (int, default 10).
            new_only: Only facts of two entities that never had one of the relation before (default
                False).

        Returns:
            A row for each fact: subject, relation, object, start and probability.
        """
        scorer, graph = self.scorer(), self.evidence()
        subject, relation, chance = _next_queries(scorer)
        best: list[tuple[float, int, int, int]] = []
        for begin in range(0, len(chance), _PAIRS):
            part = slice(begin, begin + _PAIRS)
            if len(best) >= k and chance[begin] <= best[k - 1][0]:
                break
            times = np.full(len(subject[part]), scorer.now)
            none = np.full(len(times), -1, np.int32)
            asked = subject[part], relation[part]
            queries = QueryTable.from_columns(*asked, times, times, none, none)
            top = TopKPredictor(graph, scorer, k).top_candidates(queries)
            query = np.repeat(np.arange(len(times)), np.diff(top.offsets))
            likely = chance[part][query] * top.share
            kept = np.ones(len(query), np.bool_)
            if new_only:
                kept = ~_known(scorer, subject[part][query], relation[part][query], top.entity)
            rows = np.flatnonzero(kept)
            rows = rows[np.argsort(-likely[rows], kind="stable")[:k]]
            found = (likely[rows], subject[part][query[rows]], relation[part][query[rows]])
            best += zip(*(c.tolist() for c in (*found, top.entity[rows])), strict=True)
            best = sorted(best, key=lambda fact: (-fact[0], fact[1:]))[:k]
        names = [(graph.entities.label(s), graph.relations.label(r), graph.entities.label(o),
                  self.now, chance) for chance, s, r, o in best]  # fmt: skip
        columns_ = ["subject", "relation", "object", "start", "probability"]
        return pl.DataFrame(names, schema=columns_, orient="row")

    def save(self, folder: Path | str, *, replace: bool = False) -> Path:
        """Write the model and its graph to a folder; `tilp.load` reads it.

        Args:
            folder: A new or empty one.
            replace: Replace a model that is there, once the new one is written (default False).
        """
        fitted = self._need_fit()
        parameters = {name: getattr(self, name) for name in (*_PARAMETERS, "random_state")}
        parts = parameters, self.graph, fitted, self._updates
        path = save_forecast(*parts, folder, replace=replace, loaded=self._saved)
        self._saved = saved_state(path)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> ForecastRules:
        """Read a model that `save` wrote. Nothing in the folder is executed.

        Args:
            folder: Of the model.
        """
        state = saved_state(folder)
        parameters, graph, fitted, updates = load_forecast(folder)
        is_number = [type(value) in (int, float) for value in parameters.values()]
        if parameters.keys() != {*_PARAMETERS, "random_state"} or not all(is_number):
            raise TilpError(f"{folder}: a damaged model (its parameters); fit it again")
        model = cls(**parameters)
        model._saved = state
        model._use(graph, fitted)
        model._updates = updates
        return model


def _all_in_train(graph: TemporalGraph) -> TemporalGraph:
    """Return a graph whose facts are all in train, in the same rows."""
    return replace(graph, bounds=(0, len(graph), len(graph), len(graph)))


def _known(scorer: ForecastScorer, subject: Ids, relation: Ids, answer: Ids) -> Mask:
    """Mask the facts that there was one of before, at any time."""
    edges, n = scorer.edges, scorer.edges.n_entities
    known = (edges.relation.astype(np.int64) * n + edges.source) * n + edges.target
    return np.isin((relation.astype(np.int64) * n + subject) * n + answer, known)


def _next_queries(scorer: ForecastScorer) -> tuple[Ids, Ids, Floats]:
    """Return subjects and relations, and how likely each has a fact next, the likeliest first.

    The share of instants with a fact is counted by the time since the last one, and by the number
    of instants before that had one.
    """
    edges, table = scorer.edges, scorer.model.table
    forward = edges.relation < edges.n_relations
    columns = (edges.source[forward], edges.relation[forward], edges.time[forward])
    subject, relation, time = np.unique(np.stack(columns), axis=1)
    same = (np.diff(subject) == 0) & (np.diff(relation) == 0)
    first = np.flatnonzero(np.append(True, ~same))
    last = np.append(first[1:], len(time)) - 1
    position = np.arange(len(time)) - np.repeat(first, last - first + 1) + 1
    ends = np.append(time[1:], scorer.now)
    ends[last] = scorer.now
    gap, count = ends - time, np.searchsorted(table.counts, position)
    limits = np.append(table.gaps, np.iinfo(np.int64).max)
    n_counts = len(table.counts) + 1
    events, exposed = np.zeros((len(limits), n_counts)), np.zeros((len(limits), n_counts))
    repeated = np.ones(len(time), np.bool_)
    repeated[last] = False
    np.add.at(events, (np.searchsorted(table.gaps, gap[repeated]), count[repeated]), 1.0)
    step = max(int(np.gcd.reduce(np.diff(np.unique(time)))), 1) if len(time) > 1 else 1
    for index, low in enumerate(np.append(0, table.gaps).tolist()):
        at_risk = np.clip(np.minimum(gap, limits[index]) - low, 0, None) / step
        exposed[index] = np.bincount(count, at_risk, n_counts)
    hazard = np.divide(events, exposed, out=np.zeros_like(events), where=exposed > 0)
    chance = hazard[np.searchsorted(table.gaps, gap[last]), count[last]]
    order = np.argsort(-chance, kind="stable")
    last = last[order]
    return subject[last].astype(np.int32), relation[last].astype(np.int32), chance[order]
