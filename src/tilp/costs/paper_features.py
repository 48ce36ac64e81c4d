"""The stage of a fit that learns the features of the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilp.costs.calibration import Walks, calibrate, cpu_seconds
from tilp.costs.situation import Situation
from tilp.costs.stage import StageCost
from tilp.costs.walking import batch_bytes, kept_bytes
from tilp.evaluation import Ranker
from tilp.features.paper.distributions import FittedDistributions
from tilp.features.paper.evidence import Gatherer
from tilp.features.paper.features import FeatureWeights, PaperFeatures, walked_relations
from tilp.features.paper.fit import make_feature_examples
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.features.paper.training import FeatureExamples, FeatureTrainingSettings, train_features
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer
from tilp.types import Protocol

__all__ = ["paper_stage"]

_FACTS = 200  # that distributions are fitted to
_STEPS = (2, 6)  # of two trainings, whose difference is what a step takes
_EXAMPLES = 600  # that weights are learned from
_JUDGED = 5  # steps after which held-out queries are asked
_WAYS = 6  # among which held-out queries choose


def paper_stage(now: Situation, scorer: RuleScorer, budget: float) -> StageCost:
    """Distributions fitted, their weights learned, and how far they help."""
    graph, length = now.walker.graph, now.settings.mining.max_length
    seed, workers = now.settings.seed, Workers()
    settings = FeatureTrainingSettings(seed=seed)
    walked = walked_relations(graph, RuleSet(now.sample.rules))
    gather, alone = cpu_seconds(lambda: Gatherer(graph, walked, length))
    rows = np.asarray(graph.rows("train"), np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=True)
    work = Walks.of_queries(now.steps_from, queries)

    def fit(part: QueryTable) -> object:
        found = gather(part, np.arange(len(part) + 1), part.answer, workers)
        return FittedDistributions.fit(2 * len(graph.relations), part, found)

    rates = calibrate(work, lambda part: fit(part.queries), 0.3 * budget, seed)
    chance = np.random.default_rng(seed)
    facts = np.sort(chance.choice(rows, min(_FACTS, len(rows)), replace=False))
    features = PaperFeatures.fit(graph, walked, length, facts=facts, workers=workers)
    asked = now.some_training()
    make_feature_examples(
        features, scorer, asked[np.arange(1)], settings, workers
    )  # loops are compiled
    found, gathered = cpu_seconds(
        lambda: make_feature_examples(features, scorer, asked, settings, workers)
    )
    learned = min(len(now.training), settings.max_queries)
    judged = min(2 * len(now.held_out), settings.max_queries)
    learning = _learning(features, found, learned + judged / _JUDGED)
    weights = train_features(features, found, found, FeatureTrainingSettings(steps=1)).weights
    cpu = (
        rates.seconds(work.amounts())
        + gathered * (learned + judged) / max(len(asked), 1)
        + _choosing(now, PaperFeatureScorer(scorer, features, weights), weights, len(asked))
        + learning
        + alone
    )
    return StageCost(
        "features",
        float(len(queries)),
        f"facts from both ends, {FeatureTrainingSettings().steps} gradients at the most",
        cpu=cpu,
        serial=alone + learning,
        peak=kept_bytes(now) + batch_bytes(now, scorer, 1),
    )


def _learning(features: PaperFeatures, found: FeatureExamples, queries: float) -> float:
    """Seconds to learn from so many queries, with those that judge counted as far as they do.

    A step takes some time in itself and some for each query: two sizes tell both.
    """
    sizes, seconds, once = [], [], 0.0
    for times in (1, max(2, round(_EXAMPLES / max(len(found.queries), 1)))):
        more = repeated(found, times)

        def learn(steps: int, more: FeatureExamples = more) -> float:
            chosen = FeatureTrainingSettings(steps=steps, patience=steps)
            return cpu_seconds(lambda: train_features(features, more, more, chosen))[1]

        first, again = learn(_STEPS[0]), learn(_STEPS[0])
        once = max(first - again, 0.0)
        seconds.append(max(learn(_STEPS[1]) - again, 0.0) / (_STEPS[1] - _STEPS[0]))
        sizes.append(len(more.queries) * (1 + 1 / _JUDGED))  # the same learned from and judged by
    of_query = max(seconds[1] - seconds[0], 0.0) / max(sizes[1] - sizes[0], 1.0)
    of_step = max(seconds[1] - of_query * sizes[1], 0.0)
    return FeatureTrainingSettings().steps * (of_step + of_query * queries) + once


def repeated(found: FeatureExamples, times: int) -> FeatureExamples:
    """The same queries, candidates and evidence so many times."""
    evidence, size = found.evidence, len(found.evidence.candidate)
    shift = np.arange(times) * size

    def shifted(place: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.int64]:
        return (place + shift[:, None]).reshape(-1)

    return FeatureExamples(
        found.queries[np.tile(np.arange(len(found.queries)), times)],
        replace(
            evidence,
            offsets=np.append(0, shifted(evidence.offsets[1:].astype(np.int64))),
            candidate=np.tile(evidence.candidate, times),
            row=shifted(evidence.row.astype(np.int64)).astype(evidence.row.dtype),
            kind=np.tile(evidence.kind, times),
            relation=np.tile(evidence.relation, times),
            difference=np.tile(evidence.difference, times),
        ),
        np.tile(found.phi, times),
        np.where(np.tile(found.answer_row, times) < 0, -1, shifted(found.answer_row)),
    )


def _choosing(
    now: Situation, scorer: PaperFeatureScorer, weights: FeatureWeights, most: int
) -> float:
    """Seconds to rank all held-out queries in each of the ways, by some of them."""
    ranker = Ranker(now.graph, now.held_out, walked=now.walked)
    chance = np.random.default_rng(now.settings.seed)
    size = min(most, len(ranker.queries))
    part = np.sort(chance.choice(len(ranker.queries), size, replace=False))

    def rank() -> None:
        queries = ranker.queries[part]
        applied = scorer.rule_scorer.apply_rules(queries)
        for scores in scorer.score_variants([weights] * _WAYS, queries, applied):
            ranker.rank(part, scores, [Protocol.ENUMERATE])

    _, seconds = cpu_seconds(rank)
    return seconds * len(ranker.queries) / max(size, 1)
