"""Phase two as in the paper: fit the distributions, then learn the weights of the features."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from tilp._kernels.likelihood import FeatureTable, FeatureValues, add_feature_likelihood
from tilp._utils.arrays import Floats, Indices
from tilp._utils.random import keyed_sample
from tilp.errors import TilpError
from tilp.evaluation import Ranker
from tilp.evaluation.filtered_ranks import best_variant
from tilp.features.negative_sampling import SampledCandidates
from tilp.features.paper import features as paper
from tilp.features.paper.evidence import EVIDENCE_KINDS, Evidence
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.graph import QueryTable
from tilp.learning.attention_net import Parameters
from tilp.learning.training_loop import N_PARTS, Adam, LossCurve, mean_loss, run_training
from tilp.parallel import Workers, split_by_cost
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer
from tilp.scoring.scorer import query_batches

_SOFTPLUS_ONE = math.log(math.e - 1.0)  # its softplus is 1
_INITIAL_TEMPERATURE = 0.1
_EXCLUDED_LOGIT = -1e9  # infinite ones have no gradient
_REGULARISED = ("recurrence", "pairs")
_TEMPERATURE_FACTORS = 2.0 ** np.arange(-4, 2.25, 0.25)
_FEATURE_SCALES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
# Shares of the work done when distributions are fitted, evidence is gathered, weights are trained.
_FITTED, _GATHERED, _TRAINED = 0.1, 0.2, 0.8


@dataclass(frozen=True)
class FeatureTrainingSettings:
    """Settings of the training of the paper's features; they decide the weights."""

    steps: int = 200  # most gradient steps
    patience: int = 30  # stop after this many steps without a better loss on held-out queries
    learning_rate: float = 0.05  # learning rate; it decays to 0 along half a cosine
    l2: float = 1.0  # regularisation of w and b towards their initial values
    without: tuple[str, ...] = ()  # names of `FEATURES` to leave out
    max_queries: int = 4_000  # most queries to learn from
    n_best: int = 60  # candidates of each query to learn from: the best by the rules
    n_sampled: int = 60  # negative samples of each query
    seed: int = 0  # seed of all samples


@dataclass(frozen=True)
class FeatureExamples:
    """Queries with candidates and the evidence for them."""

    queries: QueryTable
    evidence: Evidence
    phi: Floats  # φ_TLR of each candidate
    answer_row: Indices  # index of each answer among the candidates; -1 if not listed


class FeatureObjective:
    """The mean negative log softmax of the answers over their candidates."""

    def __init__(self, features: paper.PaperFeatures, examples: FeatureExamples) -> None:
        evidence = examples.evidence
        measured = paper.evidence_probabilities(features.distributions, examples.queries, evidence)
        groups = np.arange(len(evidence.candidate) * len(EVIDENCE_KINDS) + 1)
        self._table = FeatureTable(
            evidence.offsets, examples.answer_row, measured.relation, examples.phi,
            measured.recurrence, np.searchsorted(measured.group, groups), measured.pair,
            measured.order, measured.interval,
        )  # fmt: skip
        pieces = self._table.evidence_offsets[len(EVIDENCE_KINDS) * evidence.offsets]
        self._parts = split_by_cost(np.diff(pieces) + np.diff(evidence.offsets) + 1.0, N_PARTS)
        self.n_queries = int((examples.answer_row >= 0).sum())

    def __call__(self, values: FeatureValues, workers: Workers) -> tuple[float, FeatureValues]:
        """Return the mean loss, and its gradient."""

        def part_loss(part: slice, slopes: list[Floats]) -> float:
            gradient = FeatureValues(*slopes)
            return add_feature_likelihood(part.start, part.stop, self._table, values, gradient)

        shapes = [array.shape for array in values]
        loss, slopes = mean_loss(part_loss, self._parts, shapes, self.n_queries, workers)
        return loss, FeatureValues(*slopes)


def feature_values(weights: paper.FeatureWeights) -> FeatureValues:
    """Return the weights as the objective reads them."""
    of_pairs = (weights.order_weight, weights.order_bias, weights.pair_weight, weights.pair_bias)
    recurrence = np.stack([weights.recurrence_weight, weights.recurrence_bias])
    scale = np.array([weights.rules, 1.0 / weights.temperature])
    return FeatureValues(recurrence, np.stack(of_pairs, axis=1), weights.factors, scale)


