"""Selection of few, distinct rules: each must explain answers that the others do not."""

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats, Indices, Mask
from tilp.graph import TemporalGraph
from tilp.learning.examples import TrainingExamples
from tilp.walks.encoding import RuleEncoding

_MIN_RESPONSIBILITY = 0.25  # training answers that a rule has to explain, given the other rules
_MAX_MEAN = 92  # rules of a directed relation, on average; the least responsibility rises to it
_RISE = 1.1
_NOISE = 3.0  # standard deviations of the share of guesses that are right


def better_than_base(confidence: Floats, body_support: Floats, base_rate: Floats) -> Mask:
    """Mask rules that are right more often than guesses by popularity, beyond noise."""
    noise = _NOISE * np.sqrt(base_rate / np.maximum(body_support, 1.0))
    return np.asarray(confidence > base_rate + noise)


def distinct_rules(rows: Indices, examples: TrainingExamples) -> Mask:
    """Mask rules that no simpler rule of their relation equals in all training examples.

    Rules are equal where the same numbers of their walks end at the same kinds of candidates. The
    simplest is the shortest, and of these the one with the first temporal form.
    """
    n_rules = len(rows)
    key = np.random.default_rng(0).random(len(examples.queries))
    key = np.repeat(key, np.diff(examples.offsets))
    counts = (examples.at_answer, examples.at_others, *examples.at_known.T)
    # Sums of a random number for each query: equal for equal rules, and hardly ever for others.
    sums = [np.bincount(examples.rule, key * column, n_rules) for column in counts]
    table = np.column_stack([rows[:, 2], *sums])
    order = np.lexsort((*rows[:, [4, 5, 3, 0, 1]].T, *table.T))
    ordered = table[order]
    is_first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[:n_rules]
    mask = np.empty(n_rules, np.bool_)
    mask[order] = is_first
    return mask


def equal_relations(graph: TemporalGraph) -> Indices:
    """Return, for each directed relation, the first one with the same training facts.

    A symmetric relation equals its inverse, as `hasChild` does the inverse of `hasParent`.
    """
    facts, n_relations = graph.span("train"), len(graph.relations)
    ends = graph.subject[facts], graph.object[facts]
    sums = np.zeros(2 * n_relations, np.uint64)
    for inverse, columns in enumerate((ends, ends[::-1])):
        table = pl.DataFrame([*columns, graph.start[facts], graph.end[facts]])
        # Sums of hashes: equal for equal facts, and hardly ever for others.
        np.add.at(sums, graph.relation[facts] + inverse * n_relations, table.hash_rows().to_numpy())
    _, first, index = np.unique(sums, return_index=True, return_inverse=True)
    return first[index]


def distinct_bodies(rows: Indices, encoding: RuleEncoding, equal: Indices) -> Mask:
    """Mask rules that no other rule equals but for relations of the body with the same facts.

    `equal` is what `equal_relations` returns. Training examples of such rules may differ, since
    the mirror image of a query's own fact is not left out with it. A rule that states a relation
    by one that has the same facts stays: it says just that.
    """
    same = encoding.with_relations(rows, equal)
    order = np.argsort(rows[:, 3], kind="stable")
    _, first = np.unique(same[order], axis=0, return_index=True)
    mask: Mask = (rows[:, 1] == 1) & (same[:, 3] == equal[rows[:, 2]])
    mask[order[first]] = True
    return mask


def select_rules(
    rows: Indices, responsibility: Floats, max_rules: int, max_mean: float = _MAX_MEAN
) -> Mask:
    """Mask the rules that explain enough answers.

    They are at most `max_rules` of a directed relation, and `max_mean` on average over the
    directed relations that have rules. Rules with the same relations in their body, which are a
    chain, compete: what a dropped one explains goes to the strongest of them, so that a chain
    stays as long as its rules together explain enough.
    """
    relation = rows[:, 2]
    n_relations = max(len(np.unique(relation)), 1)
    _, chain = np.unique(rows[:, [2, 1, 3]], axis=0, return_inverse=True)
    chain = chain.reshape(-1)
    order = np.lexsort((-responsibility, chain))
    strongest = order[np.flatnonzero(np.diff(chain[order], prepend=-1))]

    def select(least: float) -> Mask:
        dropped = responsibility < least
        dropped[strongest] = False
        total = responsibility.copy()
        total[strongest] += np.bincount(chain, np.where(dropped, responsibility, 0.0))
        total[dropped] = 0.0
        by_relation = np.lexsort((-total, relation))
        ordered = relation[by_relation]
        rank = np.empty(len(rows), np.int64)
        rank[by_relation] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
        return (total >= least) & (rank < max_rules)

    least = _MIN_RESPONSIBILITY
    while (mask := select(least)).sum() > max_mean * n_relations:
        least *= _RISE
    return mask
