"""Phase two as in the paper: fit the distributions, then learn the weights of the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tilp._utils.arrays import Floats
from tilp._utils.random import keyed_sample
from tilp.evaluation import Ranker
from tilp.evaluation.filtered_ranks import best_variant
from tilp.features.negative_sampling import SampledCandidates
from tilp.features.paper.features import FittedPaper, PaperFeatures, walked_relations
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.features.paper.training import (
    FeatureExamples,
    FeatureTrainingSettings,
    calibrate_temperature,
    train_features,
)
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer

_BATCH = 512
_FEATURE_SCALES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
# Shares of the work done when distributions are fitted, evidence is gathered, weights are trained.
_FITTED, _GATHERED, _TRAINED = 0.1, 0.2, 0.8


def fit_paper(
    scorer: RuleScorer,
    rules: RuleSet,
    training: QueryTable,
    held_out: QueryTable,
    ranker: Ranker,
    settings: FeatureTrainingSettings,
    workers: Workers,
    progress: Callable[[float], None],
) -> FittedPaper:
    """Fit the distributions on the scorer's graph, and learn the weights of features.

    Walks use the relations of `rules`. The held-out queries decide when to stop, and the
    temperature; the ranks of `ranker` decide how much the features count.
    """

    def between(first: float, last: float) -> Callable[[float], None]:
        return lambda share: progress(first + (last - first) * share)

    graph, max_length = scorer.walker.graph, scorer.walker.max_length
    walked, done = walked_relations(graph, rules), between(0.0, _FITTED)
    features = PaperFeatures.fit(graph, walked, max_length, workers=workers, progress=done)
    examples, judge = (
        make_feature_examples(features, scorer, queries, settings, workers)
        for queries in (training, held_out)
    )
    progress(_GATHERED)
    done = between(_GATHERED, _TRAINED)
    trained = train_features(features, examples, judge, settings, workers, progress=done).weights
    # φ_TLR of most candidates is small, yet tells them apart. Likelihood does not see that, and
    # learns features so strong that they undo it. So ranks decide how much the features count.
    variants = [replace(trained, features=trained.features * scale) for scale in _FEATURE_SCALES]
    score = partial(PaperFeatureScorer(scorer, features, trained).score_variants, variants)
    best = variants[best_variant(ranker, score, workers, between(_TRAINED, 1.0))]
    return FittedPaper(features, calibrate_temperature(features, best, judge, workers))


def make_feature_examples(
    features: PaperFeatures,
    scorer: RuleScorer,
    queries: QueryTable,
    settings: FeatureTrainingSettings,
    workers: Workers,
) -> FeatureExamples:
    """Sample queries and their candidates, and gather the evidence for these."""
    columns = (queries.fact, queries.directed_relation, queries.subject, queries.start)
    queries = queries[keyed_sample(settings.max_queries, settings.seed, *columns)]
    rows = np.arange(len(queries))
    batches = [queries[rows[first : first + _BATCH]] for first in range(0, len(queries), _BATCH)]
    samples = list(workers.map(partial(_sample_candidates, scorer, settings), batches))
    shifts = np.cumsum([0, *(len(sample.candidate) for sample, _ in samples)])[:-1]
    shifted = list(zip((sample for sample, _ in samples), shifts, strict=True))
    offsets = [np.zeros(1, np.int64), *(sample.offsets[1:] + by for sample, by in shifted)]
    candidate = np.concatenate([sample.candidate for sample, _ in samples])
    return FeatureExamples(
        queries,
        features.gather(queries, np.concatenate(offsets), candidate, workers),
        np.concatenate([phi for _, phi in samples]),
        np.concatenate([sample.answer_index + by for sample, by in shifted]),
    )


def _sample_candidates(
    scorer: RuleScorer, settings: FeatureTrainingSettings, queries: QueryTable
) -> tuple[SampledCandidates, Floats]:
    """Sample the candidates of some queries; return φ_TLR of each as a share as well."""
    graph, scores = scorer.walker.graph, scorer(queries)
    sample = SampledCandidates.sample(
        graph, queries, scores, settings.n_best, settings.n_sampled, settings.seed
    )
    return sample, sample.score / scores.totals(len(graph.entities))[sample.query]
