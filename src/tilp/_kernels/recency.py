"""Clues: what is known of a query's candidates before it is asked, each with a weight.

A clue says how long ago something last was so, and how often: that the subject met the candidate
in one relation (the body of a rule), or in any; that the candidate answered the same relation; that
there was anything about it at all.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.events import ByAnswer, ByEntityRelation, ByPair, ByTime, first_from
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


class Evidence(NamedTuple):
    """The edges that clues are read from, in three orders; only those before a query are read."""

    pairs: ByPair
    answers: ByAnswer
    entities: ByTime


class WeightBlocks(NamedTuple):
    """Where the weights of each kind begin.

    Of each clue one weight is by its class of recency, one by its class of counts. `body_*`: for
    bodies of another relation, then of the head's own; `rule_*`: for each rule a level, and by
    recency;
    `pair_*`: for any relation between subject and candidate, where the count is of relations;
    `answer_*` and `entity_recency`: for candidates that the subject never met, then for those that
    it did.
    """

    body_recency: int
    body_count: int
    rule_level: int
    rule_recency: int
    pair_recency: int
    pair_count: int
    answer_recency: int
    answer_count: int
    entity_recency: int
    end: int


class WeightTable(NamedTuple):
    """Which clues have which weights.

    The bodies of rules for head h stand at `begin[h]:begin[h + 1]` of `body`. Bodies that no rule
    has share the place `len(body) + h`. `gaps` and `counts` are the highest values of all classes
    of recency and of counts but the last.
    """

    rule_offsets: Array
    body: Array
    gaps: Array
    counts: Array
    blocks: WeightBlocks


class Clues(NamedTuple):
    """Space for the clues of one query.

    `candidate[:n]` are its candidates, those first that the subject met; `place` is where each
    entity stands among them, if its `stamp` is the query's. Entry j gives candidate `of[j]` the
    weight at `weight[j]`.
    """

    stamp: Array
    place: Array
    candidate: Array
    latest: Array
    relations: Array
    rule_of: Array
    of: Array
    weight: Array


@kernel
def make_clues(evidence: Evidence, table: WeightTable) -> Clues:
    """Space that holds the clues of any query."""
    n = len(evidence.pairs.offsets) - 1
    heads = len(table.rule_offsets) - 1
    bodies = np.max(np.diff(evidence.pairs.offsets))
    answers = np.max(np.diff(evidence.answers.offsets))
    most = 4 * bodies + 3 * n + 2 * answers
    return Clues(
        np.full(n, -1, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.full(heads, -1, dtype=np.int64),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int64),
    )


@kernel
def gather_clues(
    evidence: Evidence,
    table: WeightTable,
    clues: Clues,
    subject: int,
    head: int,
    time: int,
    stamp: int,
) -> tuple[int, int]:
    """Find the candidates of a query, and the weights of what is known of them before its time.

    Args:
        evidence: nothing at or after the query's time is read.
        table: of the weights.
        clues: where to put them.
        subject: of the query; likewise `head` and `time`.
        stamp: another one for each query.

    Returns:
        How many candidates and how many entries there are.
    """
    for rule in range(table.rule_offsets[head], table.rule_offsets[head + 1]):
        clues.rule_of[table.body[rule]] = rule
    known, used = _gather_met(evidence.pairs, table, clues, subject, head, time, stamp)
    for rule in range(table.rule_offsets[head], table.rule_offsets[head + 1]):
        clues.rule_of[table.body[rule]] = -1
    n, used = _gather_answers(
        evidence.answers, table, clues, subject, head, time, stamp, known, used
    )
    entities, blocks = evidence.entities, table.blocks
    recencies = len(table.gaps) + 1
    for place in range(n):
        entity = clues.candidate[place]
        low = entities.offsets[entity]
        high = first_from(entities.time, low, entities.offsets[entity + 1], time)
        recency = _class_of(table.gaps, time - entities.time[high - 1])
        met = recencies if place < known else 0
        used = _note(clues, used, place, blocks.entity_recency + met + recency)
    return n, used


@kernel
def sum_clues(clues: Clues, n: int, used: int, weights: Array, scores: Array) -> None:
    """The sum of the weights of each candidate's clues."""
    scores[:n] = 0.0
    for entry in range(used):
        scores[clues.of[entry]] += weights[clues.weight[entry]]


