"""Phase two with all features: learn the log-linear weights of every directed relation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tilp._kernels.likelihood import LogLinearTable
from tilp._kernels.score import list_rule_evidence
from tilp._utils.arrays import Floats, Ids, Indices
from tilp._utils.files import load_or_compute
from tilp._utils.random import keyed_sample, keyed_uniform
from tilp.features import candidate_history, log_linear
from tilp.features.candidate_counts import COUNT_FEATURES
from tilp.features.entity_kinds import EntityKinds
from tilp.features.negative_sampling import SampledCandidates
from tilp.features.random_walks import RandomWalks, time_scale
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.scoring import RuleScorer, RuleWeights
from tilp.scoring.scorer import query_batches
from tilp.types import Part

N_FOLDS = 2
_BYTES_PER_QUERY = 80_000  # in the table of a relation, with copies on the way
_INDEXED = {
    "offsets": "log_count",
    "answer": "log_count",
    "rule_offsets": "rule",
    "history_offsets": "history_feature",
}  # columns of a table that hold indices of rows of another column


@dataclass(frozen=True)
class LogLinearSettings:
    """Settings of the training of log-linear weights."""

    walk_length: int = 5  # longest random walk
    without: tuple[Part, ...] = ()  # parts of the score to leave out
    max_queries: int = 12_000  # most queries of a directed relation to learn from
    n_best: int = 40  # candidates of each query to learn from: the best by the rules
    n_sampled: int = 40  # negative samples of each query
    seed: int = 0  # seed of all samples
    max_steps: int = log_linear.DEFAULT_MAX_STEPS  # most steps of the optimiser


def fold_index(fact: Ids | Indices, seed: int) -> Indices:
    """Return the fold of each fact; queries in both directions are in the same fold."""
    return (keyed_uniform(seed, fact) * N_FOLDS).astype(np.int64)


def fit_log_linear(
    scorer: RuleScorer, out_of_fold: tuple[RuleWeights, ...], queries: QueryTable,
    settings: LogLinearSettings, workers: Workers, *, kinds: EntityKinds | None, folder: Path,
    progress: Callable[[float], None],
) -> tuple[log_linear.LogLinearWeights, ...]:  # fmt: skip
    """Learn the log-linear weights of every directed relation without each fold, then their mean.

    `out_of_fold` holds rule weights that were learned without each fold, `kinds` those of entities,
    if they count. Finished relations are saved in `folder`, where a later run continues.
    """
    graph = scorer.walker.graph
    edges, n_directed = candidate_history.fact_edges(graph), 2 * len(graph.relations)
    bounds = candidate_history.distance_bounds(graph)
    history = candidate_history.CandidateHistory(edges, n_directed, bounds)
    walks = RandomWalks.for_walker(scorer.walker, edges, time_scale(graph), settings.walk_length)
    rules = tuple(scorer.with_weights(weights) for weights in out_of_fold)
    learner = RelationLearner(rules, history, walks, settings, workers.block_bytes)
    sampled = [
        _sample_queries(queries[queries.directed_relation == relation], settings)
        for relation in range(n_directed)
    ]
    # The largest first: workers then end at about the same time.
    order = sorted(range(n_directed), key=lambda relation: -len(sampled[relation]))
    files = [folder / f"head-{relation}.npz" for relation in range(n_directed)]
    unfinished = [relation for relation in order if not files[relation].exists()]
    to_learn = [sampled[relation] for relation in unfinished]
    learned = workers.map(learner.fit, to_learn, [_BYTES_PER_QUERY * len(q) for q in to_learn])
    weights: dict[int, tuple[log_linear.RelationWeights, ...]] = {}
    sizes = np.array([len(sampled[relation]) for relation in order]) + 1.0
    done = np.cumsum(sizes) / sizes.sum()
    # Sums of linear algebra depend on its threads, and these would wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for relation, share in zip(order, done.tolist(), strict=True):
            weights[relation] = load_or_compute(
                files[relation], lambda: next(learned), _to_arrays, _from_arrays
            )
            progress(share)
    by_fold = zip(*(weights[relation] for relation in range(n_directed)), strict=True)
    counts = np.zeros((n_directed, len(COUNT_FEATURES)))
    if kinds is not None:
        counts[:, -1] = kinds.weights(queries, settings.seed)
    n_rules = len(out_of_fold[0].rule)
    return tuple(_join_weights(fold, learner, n_rules, counts) for fold in by_fold)


def _sample_queries(queries: QueryTable, settings: LogLinearSettings) -> QueryTable:
    """Sample queries, and sort them by subject, as walks prefer."""
    columns = (queries.fact, queries.directed_relation)
    queries = queries[keyed_sample(settings.max_queries, settings.seed, *columns)]
    return queries[np.argsort(queries.subject, kind="stable")]


@dataclass(frozen=True)
class RelationLearner:
    """Learns the weights of one directed relation."""

    scorers: tuple[RuleScorer, ...]  # the rules, with weights that were learned without each fold
    history: candidate_history.CandidateHistory
    random_walks: RandomWalks
    settings: LogLinearSettings
    block_bytes: float = np.inf  # that the rules applied to a batch of queries may take

    def fit(self, queries: QueryTable) -> tuple[log_linear.RelationWeights, ...]:
        """Learn the weights of a relation without each fold, then their mean."""
        fold_ids = fold_index(queries.fact, self.settings.seed)
        tables, folds = [], []
        for fold in range(N_FOLDS):
            scorer = self.scorers[fold]
            rows = np.flatnonzero(fold_ids == fold)
            memory = scorer.memory_per_query(queries[rows])
            for part in query_batches(rows, memory, self.block_bytes) if len(rows) else ():
                tables.append(self._batch_table(scorer, queries[part]))
                folds.append(np.full(len(part), fold))
        if not tables:
            return (log_linear.rules_only(),) * (N_FOLDS + 1)
        table = _leave_out(_join_tables(tables), self.settings.without)
        return log_linear.fit_relation_weights(
            table, np.concatenate(folds), N_FOLDS, self.settings.max_steps
        )

    def _batch_table(self, scorer: RuleScorer, queries: QueryTable) -> LogLinearTable:
        settings, graph = self.settings, scorer.walker.graph
        queries = scorer.fill_dates(queries)
        applied = scorer.apply_rules(queries)
        scores = scorer.score(queries, applied)
        sample = SampledCandidates.sample(
            graph, queries, scores, settings.n_best, settings.n_sampled, settings.seed
        )
        listed = candidate_history.listed_candidates(queries, sample.offsets, sample.candidate)
        dense = np.zeros((len(sample.candidate), len(log_linear.DENSE_FEATURES)))
        dense[:, 0] = np.log(sample.score / sample.default[sample.query])
        dense[:, 1] = self.random_walks.log_scores(listed)
        rule_evidence = list_rule_evidence(
            *applied.rows, sample.offsets, sample.candidate, len(graph.entities)
        )
        sparse = (*rule_evidence, *self.history.list_features(listed))
        return LogLinearTable(sample.offsets, sample.answer_index, sample.log_count, dense, *sparse)


def _leave_out(table: LogLinearTable, without: tuple[Part, ...]) -> LogLinearTable:
    if Part.SOFT_WALKS in without:
        dense = table.columns.copy()
        dense[:, 1] = 0.0
        table = table._replace(columns=dense)
    if Part.RULE_EVIDENCE in without:
        none = {"rule": table.rule[:0], "root_rate": table.root_rate[:0]}
        table = table._replace(rule_offsets=np.zeros_like(table.rule_offsets), **none)
    if Part.OWN_FACTS in without:
        offsets = np.zeros_like(table.history_offsets)
        table = table._replace(history_offsets=offsets, history_feature=table.history_feature[:0])
    return table


def _join_tables(tables: list[LogLinearTable]) -> LogLinearTable:
    """Concatenate tables, and shift their indices and offsets."""
    columns = {}
    for name in LogLinearTable._fields:
        arrays = [getattr(table, name) for table in tables]
        if name in _INDEXED:
            sizes = [len(getattr(table, _INDEXED[name])) for table in tables]
            shifts = np.cumsum([0, *sizes[:-1]])
            arrays = [array + shift for array, shift in zip(arrays, shifts, strict=True)]
        if name.endswith("offsets"):  # the end of a table is where the next one begins
            arrays = [*(array[:-1] for array in arrays[:-1]), arrays[-1]]
        columns[name] = np.concatenate(arrays)
    return LogLinearTable(**columns)


def _join_weights(
    of_relations: Sequence[log_linear.RelationWeights],
    learner: RelationLearner,
    n_rules: int,
    counts: Floats,
) -> log_linear.LogLinearWeights:
    history, n_directed = learner.history, len(of_relations)
    rule = np.zeros(n_rules)
    history_row = np.full((n_directed, history.n_groups), -1, np.int32)
    rows: list[Floats] = []
    for relation, weights in enumerate(of_relations):
        rule[weights.rule] = weights.rule_weight
        groups, feature = np.divmod(weights.history_feature, history.n_features)
        for group in np.unique(groups):
            mask = groups == group
            row = np.zeros(history.n_features)
            row[feature[mask]] = weights.history_weight[mask]
            history_row[relation, group] = len(rows)
            rows.append(row)
    return log_linear.LogLinearWeights(
        dense=np.array([weights.dense for weights in of_relations]),
        rule=rule,
        history_row=history_row,
        history=np.array(rows).reshape(-1, history.n_features),
        terms=np.ones((n_directed, len(log_linear.TERMS))),
        counts=counts,
        distance_bounds=history.bounds,
        time_scale=learner.random_walks.scale,
    )


def _to_arrays(folds: tuple[log_linear.RelationWeights, ...]) -> dict[str, Any]:
    return {
        f"{name}-{fold}": array
        for fold, weights in enumerate(folds)
        for name, array in vars(weights).items()
    }


def _from_arrays(arrays: dict[str, Any]) -> tuple[log_linear.RelationWeights, ...]:
    names = [column.name for column in fields(log_linear.RelationWeights)]
    return tuple(
        log_linear.RelationWeights(*(arrays[f"{name}-{fold}"] for name in names))
        for fold in range(N_FOLDS + 1)
    )