def train_features(
    features: paper.PaperFeatures, training: FeatureExamples, held_out: FeatureExamples,
    settings: FeatureTrainingSettings, workers: Workers | None = None, *,
    progress: Callable[[float], None] | None = None,
) -> tuple[paper.FeatureWeights, LossCurve]:  # fmt: skip
    """Learn weights by the softmax of φ_TILP over candidates; return the best, and losses."""
    workers = workers or Workers()
    objective, judge = (FeatureObjective(features, examples) for examples in (training, held_out))
    if not objective.n_queries:
        raise TilpError(
            "temporal features have nothing to learn from: no query has its answer among its "
            "candidates; add it to them"
        )
    # Where no held-out query has its answer listed, training queries decide.
    judge = judge if judge.n_queries else objective
    initial = _initial(features, settings.without)
    state = run_training(
        initial,
        Adam(dict.fromkeys(initial, settings.learning_rate), settings.steps),
        lambda values: _gradient(values, initial, settings.l2, objective, workers),
        lambda values: judge(feature_values(_weights(values)), workers)[0],
        steps=settings.steps,
        patience=settings.patience,
        progress=progress,
    )
    return _weights(state.best), state.curve


def calibrate_temperature(
    features: paper.PaperFeatures, weights: paper.FeatureWeights, held_out: FeatureExamples,
    workers: Workers,
) -> paper.FeatureWeights:  # fmt: skip
    """Return the weights with the temperature that makes held-out answers likeliest."""
    judge = FeatureObjective(features, held_out)
    temperatures = weights.temperature * _TEMPERATURE_FACTORS
    variants = [replace(weights, temperature=temperature) for temperature in temperatures]
    losses = [judge(feature_values(variant), workers)[0] for variant in variants]
    return variants[int(np.argmin(losses))]


def _initial(features: paper.PaperFeatures, without: tuple[str, ...]) -> Parameters:
    """Return initial parameters: probabilities as they are, all features in equal shares."""
    n_directed, n_pairs = features.distributions.n_directed, len(features.distributions)
    mixing = np.zeros((len(EVIDENCE_KINDS), len(paper.FEATURES)))
    mixing[EVIDENCE_KINDS.index("walks"), paper.FEATURES.index("recurrence")] = -np.inf
    mixing[:, [paper.FEATURES.index(name) for name in without]] = -np.inf
    return {
        "recurrence": jnp.stack([jnp.ones((2, n_directed)), jnp.zeros((2, n_directed))]),
        "pairs": jnp.zeros((n_pairs, 4)),
        "mixing": jnp.asarray(mixing),
        "evidence": jnp.full(len(EVIDENCE_KINDS), _SOFTPLUS_ONE),
        "parts": jnp.full(2, _SOFTPLUS_ONE),
        "temperature": jnp.log(jnp.array(_INITIAL_TEMPERATURE)),
    }


def _gradient(
    values: Parameters, initial: Parameters, l2: float, objective: FeatureObjective,
    workers: Workers,
) -> tuple[float, Parameters]:  # fmt: skip
    scalars = {name: value for name, value in values.items() if name not in _REGULARISED}
    _, vjp = jax.vjp(_factors, scalars)
    loss, slopes = objective(feature_values(_weights(values)), workers)
    gradient = {"recurrence": slopes.recurrence, "pairs": slopes.pairs}
    for name in _REGULARISED:
        distance = np.asarray(values[name] - initial[name], np.float64)
        loss += 0.5 * l2 * float((distance * distance).sum()) / objective.n_queries
        gradient[name] = gradient[name] + l2 * distance / objective.n_queries
    (of_scalars,) = vjp((jnp.asarray(slopes.factor), jnp.asarray(slopes.scale)))
    return loss, {**gradient, **of_scalars}