@kernel
def _gather_met(
    pairs: ByPair, table: WeightTable, clues: Clues, subject: int, head: int, time: int, stamp: int
) -> tuple[int, int]:
    """The candidates that the subject met: bodies of rules, and any relation between the two."""
    recencies, counts, blocks = len(table.gaps) + 1, len(table.counts) + 1, table.blocks
    n = used = 0
    for run in range(pairs.offsets[subject], pairs.offsets[subject + 1]):
        low = pairs.run_offsets[run]
        high = first_from(pairs.time, low, pairs.run_offsets[run + 1], time)
        if low == high:
            continue
        entity, body, gap = pairs.target[run], pairs.relation[run], time - pairs.time[high - 1]
        if clues.stamp[entity] != stamp:
            n = _add(clues, n, entity, stamp)
            clues.latest[n - 1], clues.relations[n - 1] = gap, 0
        place = clues.place[entity]
        clues.latest[place] = min(clues.latest[place], gap)
        clues.relations[place] += 1
        recency, count = _class_of(table.gaps, gap), _class_of(table.counts, high - low)
        rule = clues.rule_of[body]
        if rule < 0:
            rule = len(table.body) + head
        own = 1 if body == head else 0
        used = _note(clues, used, place, blocks.body_recency + own * recencies + recency)
        used = _note(clues, used, place, blocks.body_count + own * counts + count)
        used = _note(clues, used, place, blocks.rule_level + rule)
        used = _note(clues, used, place, blocks.rule_recency + rule * recencies + recency)
    for place in range(n):
        recency = _class_of(table.gaps, clues.latest[place])
        count = _class_of(table.counts, clues.relations[place])
        used = _note(clues, used, place, blocks.pair_recency + recency)
        used = _note(clues, used, place, blocks.pair_count + count)
    return n, used


@kernel
def _gather_answers(
    answers: ByAnswer,
    table: WeightTable,
    clues: Clues,
    subject: int,
    head: int,
    time: int,
    stamp: int,
    known: int,
    used: int,
) -> tuple[int, int]:
    """What answered the head before, whoever was asked about."""
    recencies, counts, blocks = len(table.gaps) + 1, len(table.counts) + 1, table.blocks
    n = known
    for run in range(answers.offsets[head], answers.offsets[head + 1]):
        entity = answers.target[run]
        low = answers.run_offsets[run]
        high = first_from(answers.time, low, answers.run_offsets[run + 1], time)
        if low == high:
            continue
        if clues.stamp[entity] != stamp:
            if entity == subject:
                continue
            n = _add(clues, n, entity, stamp)
        place = clues.place[entity]
        recency = _class_of(table.gaps, time - answers.time[high - 1])
        count = _class_of(table.counts, high - low)
        met = 1 if place < known else 0
        used = _note(clues, used, place, blocks.answer_recency + met * recencies + recency)
        used = _note(clues, used, place, blocks.answer_count + met * counts + count)
    return n, used


@kernel
def _add(clues: Clues, n: int, entity: int, stamp: int) -> int:
    """Make an entity a candidate; how many there are then."""
    clues.stamp[entity] = stamp
    clues.place[entity] = n
    clues.candidate[n] = entity
    return n + 1


@kernel
def _note(clues: Clues, used: int, place: int, weight: int) -> int:
    """Put down one more entry; how many there are then."""
    clues.of[used], clues.weight[used] = place, weight
    return used + 1


@kernel
def _class_of(highest: Array, value: int) -> int:
    """The first class whose highest value is no less; the last has none."""
    number = 0
    while number < len(highest) and value > highest[number]:
        number += 1
    return number


_NEGLIGIBLE = 1e-5  # so small a slope changes no weight


@kernel
def candidate_rules(edges: ByEntityRelation, heads: int) -> Array:
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
def fit_weights(
    evidence: Evidence,
    table: WeightTable,
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
    table: WeightTable,
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
