"""Stacking: factors for the terms of a score, learned from facts that were really held out.

Other weights are learned from training queries with their own fact left out, one at a time. Such a
fact is unlike one that was never there: its neighbours are complete. So the last stage removes
facts of train in folds, scores their queries on the graph without the fold, with weights learned
without it, and learns how much each term of the score is worth there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from tilp._utils.arrays import Floats, Ids, Indices, Mask
from tilp._utils.random import keyed_uniform
from tilp.features.candidate_counts import COUNT_FEATURES
from tilp.features.log_linear import TERMS, LogLinearWeights
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.log_linear_training import N_FOLDS, LogLinearSettings, fold_index
from tilp.features.negative_sampling import SampledCandidates
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.examples import forecast_queries
from tilp.parallel import Workers
from tilp.scoring import RuleWeights
from tilp.scoring.scorer import query_batches
from tilp.time import FAR, known_ends
from tilp.types import Part

_MAX_REMOVED = 0.12  # share of the training facts in a fold: the graph stays like the whole one
_MAX_FACTS = 400  # of one relation in a fold
_N_BEST = 40  # candidates of each query to learn from: the best by their score
_L2 = 1.0  # of the weights that all relations share
_RELATION_L2 = 5.0  # of each relation's weights, towards the shared ones
_VALID_L2 = 10.0  # of the weights adjusted on valid, towards those from folds


@dataclass(frozen=True)
class TermTable:
    """Terms of the best candidates of queries; each query's answer is among them."""

    offsets: Indices  # where the candidates of each query begin, and where the last end
    answer: Indices  # index of each query's answer among all candidates
    values: Floats  # `TERMS` and `COUNT_FEATURES` of each candidate
    relation: Ids  # directed relation of each query

    @classmethod
    def join(cls, tables: Sequence[TermTable]) -> TermTable:
        """Concatenate tables."""
        shifts = np.cumsum([0, *(len(table.values) for table in tables)])
        shifted = list(zip(tables, shifts.tolist(), strict=False))
        return cls(
            np.concatenate([[0], *(table.offsets[1:] + shift for table, shift in shifted)]),
            np.concatenate([table.answer + shift for table, shift in shifted]),
            np.concatenate([table.values for table in tables]),
            np.concatenate([table.relation for table in tables]),
        )

    def select(self, queries: Mask) -> TermTable:
        """Return the rows of some of the queries."""
        sizes = np.diff(self.offsets)
        offsets = np.append(0, np.cumsum(sizes[queries]))
        answer = (self.answer - self.offsets[:-1])[queries] + offsets[:-1]
        values = self.values[np.repeat(queries, sizes)]
        return TermTable(offsets, answer, values, self.relation[queries])


_WIDTH = len(TERMS) + len(COUNT_FEATURES)
_EMPTY = TermTable(
    np.zeros(1, np.int64), np.empty(0, np.int64), np.empty((0, _WIDTH)), np.empty(0, np.int32)
)


def stack_terms(
    scorer: LogLinearScorer, folds: Sequence[tuple[RuleWeights, LogLinearWeights]], facts: Indices,
    valid: QueryTable | None, settings: LogLinearSettings, workers: Workers,
    progress: Callable[[float], None],
) -> LogLinearWeights:  # fmt: skip
    """Return the weights of a scorer, a mean of folds, with factors of terms learned on facts."""
    rules, seed = scorer.rule_scorer, settings.seed
    graph, fold_ids = rules.walker.graph, fold_index(facts, seed)
    n_parts = len(folds) + (valid is not None)
    tables: list[TermTable] = []

    def add_table(scorer: LogLinearScorer, queries: QueryTable) -> None:
        done = len(tables)
        table = make_term_table(
            scorer, queries, seed, workers, lambda share: progress((done + share) / n_parts)
        )
        first = len(TERMS) if Part.COUNTS in settings.without else _WIDTH - 1
        table.values[:, first:] = 0.0  # the last is of kinds, which have their weight
        tables.append(table)

    for fold, (rule_weights, weights) in enumerate(folds):
        of_fold = facts[fold_ids == fold]
        first = keyed_uniform(seed + 1, of_fold)
        if rules.walker.only_earlier:  # the latest facts are the most like queries to come
            first = -np.clip(known_ends(graph.start, graph.end)[0][of_fold], -FAR, FAR)
        removed = _facts_to_remove(graph, of_fold[np.argsort(first, kind="stable")])
        without_fold = scorer.with_weights(rules.with_weights(rule_weights), weights)
        if rules.walker.only_earlier:  # what is later is left out anyway
            add_table(without_fold, forecast_queries(graph, removed, seed))
        else:
            asked = QueryTable.of_facts(graph, removed, walked=False)
            add_table(without_fold.without(removed), asked)
    if valid is not None:
        add_table(scorer, valid)
    with threadpool_limits(limits=1, user_api="blas"):  # sums depend on the number of threads
        of_valid = tables.pop() if valid is not None else _EMPTY
        terms, counts = fit_terms(TermTable.join(tables), of_valid, 2 * len(graph.relations))
    return scorer.weights.stacked(terms, counts, rules.rule_relations)


