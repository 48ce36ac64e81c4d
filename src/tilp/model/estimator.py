"""`TILP`: the estimator. Fit it to a graph, read its rules, ask it, measure it, save it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp.attention.state import LossCurve
from tilp.attention.training import TrainingSettings
from tilp.choices import Features, Grain, Missing, Protocol, Weights
from tilp.choosing import choose
from tilp.errors import TilpError
from tilp.evaluation import Evaluation, evaluate
from tilp.features.settling import Settling
from tilp.graph import INVERSE_MARK, TemporalGraph
from tilp.model.fitting import Fitted, fit_rules
from tilp.model.queries import Query, answers, query_table, read_queries
from tilp.model.settings import ModelSettings
from tilp.model.stages import Progress
from tilp.parallel import thread_count
from tilp.ranking import RuleScorer, RuleWeights
from tilp.rules import MinedRule, RuleSet
from tilp.walks import MiningSettings
from tilp.walks.mining import mining_walker
from tilp.walks.walker import DEFAULT_LIMIT

__all__ = ["DEFAULT_GRAINS", "TILP"]

DEFAULT_GRAINS = (Grain.PAIRS, Grain.GAP, Grain.ALLEN)


def _chosen_grains(grains: Sequence[Grain | str]) -> tuple[Grain, ...]:
    if not grains:
        raise TilpError(f"choose at least one of the grains {', '.join(Grain)}")
    return tuple(choose(Grain, grain, "grains") for grain in grains)


class TILP:
    """Temporal logical rules, found in a graph and weighted, that predict its missing links.

    Args:
        max_length: of rules.
        grains: how finely rules speak of time.
        weights: what a rule's weight is made of: `free`, `attention` or `hybrid`.
        features: which temporal features join the rules.
        missing: what a start or end that is not known is taken for, of facts and of queries:
            the other one (`point`), a draw from the relation's durations (`duration`), open
            (`open`), or every reading of it (`unknown`).
        min_support: facts whose answer a rule must reach.
        top: rules kept for each relation and direction.
        share: of the training facts that are learned from; all of them are walked on.
        sample: facts of each relation that rules are looked for at the most; None for all.
        limit: steps that walks of one length may take from one entity before they are sampled.
        seed: for everything that is drawn.
        threads: None for all; they do not change anything but time.
        training: finer choices for the weights; `weights` and `seed` above are put into it.

    >>> import tilp
    >>> model = tilp.TILP(max_length=1, sample=50).fit(tilp.datasets.world(0, 1000).graph)
    >>> print(model.rules("diedIn")[0].rule)
    diedIn(E1,E2,I2) ← livesIn(E1,E2,I1) ∧ touching(I1,I2)
    """

    def __init__(
        self,
        max_length: int = 3,
        *,
        grains: Sequence[Grain | str] = DEFAULT_GRAINS,
        weights: Weights | str = Weights.FREE,
        features: Features | str = Features.NONE,
        missing: Missing | str = Missing.POINT,
        min_support: int = 2,
        top: int = 3_000,
        share: float = 1.0,
        sample: int | None = None,
        limit: int = DEFAULT_LIMIT,
        seed: int = 0,
        threads: int | None = None,
        training: TrainingSettings | None = None,
    ) -> None:
        self.settings = ModelSettings(
            mining=MiningSettings(
                grains=_chosen_grains(grains),
                max_length=max_length,
                min_support=min_support,
                top=top,
                share=share,
                sample=sample,
                limit=limit,
                seed=seed,
            ),
            training=replace(
                training or TrainingSettings(),
                weights=choose(Weights, weights, "weights"),
                seed=seed,
            ),
            features=choose(Features, features, "features"),
            missing=choose(Missing, missing, "missing"),
            seed=seed,
        )
        self.threads = thread_count(threads)
        self._graph: TemporalGraph | None = None
        self._fitted: Fitted | None = None

    @classmethod
    def of(cls, settings: ModelSettings, graph: TemporalGraph, fitted: Fitted) -> TILP:
        """A model from its parts."""
        model = cls()
        model.settings, model._graph, model._fitted = settings, graph, fitted
        return model

    def __repr__(self) -> str:
        mining = self.settings.mining
        words = f"max_length={mining.max_length}, weights={self.settings.training.weights.value}"
        if self._fitted is None:
            return f"TILP({words}; not fitted)"
        return f"TILP({words}; {len(self._fitted.rules):,} rules)"

    def fit(
        self,
        graph: TemporalGraph,
        *,
        folder: Path | str | None = None,
        progress: Progress | None = None,
    ) -> TILP:
        """Find rules in the train split and learn their weights; valid decides when to stop.

        Args:
            graph: the facts.
            folder: to work in; a fit that was killed goes on from what it left there. A temporary
                one by default.
            progress: called with the name of a stage and the share of it that is done.
        """
        if not len(graph.rows("train")):
            raise TilpError("there are no training facts to learn from")
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(folder) if folder is not None else Path(temporary) / "fit"
            self._fitted = fit_rules(
                graph, self.settings, folder=place, threads=self.threads, progress=progress
            )
        self._graph = graph
        return self

    @property
    def graph(self) -> TemporalGraph:
        """The graph that the model was fitted to, with all its splits."""
        self._need_fit()
        assert self._graph is not None
        return self._graph

    @property
    def weights(self) -> RuleWeights:
        """The weights of rules, of the prior, and the factors of known candidates."""
        return self._need_fit().weights

    @property
    def curve(self) -> LossCurve:
        """The loss of training, step by step."""
        return self._need_fit().curve

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage of fitting took."""
        return self._need_fit().seconds

    def rules(self, relation: str | None = None) -> RuleSet:
        """The rules, the heaviest first; of one relation `name`, or `name⁻¹`, if one is given."""
        rules = self._need_fit().rules
        if relation is not None:
            name = relation.removesuffix(INVERSE_MARK).removesuffix("^-1")
            found = self.graph.relations.label(self.graph.relations.find(name))
            mark = INVERSE_MARK if name != relation else ""
            rules = rules.filter(relation=f"{found}{mark}")
        return rules.sort(lambda one: one.weight or 0.0)

    def scorer(self, graph: TemporalGraph | None = None) -> RuleScorer:
        """What scores the candidates of queries.

        Args:
            graph: whose train split is the evidence; that of the model by default. Another graph
                has the same relations, by their names, and the same unit of time.
        """
        fitted = self._need_fit()
        if graph is None or graph is self._graph:
            return self._scorer_on(self.graph, fitted.rules, fitted.weights)
        if graph.unit is not self.graph.unit:
            raise TilpError(
                f"times of the other graph count {graph.unit.value}s, of the model's "
                f"{self.graph.unit.value}s; read it with unit={self.graph.unit.value!r}"
            )
        return self._scorer_elsewhere(graph, fitted)

    def _scorer_elsewhere(self, graph: TemporalGraph, fitted: Fitted) -> RuleScorer:
        """The rules whose relations another graph has, on that graph."""
        here = {name: number for number, name in enumerate(self.graph.relations)}
        there = list(graph.relations)
        kept = [
            number
            for number, one in enumerate(fitted.rules)
            if {one.rule.head.relation, *(atom.relation for atom in one.rule.body)} <= set(there)
        ]
        if not kept:
            raise TilpError(
                f"no rule of the model speaks of the other graph's relations: {', '.join(there)}"
            )
        size = len(here)
        heads = [here.get(name, -1) for name in there]
        both = np.array([*heads, *(head + size if head >= 0 else -1 for head in heads)])
        prior = np.where(both >= 0, fitted.weights.prior[both], 1.0)
        factor = np.where(both[:, None] >= 0, fitted.weights.factor[both], 1.0)
        weights = replace(
            fitted.weights, rule=fitted.weights.rule[kept], prior=prior, factor=factor
        )
        return self._scorer_on(graph, [fitted.rules[number] for number in kept], weights)

    def _scorer_on(
        self, graph: TemporalGraph, rules: Iterable[MinedRule], weights: RuleWeights
    ) -> RuleScorer:
        settling = Settling.fit(self.graph, self.settings.missing, self.settings.seed)
        settling = settling.on(graph.relations)
        walker = mining_walker(settling.graph(graph), self.settings.mining)
        return RuleScorer(walker, [one.rule for one in rules], weights, settling)

    def predict(
        self,
        queries: Query | Iterable[Query | dict[str, Any]] | pl.DataFrame,
        k: int = 10,
        *,
        graph: TemporalGraph | None = None,
    ) -> pl.DataFrame:
        """The k best candidates of each query, as a labelled table.

        Args:
            queries: one or many; mappings and frames have the fields of `Query`.
            k: how many candidates.
            graph: another graph to apply the rules on; its entities may be all new.
        """
        if k < 1:
            raise TilpError(f"k is {k}; at least one candidate is asked for")
        asked = read_queries(queries)
        evidence = graph if graph is not None else self.graph
        table = query_table(evidence, asked)
        return answers(evidence, asked, table, self.scorer(graph)(table), k)

    def evaluate(
        self,
        split: str = "test",
        *,
        protocols: Iterable[Protocol | str] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Evaluation:
        """Rank the answers of a split's facts, both ways, with train alone as evidence."""
        return evaluate(
            self.scorer(),
            self.graph,
            split,
            protocols=protocols,
            threads=self.threads,
            progress=progress,
            note=repr(self),
        )

    def save(self, folder: Path | str) -> Path:
        """Write the whole model to a folder that `tilp.load` reads."""
        from tilp.model.saving import save_model

        return save_model(self.settings, self.graph, self._need_fit(), folder)

    def _need_fit(self) -> Fitted:
        if self._fitted is None:
            raise TilpError("the model is not fitted yet: call fit(graph) first")
        return self._fitted
