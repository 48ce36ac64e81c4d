"""`Situation`: what a fit will be given to do, and rules of a sample to try it with."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp.costs.amounts import steps_by_length
from tilp.costs.calibration import cpu_seconds
from tilp.costs.growth import by_power, ever_slower
from tilp.datasets import world
from tilp.datasets.synthetic import MIN_SIZE
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.examples import TrainingExamples, make_training_examples, training_queries
from tilp.model import ModelSettings
from tilp.model.training_data import held_out_facts
from tilp.parallel import Workers
from tilp.rules import MinedRule
from tilp.time.imputation import MissingDates
from tilp.walks import CompiledRules, Walker
from tilp.walks.mining import mine_relations, mining_queries, mining_walker, target_facts

__all__ = ["SampledRules", "Situation", "some"]

_FIRST_FACTS = 200  # of the first sample, at the most
_FEWEST_FACTS = 30
_LIMIT = 50_000  # steps of one level while rules are only to be known, not counted
_STEP_SECONDS = 2e-8  # about, to choose how large the first sample is
_MORE = 3  # times as many facts has each sample as the one before
_MORE_SECONDS = 2  # times as long it takes, about: many facts share what is walked
_FEWEST, _MOST = 12, 200  # queries that stand for all alike
_SECONDS = 1.0  # that walks for them take, about


@dataclass(frozen=True)
class SampledRules:
    """The rules of a sample of the facts.

    Attributes:
        facts: how many were asked.
        of_relation: the rules, by relation.
    """

    facts: int
    of_relation: dict[str, list[MinedRule]]

    @property
    def rules(self) -> list[MinedRule]:
        """All of them, in the order of the relations."""
        return [one for rules in self.of_relation.values() for one in rules]


@dataclass(frozen=True)
class Situation:
    """A graph, settings, and what is known of a fit before it begins.

    Attributes:
        graph: the facts as they were given.
        settings: of the fit.
        settling: what unknown ends are taken for.
        walker: over train, its unknown ends settled.
        steps: that walks of each length take from each entity.
        mined: of each relation, what is asked to mine it.
        training: queries to learn from.
        held_out: facts that decide; `walked` whether they are among those that are walked on.
        prepared: CPU seconds until here.
        samples: rules of samples of the facts, each part of the next.
    """

    graph: TemporalGraph
    settings: ModelSettings
    settling: MissingDates
    walker: Walker
    steps: NDArray[np.float64]
    mined: dict[str, QueryTable]
    training: QueryTable
    held_out: NDArray[np.int64]
    walked: bool
    prepared: float
    samples: tuple[SampledRules, ...] = ()

    @classmethod
    def of(cls, graph: TemporalGraph, settings: ModelSettings) -> Situation:
        """Count what there is to do."""
        world(size=MIN_SIZE).graph.index()  # loops are compiled before the clock runs
        found, seconds = cpu_seconds(lambda: cls._counted(graph, settings))
        return replace(found, prepared=seconds)

    @classmethod
    def _counted(cls, graph: TemporalGraph, settings: ModelSettings) -> Situation:
        mining = settings.mining
        settling = MissingDates.fit(graph, settings.missing, settings.seed)
        walker = mining_walker(settling.fill_graph(graph), mining)
        rows, walked = held_out_facts(graph, settings)
        training = training_queries(graph, target_facts(graph, mining))
        if walked:
            training = training[~np.isin(training.fact, rows)]
        return cls(
            graph,
            settings,
            settling,
            walker,
            steps_by_length(walker),
            {one: mining_queries(walker, one, mining) for one in graph.relations},
            training,
            rows,
            walked,
            prepared=0.0,
        )

    @cached_property
    def steps_from(self) -> NDArray[np.float64]:
        """The steps of all walks from each entity."""
        found: NDArray[np.float64] = self.steps.sum(axis=0)
        return found

    @property
    def facts(self) -> int:
        """How many facts are mined."""
        return sum(map(len, self.mined.values())) // 2

    @property
    def sample(self) -> SampledRules:
        """The greatest sample."""
        return self.samples[-1]

    @cached_property
    def compiled(self) -> CompiledRules:
        """Its rules."""
        return self.walker.compile([one.rule for one in self.sample.rules])

    def sampled(self, budget: float) -> Situation:
        """The same with rules of samples that take about so many CPU seconds to mine."""
        limit = min(self.walker.limit, _LIMIT)
        rows = np.concatenate([one.fact[: len(one) // 2] for one in self.mined.values()])
        rows = np.random.default_rng([self.settings.seed, len(rows)]).permutation(rows)
        steps = np.minimum(self.steps, limit).sum(axis=0)
        graph = self.walker.graph
        of_fact = float(steps[graph.subject[rows]].mean() + steps[graph.object[rows]].mean())
        most = 0.1 * budget / (5 * of_fact * _STEP_SECONDS + 1e-6)
        size = int(np.clip(most, _FEWEST_FACTS, _FIRST_FACTS))
        self._mined(rows[:4], limit)  # loops are compiled
        samples: list[SampledRules] = []
        spent = taken = 0.0
        while not samples or (size < len(rows) and spent + _MORE_SECONDS * taken < budget):
            size = min(len(rows), size * _MORE if samples else size)
            found, taken = cpu_seconds(lambda size=size: self._mined(rows[:size], limit))  # type: ignore[misc]
            samples.append(found)
            spent += taken
        return replace(self, samples=tuple(samples))

    def _mined(self, rows: NDArray[np.int64], limit: int) -> SampledRules:
        """The rules of some facts; all are walked on, up to a limit."""
        walker = copy(self.walker)
        vars(walker).pop("steps_from", None)
        walker.limit = limit
        walked_only = np.zeros(len(self.graph), np.bool_)
        walked_only[self.graph.span("train")] = True
        walked_only[rows] = False
        walker.graph = replace(walker.graph, walked_only=walked_only)
        settings = replace(self.settings.mining, share=1.0, sample=None)
        found = dict(mine_relations(walker, list(self.mined), settings, Workers()))
        if not any(found.values()):
            fewer = replace(settings, min_support=1)
            found = dict(mine_relations(walker, list(self.mined), fewer, Workers()))
        return SampledRules(len(rows), {one: found[one] for one in self.mined})

    def rules_of_all(self) -> dict[str, int]:
        """About how many rules will be found for each relation."""
        top = self.settings.mining.top
        sizes = [(float(one.facts), float(len(one.rules))) for one in self.samples]
        more = by_power(sizes, self.facts) / max(sizes[-1][1], 1.0)
        found = {}
        for relation, rules in self.sample.of_relation.items():
            inverse = sum(one.rule.head.inverse for one in rules)
            directions = (inverse, len(rules) - inverse)
            found[relation] = sum(min(top, round(one * more)) for one in directions)
        return found

    def some_training(self) -> QueryTable:
        """Training queries that stand for all alike; few where each takes long to walk for."""
        each = float(self.steps_from[self.training.subject].sum()) / max(len(self.training), 1)
        size = int(np.clip(_SECONDS / (5 * each * _STEP_SECONDS + 1e-6), _FEWEST, _MOST))
        return some(self.training, size, self.settings.seed)

    @cached_property
    def entries(self) -> tuple[TrainingExamples, float]:
        """Entries of some training queries, and how many a query will have."""
        queries = self.settling.fill_queries(self.some_training())
        points = []
        for sample in [one for one in self.samples if one.rules][-3:]:
            rules = self.walker.compile([one.rule for one in sample.rules])
            made = make_training_examples(
                self.walker, queries, rules, Workers(), seed=self.settings.seed
            )
            points.append((float(sample.facts), len(made) / max(len(queries), 1)))
        return made, ever_slower(points, self.facts)

    @property
    def more_entries(self) -> float:
        """By how much more rules fire for a query than in the sample."""
        made, of_query = self.entries
        here = len(made) / max(len(made.queries), 1)
        return of_query / here if here else 1.0


def some(queries: QueryTable, most: int, seed: int) -> QueryTable:
    """At most so many of the queries, drawn, in their order."""
    if len(queries) <= most:
        return queries
    chance = np.random.default_rng([seed, len(queries)])
    return queries[np.sort(chance.choice(len(queries), most, replace=False))]