def count_removed(graph: TemporalGraph, facts: Indices) -> int:
    """Return about how many facts are removed in all folds, given the training facts."""
    of_relation = np.minimum(np.bincount(graph.relation[facts]), N_FOLDS * _MAX_FACTS)
    return min(int(of_relation.sum()), int(N_FOLDS * _MAX_REMOVED * len(graph.rows("train"))))


def _facts_to_remove(graph: TemporalGraph, facts: Indices) -> Indices:
    """Return the first facts of a fold, which are removed together, few of each relation."""
    facts = facts[: int(_MAX_REMOVED * len(graph.rows("train")))]
    facts = facts[np.argsort(graph.relation[facts], kind="stable")]
    relation = graph.relation[facts]
    rank = np.arange(len(facts)) - np.searchsorted(relation, relation)
    return np.sort(facts[rank < _MAX_FACTS])


def make_term_table(
    scorer: LogLinearScorer, queries: QueryTable, seed: int, workers: Workers,
    progress: Callable[[float], None],
) -> TermTable:  # fmt: skip
    """Score queries, by relation and time, and list the terms of the best candidates of each."""
    order = np.lexsort((queries.subject, queries.end, queries.start, queries.directed_relation))
    memory = scorer.memory_per_query(queries)[order]
    parts = query_batches(order, memory, workers.block_bytes) if len(order) else []
    batches = [queries[part] for part in parts]
    tables = [_EMPTY]
    for table in workers.map(partial(_list_terms, scorer, seed), batches):
        tables.append(table)
        progress((len(tables) - 1) / len(batches))
    return TermTable.join(tables)


def _list_terms(scorer: LogLinearScorer, seed: int, queries: QueryTable) -> TermTable:
    graph, applied = scorer.rule_scorer.walker.graph, scorer.rule_scorer.apply_rules(queries)
    dated = scorer.rule_scorer.fill_dates(queries)
    by_rules = scorer.rule_scorer.score(queries, applied)
    scores = scorer.score(queries, applied, by_rules)
    sample = SampledCandidates.sample(graph, dated, scores, _N_BEST, 0, seed)
    # An answer that is not among the best comes after them. Its query says nothing about their
    # order, and would make a low score look good.
    listed = sample.answer_index - sample.offsets[:-1] < _N_BEST
    candidates = sample.offsets, sample.candidate
    values = scorer.term_values(queries, scores, *candidates, applied, by_rules)
    relation = queries.directed_relation
    return TermTable(sample.offsets, sample.answer_index, values, relation).select(listed)


def fit_terms(folds: TermTable, valid: TermTable, n_directed: int) -> tuple[Floats, Floats]:
    """Return the factors of `TERMS` and weights of `COUNT_FEATURES` of each directed relation.

    All relations share weights, towards which those of each relation are drawn. What the valid
    split has of a relation adjusts them once more.
    """
    unchanged = np.repeat([1.0, 0.0], [len(TERMS), len(COUNT_FEATURES)])
    shared = _fit(folds, unchanged, _L2)
    weights = np.tile(shared, (n_directed, 1))
    for table, l2 in ((folds, _RELATION_L2), (valid, _VALID_L2)):
        for relation in np.unique(table.relation):
            of_relation = table.select(table.relation == relation)
            weights[relation] = _fit(of_relation, weights[relation], l2)
    factors, counts = np.split(weights, [len(TERMS)], axis=1)
    return factors, counts


def _fit(table: TermTable, prior: Floats, l2: float) -> Floats:
    """Return weights by softmax cross-entropy over the candidates, regularised towards a prior."""
    if not len(table.answer):
        return prior
    values, answer, first = table.values, table.answer, table.offsets[:-1]
    query = np.repeat(np.arange(len(first)), np.diff(table.offsets))

    def loss(weights: Floats) -> tuple[float, Floats]:
        score = values @ weights
        score -= np.maximum.reduceat(score, first)[query]
        share = np.exp(score)
        total = np.add.reduceat(share, first)
        share /= total[query]
        share[answer] -= 1.0
        distance = weights - prior
        value = float((np.log(total) - score[answer]).sum() + 0.5 * l2 * (distance @ distance))
        return value, share @ values + l2 * distance

    return np.asarray(minimize(loss, prior, jac=True, method="L-BFGS-B").x, np.float64)
