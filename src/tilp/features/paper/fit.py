"""Phase two as in the paper: distributions fitted, their weights learned, the rules as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.random import keyed_sample
from tilp.evaluation import Ranker
from tilp.evaluation.filtered_ranks import best_variant
from tilp.features.negative_sampling import SampledCandidates
from tilp.features.paper.features import FEATURES, FeatureWeights, PaperFeatures
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.features.paper.training import Examples, FeatureTraining, tempered, train_features
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer, Scores
from tilp.types import Part

if TYPE_CHECKING:
    from tilp.model import ModelSettings
    from tilp.model.training_data import TrainingData

MOST_QUERIES = 4_000
"""That are learned from at the most."""

_BEST, _DRAWN = 60, 60
_BATCH = 512
_PARTS_OF_FEATURES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
# Of the work done when distributions are fitted, evidence gathered, weights trained.
_FITTED, _GATHERED, _TRAINED = 0.1, 0.2, 0.8


@dataclass(frozen=True)
class FittedPaper:
    """The paper's features, and what phase two learned of them."""

    features: PaperFeatures
    weights: FeatureWeights

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Distributions and weights as arrays by name."""
        return {**self.features.to_arrays(), **self.weights.to_arrays()}

    def of(self, heads: NDArray[np.int64], rules: NDArray[np.int64]) -> FittedPaper:
        """The same for other numbers of relations; `rules` do not matter.

        Args:
            heads: for each new head the old one; -1: none.
            rules: for each new rule the old one.
        """
        del rules
        features, place = self.features.of(heads)
        return FittedPaper(features, self.weights.of(heads, place))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], graph: TemporalGraph) -> FittedPaper:
        """Read what `to_arrays` returned, for a graph with imputed dates."""
        return cls(PaperFeatures.from_arrays(graph, arrays), FeatureWeights.from_arrays(arrays))

    @property
    def distributions(self) -> PaperFeatures:
        """The distributions of eq. 17-21."""
        return self.features

    def scorer(self, rules: RuleScorer, walk_length: int) -> PaperFeatureScorer:
        """Return the scorer of rules and features together, on the graph of the rules."""
        del walk_length
        return PaperFeatureScorer(rules, self.features.on(rules.walker.graph), self.weights)

    def refresh(
        self,
        graph: TemporalGraph,
        rules: RuleSet,
        max_length: int,
        workers: Workers,
        progress: Callable[[float], None],
    ) -> FittedPaper:
        """Fit the distributions to a changed graph with imputed dates; the weights stay.

        A pair of relations that was not seen before has the weights of such pairs.
        """
        walked = walked_relations(graph, rules)
        features = PaperFeatures.fit(graph, walked, max_length, workers=workers, progress=progress)
        directed = features.fitted.directed
        group, other = np.divmod(features.fitted.key, directed)
        pairs = self.features.fitted.places(*np.divmod(group, directed), other)
        groups = len(self.features.fitted.key) + np.arange(len(features.fitted) - len(pairs))
        place = np.concatenate([pairs, groups])
        return FittedPaper(features, self.weights.of(np.arange(directed), place))


def walked_relations(graph: TemporalGraph, rules: RuleSet) -> NDArray[np.bool_]:
    """For each head, which directed relations are in the bodies of its rules."""
    size = len(graph.relations)
    number = {name: place for place, name in enumerate(graph.relations)}

    def directed(relation: str, inverse: bool) -> int:
        return number[relation] + size * inverse

    walked = np.zeros((2 * size, 2 * size), np.bool_)
    for one in rules:
        head = one.rule.head
        for atom in one.rule.body:
            walked[directed(head.relation, head.inverse), directed(atom.relation, atom.inverse)] = (
                True
            )
    return walked


def fit_paper(
    prepared: TrainingData,
    scorer: RuleScorer,
    settings: ModelSettings,
    workers: Workers,
    progress: Callable[[float], None],
) -> FittedPaper:
    """Fit the distributions, and learn the weights of features.

    Args:
        prepared: the rules, found and applied.
        scorer: the rules, weighted.
        settings: what decides.
        workers: do not change the result.
        progress: called with the share that is done.
    """
    graph = prepared.walker.graph
    features = PaperFeatures.fit(
        graph,
        walked_relations(graph, prepared.rules),
        settings.mining.max_length,
        workers=workers,
        progress=lambda share: progress(_FITTED * share),
    )
    learned_from, held_out = (
        examples(features, scorer, part.queries, settings.seed, workers)
        for part in (prepared.training, prepared.held_out)
    )
    progress(_GATHERED)
    without = tuple(name for name in FEATURES if Part(name) in settings.without)
    trained = train_features(
        features,
        learned_from,
        held_out,
        FeatureTraining(without=without),
        workers,
        progress=lambda share: progress(_GATHERED + (_TRAINED - _GATHERED) * share),
    )
    chosen = _as_far_as_they_help(
        features,
        scorer,
        trained.weights,
        prepared.ranker,
        workers,
        lambda share: progress(_TRAINED + (1 - _TRAINED) * share),
    )
    return FittedPaper(features, tempered(features, chosen, held_out, workers))


def _as_far_as_they_help(
    features: PaperFeatures,
    scorer: RuleScorer,
    weights: FeatureWeights,
    ranker: Ranker,
    workers: Workers,
    progress: Callable[[float], None],
) -> FeatureWeights:
    """The weights with the part of γ_tfm that ranks held-out answers best.

    φ_TLR of most candidates is small and tells them apart all the same. Likelihood does not see
    that, and learns features so strong that they undo it.
    """
    ways = [replace(weights, features=weights.features * part) for part in _PARTS_OF_FEATURES]
    with_features = PaperFeatureScorer(scorer, features, weights)
    return ways[best_variant(ranker, partial(_scored, with_features, ways), workers, progress)]


def _scored(
    scorer: PaperFeatureScorer, ways: list[FeatureWeights], queries: QueryTable
) -> list[Scores]:
    return scorer.scores_by(ways, queries, scorer.rule_scorer.apply_rules(queries))


def examples(
    features: PaperFeatures,
    scorer: RuleScorer,
    queries: QueryTable,
    seed: int,
    workers: Workers,
) -> Examples:
    """Queries with the candidates that are learned from, and the evidence for these."""
    columns = (queries.fact, queries.directed_relation, queries.subject, queries.start)
    queries = queries[keyed_sample(MOST_QUERIES, seed, *columns)]
    parts = [queries[np.arange(len(queries))[begin : begin + _BATCH]]
             for begin in range(0, len(queries), _BATCH)]  # fmt: skip
    pools = list(workers.map(partial(_pooled, scorer, _BEST, _DRAWN, seed), parts))
    sizes = np.cumsum([0, *(len(pool.candidate) for pool, _ in pools)])
    moved = list(zip(pools, sizes, strict=False))
    begin = np.concatenate([np.zeros(1, np.int64), *(p.begin[1:] + by for (p, _), by in moved)])
    candidate = np.concatenate([pool.candidate for pool, _ in pools])
    evidence = features.gather(queries, begin, candidate, workers)
    return Examples(
        queries,
        evidence,
        np.concatenate([phi for _, phi in pools]),
        np.concatenate([pool.answer + by for (pool, _), by in moved]),
    )


def _pooled(
    scorer: RuleScorer, best: int, drawn: int, seed: int, queries: QueryTable
) -> tuple[SampledCandidates, NDArray[np.float64]]:
    """The candidates of some queries that are learned from, and φ_TLR of each as a share."""
    graph, scores = scorer.walker.graph, scorer(queries)
    pool = SampledCandidates.draw(graph, queries, scores, best=best, drawn=drawn, seed=seed)
    return pool, pool.score / scores.totals(len(graph.entities))[pool.query]