def _factors(values: Parameters) -> tuple[jax.Array, jax.Array]:
    """Return the factor of φ of each kind and feature; that of φ_TLR, and 1 / temperature."""
    rules, features = jax.nn.softplus(values["parts"])
    evidence = jax.nn.softplus(values["evidence"])
    factor = features * evidence[:, None] * _mixing(values["mixing"])
    return factor, jnp.stack([rules, jnp.exp(-values["temperature"])])


def _mixing(logits: jax.Array) -> jax.Array:
    """Return γ of eq. 19-21: shares of the features in each kind of evidence."""
    used = jnp.isfinite(logits)
    return jax.nn.softmax(jnp.where(used, logits, _EXCLUDED_LOGIT), axis=1) * used


def _weights(values: Parameters) -> paper.FeatureWeights:
    """Return the weights of the equations that the parameters stand for."""
    arrays = {name: np.asarray(value, np.float64) for name, value in values.items()}
    # Shares in single precision would not add up to 1.
    mixing = np.asarray(_mixing(values["mixing"]), np.float64)
    rules, features = np.logaddexp(0.0, arrays["parts"])
    return paper.FeatureWeights(
        recurrence_weight=arrays["recurrence"][0],
        recurrence_bias=arrays["recurrence"][1],
        order_weight=arrays["pairs"][:, 0],
        order_bias=arrays["pairs"][:, 1],
        pair_weight=arrays["pairs"][:, 2],
        pair_bias=arrays["pairs"][:, 3],
        mixing=mixing / np.where(mixing.any(axis=1), mixing.sum(axis=1), 1.0)[:, None],
        evidence=np.logaddexp(0.0, arrays["evidence"]),
        rules=float(rules),
        features=float(features),
        temperature=float(np.exp(arrays["temperature"])),
    )


def fit_paper(
    scorer: RuleScorer, rules: RuleSet, training: QueryTable, held_out: QueryTable, ranker: Ranker,
    settings: FeatureTrainingSettings, workers: Workers, progress: Callable[[float], None],
) -> paper.FittedPaper:  # fmt: skip
    """Fit the distributions on the scorer's graph, and learn the weights of features.

    Walks use the relations of `rules`. The held-out queries decide when to stop, and the
    temperature; the ranks of `ranker` decide how much the features count.
    """

    def between(first: float, last: float) -> Callable[[float], None]:
        return lambda share: progress(first + (last - first) * share)

    graph, max_length = scorer.walker.graph, scorer.walker.max_length
    walked, done = paper.walked_relations(graph, rules), between(0.0, _FITTED)
    features = paper.PaperFeatures.fit(graph, walked, max_length, workers=workers, progress=done)
    examples, judge = (
        make_feature_examples(features, scorer, queries, settings, workers)
        for queries in (training, held_out)
    )
    progress(_GATHERED)
    done = between(_GATHERED, _TRAINED)
    trained, _ = train_features(features, examples, judge, settings, workers, progress=done)
    # φ_TLR of most candidates is small, yet tells them apart. Likelihood does not see that, and
    # learns features so strong that they undo it. So ranks decide how much the features count.
    variants = [replace(trained, features=trained.features * scale) for scale in _FEATURE_SCALES]
    score = partial(PaperFeatureScorer(scorer, features, trained).score_variants, variants)
    memory = scorer.memory_per_query(ranker.queries)
    best = variants[best_variant(ranker, score, memory, workers, between(_TRAINED, 1.0))]
    return paper.FittedPaper(features, calibrate_temperature(features, best, judge, workers))


def make_feature_examples(
    features: paper.PaperFeatures, scorer: RuleScorer, queries: QueryTable,
    settings: FeatureTrainingSettings, workers: Workers,
) -> FeatureExamples:  # fmt: skip
    """Sample queries and their candidates, and gather the evidence for these."""
    columns = (queries.fact, queries.directed_relation, queries.subject, queries.start)
    queries = queries[keyed_sample(settings.max_queries, settings.seed, *columns)]
    rows, memory = np.arange(len(queries)), scorer.memory_per_query(queries)
    batches = [queries[part] for part in query_batches(rows, memory, workers.block_bytes)]
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
    choice = (settings.n_best, settings.n_sampled, settings.seed)
    sample = SampledCandidates.sample(graph, queries, scores, *choice)
    return sample, sample.score / scores.totals(len(graph.entities))[sample.query]
