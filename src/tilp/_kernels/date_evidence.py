"""Evidence for candidate dates: distances to dated facts, counts of near dates, likelihood."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import lower_bound
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

FAR = 2**60
MAX_COUNT = 3  # counts of facts above are the same
# Of a start: nearest start, nearest end, count, first start, last start; of an end: nearest start,
# nearest end, count, next start after the given one.
N_KINDS = 5


class DateRuns(NamedTuple):
    """Starts and ends of the facts of each key and directed relation, each run ascending."""

    offsets: Array  # runs of each key
    relation: Array  # of each run, directed
    start_offsets: Array
    start: Array
    start_fact: Array
    end_offsets: Array
    end: Array
    end_fact: Array


class DateQueries(NamedTuple):
    """Facts whose date is sought, and their candidate dates."""

    key: Array  # of each query in the runs of subjects, of objects and of pairs; -1: none
    relation: Array
    fact: Array  # left out of the evidence; -1: none
    start: Array  # its dates, or the given start; an end that is not known is later than all
    end: Array
    drop: Array  # leave out the subject's other facts with the same start, too
    offsets: Array  # candidates of each query
    time: Array  # candidate dates


@kernel
def fill_bins(
    queries: DateQueries, runs: tuple[DateRuns, DateRuns, DateRuns], n_directed: int,
    edges: Array, of_end: bool, fact_start: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Bin the distances of candidate dates to the nearest date of each relation and kind.

    A group is a source (subject, object, both), what is compared (starts, ends, counts) and a
    directed relation. A count is that of facts that hold at the candidate start, or that start
    between the given start and the candidate end. Returns the offsets of each query's groups,
    the groups, and the bins of all candidates and groups, query by query, candidate by candidate.
    """
    n_queries = len(queries.fact)
    n_kinds = N_KINDS - of_end
    offsets = np.zeros(n_queries + 1, np.int64)
    n_cells = 0
    for query in range(n_queries):
        n_groups = 0
        for source in range(3):
            key = queries.key[query, source]
            if key >= 0:
                n_groups += n_kinds * (runs[source].offsets[key + 1] - runs[source].offsets[key])
        offsets[query + 1] = offsets[query] + n_groups
        n_cells += n_groups * (queries.offsets[query + 1] - queries.offsets[query])
    groups = np.empty(offsets[-1], np.int64)
    bins = np.empty(n_cells, np.uint8)
    cell = 0
    for query in range(n_queries):
        group = offsets[query]
        n_groups = offsets[query + 1] - group
        first, last = queries.offsets[query], queries.offsets[query + 1]
        fact, origin = queries.fact[query], queries.start[query]
        for source in range(3):
            key = queries.key[query, source]
            of = runs[source]
            drop = queries.drop[query] and source != 1
            for run in range(of.offsets[key], of.offsets[key + 1]) if key >= 0 else range(0):
                relation = of.relation[run]
                starts = of.start_offsets[run], of.start_offsets[run + 1]
                ends = of.end_offsets[run], of.end_offsets[run + 1]
                own = 0  # how many dates of the run are those of the fact itself
                if relation % (n_directed // 2) == queries.relation[query] and fact >= 0:
                    inverse = relation >= n_directed // 2
                    own = source == 1 if inverse else source != 1
                local = group - offsets[query]
                for index in range(n_kinds):
                    groups[group + index] = (source * N_KINDS + index) * n_directed + relation
                for candidate in range(first, last):
                    time = queries.time[candidate]
                    at = cell + (candidate - first) * n_groups + local
                    left_out = (fact, drop, origin, fact_start)
                    bins[at] = _nearest(
                        of.start, of.start_fact, starts, time, time, left_out, edges
                    )
                    bins[at + 1] = _nearest(of.end, of.end_fact, ends, time, time, left_out, edges)
                    if of_end:
                        later = lower_bound(of.start, *starts, origin + 1)
                        count = lower_bound(of.start, *starts, time) - later
                        bins[at + 3] = _nearest(
                            of.start, of.start_fact, (later, starts[1]), -FAR, time, left_out, edges
                        )
                    else:
                        count = lower_bound(of.start, *starts, time + 1) - starts[0]
                        count -= lower_bound(of.end, *ends, time) - ends[0]
                        count -= own * (origin <= time <= queries.end[query])
                        for index, far in enumerate((-FAR, FAR)):
                            bins[at + 3 + index] = _nearest(
                                of.start, of.start_fact, starts, far, time, left_out, edges
                            )
                    bins[at + 2] = min(max(count, 0), MAX_COUNT)
                group += n_kinds
        cell += n_groups * (last - first)
    return offsets, groups, bins


@kernel
def _nearest(
    times: Array, facts: Array, run: tuple[int, int], near: int, time: int,
    left_out: tuple[int, bool, int, Array], edges: Array,
) -> int:  # fmt: skip
    """Return the bin of a time's distance from the date of a run that is nearest to `near`.

    The last bin is for runs without a date, but for those left out: of a fact, and perhaps of all
    with its start.
    """
    fact, drop, origin, fact_start = left_out
    right = lower_bound(times, run[0], run[1], near)
    left = right - 1
    while left >= run[0] and (facts[left] == fact or (drop and fact_start[facts[left]] == origin)):
        left -= 1
    while right < run[1] and (
        facts[right] == fact or (drop and fact_start[facts[right]] == origin)
    ):
        right += 1
    n_edges = len(edges)
    if left < run[0] and right >= run[1]:
        return 2 * n_edges + 1
    if right >= run[1] or (left >= run[0] and near - times[left] <= times[right] - near):
        distance = time - times[left]
    else:
        distance = time - times[right]
    if distance >= 0:
        return n_edges + lower_bound(edges, 0, n_edges, distance + 1)
    return n_edges - lower_bound(edges, 0, n_edges, 1 - distance)


@kernel
def count_near(
    values: Array, begin: Array, end: Array, offsets: Array, wanted: Array, own: Array,
    has_own: Array, base: Array, rate: Array,
) -> Array:  # fmt: skip
    """Count the values of each query's run within each width of each wanted value.

    A width is a base and a share of the value; the query's own value is not counted.
    """
    counts = np.empty((len(wanted), len(base)))
    for query in range(len(begin)):
        low, high = begin[query], end[query]
        for candidate in range(offsets[query], offsets[query + 1]):
            value = wanted[candidate]
            for index in range(len(base)):
                width = base[index] + int(rate[index] * abs(value))
                count = lower_bound(values, low, high, value + width + 1)
                count -= lower_bound(values, low, high, value - width)
                if has_own[query] and abs(own[query] - value) <= width:
                    count -= 1
                counts[candidate, index] = count
    return counts


class DateTable(NamedTuple):
    """Training queries of one relation, with the features of their candidate dates."""

    offsets: Array  # candidates of each query
    dense: Array  # features of each candidate
    log_weight: Array  # of each candidate: how many dates it stands for
    is_answer: Array  # of each candidate; several if the date is only known to be later
    group_offsets: Array
    row: Array  # of the weights of each query's groups
    cell_offsets: Array
    bins: Array


@kernel
def date_scores(table: DateTable, dense: Array, sparse: Array) -> Array:
    """Return the score of each candidate: the sum of its weighted features."""
    scores = table.log_weight.copy()
    for query in range(len(table.offsets) - 1):
        rows = table.row[table.group_offsets[query] : table.group_offsets[query + 1]]
        cell = table.cell_offsets[query]
        for candidate in range(table.offsets[query], table.offsets[query + 1]):
            score = scores[candidate]
            for index in range(len(dense)):
                score += dense[index] * table.dense[candidate, index]
            for index in range(len(rows)):
                score += sparse[rows[index], table.bins[cell + index]]
            cell += len(rows)
            scores[candidate] = score
    return scores


@kernel
def add_date_likelihood(
    table: DateTable, dense: Array, sparse: Array, dense_gradient: Array, sparse_gradient: Array
) -> float:
    """Return the negative log likelihood of the answers, and add its gradient."""
    total = 0.0
    all_scores = date_scores(table, dense, sparse)
    for query in range(len(table.offsets) - 1):
        first, last = table.offsets[query], table.offsets[query + 1]
        rows = table.row[table.group_offsets[query] : table.group_offsets[query + 1]]
        scores = all_scores[first:last]
        highest = scores.max()
        whole = answers = 0.0
        for index in range(last - first):
            scores[index] = np.exp(scores[index] - highest)
            whole += scores[index]
            answers += scores[index] * table.is_answer[first + index]
        total += np.log(whole) - np.log(answers)
        cell = table.cell_offsets[query]
        for candidate in range(first, last):
            share = scores[candidate - first]
            change = share / whole - share * table.is_answer[candidate] / answers
            for index in range(len(dense)):
                dense_gradient[index] += change * table.dense[candidate, index]
            for index in range(len(rows)):
                sparse_gradient[rows[index], table.bins[cell + index]] += change
            cell += len(rows)
    return total
