"""Forecasts: the weights of clues learned from what happened, and candidates scored by them."""

import numpy as np

from tilp._kernels.clues import Evidence, Table, gather_clues, make_clues, sum_clues
from tilp._kernels.jit import kernel
from tilp._kernels.timed_edges import ByRelation
from tilp._kernels.types import Array

__all__ = ["bodies_of_heads", "forecast_queries", "learn_clues"]

_NEGLIGIBLE = 1e-5  # so small a slope changes no weight


@kernel
def bodies_of_heads(edges: ByRelation, heads: int) -> Array:
    """The rules whose bodies may be known when their heads are asked for.

    Those of two relations that one entity has, whether or not its head ever follows: a rule that
    was chosen since a fact supports it would look better in train than it is.

    Returns:
        `head · heads + body` of each, ascending.
    """
    found = np.empty(1024, dtype=np.int64)
    size = 0
    for entity in range(len(edges.offsets) - 1):
        relations = edges.relation[edges.offsets[entity] : edges.offsets[entity + 1]]
        for head in relations:
            if size + len(relations) > len(found):
                found = np.unique(found[:size])
                size = len(found)
                found = np.concatenate((found, np.empty(size + 2 * heads, dtype=np.int64)))
            for body in relations:
                found[size] = np.int64(head) * heads + body
                size += 1
    return np.unique(found[:size])


@kernel
def learn_clues(
    evidence: Evidence,
    table: Table,
    subject: Array,
    head: Array,
    time: Array,
    begin: Array,
    answer: Array,
    rate: Array,
    weights: Array,
    squares: Array,
    asked: Array,
    held: Array,
) -> tuple[float, int]:
    """Go through queries in their order and raise the likelihood of their answers.

    The share of an answer among its query's candidates is that of exp(score), other answers of the
    query left out; its logarithm's slope moves each weight by rate / √(1 + sum of squared slopes).

    Args:
        evidence: that queries are asked of; for each, only what is earlier.
        table: of the weights.
        subject: of each query; likewise `head` and `time`.
        begin: where the answers of each query begin, and where the last end.
        answer: these.
        rate: of each weight.
        weights: changed; likewise `squares`, the sums of squared slopes.
        asked: raised for each rule and class of recency by the candidates that had its body.
        held: likewise by those of them that were the answer.

    Returns:
        The sum of the logarithms of answers' shares before each step, and how many answers were
        among the candidates.
    """
    clues = make_clues(evidence, table)
    recencies = len(table.gaps) + 1
    first_rule, last_rule = table.blocks.rule_recency, table.blocks.pair_recency
    n_entities = len(clues.stamp)
    share = np.empty(n_entities)
    slope = np.empty(n_entities)
    wanted = np.full(n_entities, -1, dtype=np.int64)
    total = 0.0
    reached = 0
    for query in range(len(subject)):
        n, used = gather_clues(
            evidence, table, clues, subject[query], head[query], time[query], query
        )
        for entity in answer[begin[query] : begin[query + 1]]:
            wanted[entity] = query
        for entry in range(used):
            kind = clues.weight[entry]
            if first_rule <= kind < last_rule:
                rule, recency = divmod(kind - first_rule, recencies)
                asked[rule, recency] += 1
                held[rule, recency] += wanted[clues.candidate[clues.of[entry]]] == query
        sum_clues(clues, n, used, weights, share)
        highest = share[:n].max() if n else 0.0
        others = 0.0
        for place in range(n):
            share[place] = np.exp(share[place] - highest)
            if wanted[clues.candidate[place]] != query:
                others += share[place]
        pull = 0.0
        slope[:n] = 0.0
        for entity in answer[begin[query] : begin[query + 1]]:
            if clues.stamp[entity] != query:
                continue
            place = clues.place[entity]
            whole = others + share[place]
            slope[place] = others / whole
            pull += 1.0 / whole
            total += np.log(share[place] / whole)
            reached += 1
        if pull == 0.0:
            continue
        for place in range(n):
            if wanted[clues.candidate[place]] != query:
                slope[place] = -share[place] * pull
        for entry in range(used):
            step = slope[clues.of[entry]]
            if abs(step) < _NEGLIGIBLE:
                continue
            kind = clues.weight[entry]
            squares[kind] += step * step
            weights[kind] += rate[kind] * step / np.sqrt(1.0 + squares[kind])
    return total, reached


@kernel
def forecast_queries(
    evidence: Evidence,
    table: Table,
    weights: Array,
    subject: Array,
    head: Array,
    time: Array,
) -> tuple[Array, Array, Array]:
    """Score the candidates of queries by clues from before their times.

    Returns:
        Where the candidates of each query begin, and where the last end; these; and the logarithms
        of their shares, which sum to 1 for each query.
    """
    clues = make_clues(evidence, table)
    sums = np.empty(len(clues.stamp))
    begins = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    size = 0
    for query in range(len(subject)):
        n, used = gather_clues(
            evidence, table, clues, subject[query], head[query], time[query], query
        )
        sum_clues(clues, n, used, weights, sums)
        while size + n > len(candidates):
            candidates = np.concatenate((candidates, np.empty_like(candidates)))
            scores = np.concatenate((scores, np.empty_like(scores)))
        if n:
            highest = sums[:n].max()
            whole = highest + np.log(np.exp(sums[:n] - highest).sum())
            candidates[size : size + n] = clues.candidate[:n]
            scores[size : size + n] = sums[:n] - whole
        size += n
        begins[query + 1] = size
    return begins, candidates[:size].copy(), scores[:size].copy()
