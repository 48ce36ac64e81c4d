"""Selection of few, distinct rules: each must explain answers that the others do not."""

import numpy as np

from tilp._utils.arrays import Floats, Indices, Mask
from tilp.learning.examples import TrainingExamples

_MIN_RESPONSIBILITY = 0.25  # training answers that a rule has to explain, given the other rules
_MAX_MEAN = 92  # rules of a directed relation, on average; the least responsibility rises to it
_RISE = 1.1


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
