"""Search for rules: the walks that reach the answers of queries, and what these are lifted to.

Walks are searched from the queries' subjects and pruned from the answer's side: how many walks of
each length lead from an entity to the answer is counted once for all queries that share it, and no
step is taken that none of them follows. Where there are more walks than the limit, every n-th is
taken, in depth-first order from a seeded start; the same counts tell which steps lead to none of
these.
"""

from typing import Any, NamedTuple

import numpy as np

from tilp._kernels.arrays import longer, uniform
from tilp._kernels.count import allen_code, gap_code
from tilp._kernels.jit import kernel
from tilp._kernels.levels import (
    N_TEMPORAL_RELATIONS,
    end_as_of,
    relation_code,
    sample_prefixes,
)
from tilp._kernels.types import Array, Edges, GroupedQueries, SearchWorkspace
from tilp.time import Allen

# Columns of the table of rules, and of the rules that a query was just counted for.
_FORM, _LENGTH, _RELATION, _RELATIONS, _DIGITS, _CODE, _SUPPORT, _QUERY = range(8)
_N_COLUMNS = 8
_SLOTS_PER_RULE = 4
_RECENT_BITS = 10

# What a walk is lifted to, step by step, each an integer: its relations, its digits (all or
# adjacent pairs) and its code of each type.
_NOTHING, _BODY, _ALL, _ADJACENT, _CLASSES, _ALLEN, _LAST_GAP, _FIRST_GAP = range(8)
_N_PARTS = 8
# Of a form, by the pairs that its bodies distinguish, and by the type of its codes.
_DIGITS_PARTS = np.array([_NOTHING, _ADJACENT, _ALL])
_CODE_PARTS = np.array([_CLASSES, _ALLEN, _LAST_GAP, _NOTHING])
_N_ALLEN = len(Allen)


class _State(NamedTuple):
    """A depth-first search, by depth."""

    chain: Array  # edges of the walk
    cursor: Array  # next edge to try
    lifted: Array  # what the walk is lifted to
    recent: Array  # rules that queries were just counted for
    digits_part: Array  # which part of a lifted walk is the digits of each form
    code_part: Array  # which part is its code


@kernel
def find_rules(
    edges: Edges, inverse: Array, queries: GroupedQueries, body_pairs: Array, code_types: Array,
    gap_edges: Array, first_gap_form: int, n_directed: int, max_length: int, distinct: bool,
    limit: int, seed: int, space: SearchWorkspace,
) -> tuple[Array, Array]:  # fmt: skip
    """Find the rules by which walks reach the answers of queries.

    `inverse` is the inverse of each edge. `body_pairs` and `code_types` describe the temporal
    forms; the code of `first_gap_form`, if there is one, is the gap of the first interval.
    Walks do not revisit an entity if `distinct`. Of each query at most `limit` walks of each length
    are taken. Returns form, length, relation, relations of the body, digits and code of each rule;
    and the number of queries whose answer it reaches.
    """
    table = np.empty((1024, _N_COLUMNS), dtype=np.int64)
    slots = np.full(_SLOTS_PER_RULE * 1024, -1, dtype=np.int64)
    n_rules = 0
    n_walks, first_to_answer = space.n_walks, space.first_to_answer
    next_to_answer = space.next_to_answer
    digits_part, code_part = _DIGITS_PARTS[body_pairs], _CODE_PARTS[code_types]
    if first_gap_form < len(code_part):
        code_part[first_gap_form] = _FIRST_GAP
    state = _State(
        np.empty(max_length, dtype=np.int64), np.empty(max_length, dtype=np.int64),
        np.zeros((max_length + 1, _N_PARTS), dtype=np.int64),
        np.full((1 << _RECENT_BITS, _N_COLUMNS), -1, dtype=np.int64), digits_part, code_part,
    )  # fmt: skip
    offsets, target = edges.offsets, edges.target
    for row in range(len(queries.entity)):
        answer = queries.entity[row]
        reached = _count_to_answer(offsets, target, answer, limit, seed, n_walks)
        for back in range(offsets[answer + 1] - 1, offsets[answer] - 1, -1):
            next_to_answer[inverse[back]] = first_to_answer[target[back]]
            first_to_answer[target[back]] = inverse[back] + 1
        for query in range(queries.offsets[row], queries.offsets[row + 1]):
            subject = queries.subject[query]
            for length in range(1, max_length + 1):
                total = 0.0
                for edge in range(offsets[subject], offsets[subject + 1]):
                    total += n_walks[length - 1, target[edge]]
                if total == 0.0:
                    continue
                stride = max(1.0, total / limit)
                next_walk = stride * uniform(seed + subject * 8 + length) if stride > 1 else 0.0
                state.cursor[0] = first_to_answer[subject] - 1 if length == 1 else offsets[subject]
                depth, n_passed = 0, 0.0
                while depth >= 0:
                    depth, n_passed, next_walk, n_rules = _search(
                        edges, gap_edges, n_directed, queries, query, length, distinct, answer,
                        stride, space, state, depth, n_passed, next_walk, table, slots, n_rules,
                    )  # fmt: skip
                    if depth >= 0:
                        table, slots = _grow_table(table)
        for entity in reached:
            for length in range(len(n_walks)):
                n_walks[length, entity] = 0.0
        for back in range(offsets[answer], offsets[answer + 1]):
            first_to_answer[target[back]] = 0
    return table[:n_rules, :_SUPPORT].copy(), table[:n_rules, _SUPPORT].copy()


@kernel
def _search(
    edges: Edges, gap_edges: Array, n_directed: int, queries: GroupedQueries, query: int,
    length: int, distinct: bool, answer: int, stride: float, space: SearchWorkspace, state: _State,
    depth: int, n_passed: float, next_walk: float, table: Array, slots: Array, n_rules: int,
) -> tuple[int, float, float, int]:  # fmt: skip
    """Search the walks of one length for one query, and count it for the rules they fall under.

    All in one loop: a call with arrays costs more than a step. One walk in `stride` is taken, and
    `next_walk` is the position of the next one; `n_passed` walks come before the current step.
    Returns depth (-1: done; else the table is full), n_passed, next_walk, and the number of rules.
    """
    offsets, target, fact, relation = edges.offsets, edges.target, edges.fact, edges.relation
    start, end, n_walks = edges.start, edges.end, space.n_walks
    visited = target if distinct else fact
    first_to_answer, next_to_answer = space.first_to_answer, space.next_to_answer
    chain, cursor, lifted, recent = state.chain, state.cursor, state.lifted, state.recent
    digits_part, code_part = state.digits_part, state.code_part
    subject, query_fact = queries.subject[query], queries.fact[query]
    query_start, query_end = queries.start[query], queries.end[query]
    query_relation, latest = queries.directed_relation[query], queries.latest[query]
    with_allen = with_gap = False
    for form in range(len(code_part)):
        with_allen |= code_part[form] == _ALLEN
        with_gap |= code_part[form] >= _LAST_GAP
    entity = subject if depth == 0 else target[chain[depth - 1]]
    while depth >= 0:
        last = depth + 1 == length
        edge = cursor[depth]
        if edge == (-1 if last else offsets[entity + 1]):
            depth -= 1
            entity = target[chain[depth - 1]] if depth > 0 else subject
            continue
        if last and n_rules + len(digits_part) > len(table):
            return depth, n_passed, next_walk, n_rules
        cursor[depth] = next_to_answer[edge] - 1 if last else edge + 1
        ahead = n_walks[length - depth - 1, target[edge]]
        if n_passed + ahead <= next_walk:
            n_passed += ahead
            continue
        valid = fact[edge] != query_fact and start[edge] <= latest
        if distinct:
            valid &= target[edge] != subject and (last or target[edge] != answer)
        for step in range(depth):
            valid &= visited[chain[step]] != visited[edge]
        if not valid:
            n_passed += ahead
            next_walk += stride * np.ceil((n_passed - next_walk) / stride)
            continue
        chain[depth] = edge
        edge_start, edge_end = start[edge], end_as_of(start[edge], end[edge], latest)
        digit = 0
        pairs = lifted[depth, _ALL]
        for step in range(depth):
            earlier = chain[step]
            until = end_as_of(start[earlier], end[earlier], latest)
            digit = relation_code(start[earlier], until, edge_start, edge_end)
            pairs = N_TEMPORAL_RELATIONS * pairs + digit
        lifted[depth + 1, _BODY] = lifted[depth, _BODY] * n_directed + relation[edge]
        lifted[depth + 1, _ALL] = pairs
        lifted[depth + 1, _ADJACENT] = N_TEMPORAL_RELATIONS * lifted[depth, _ADJACENT] + digit
        digit = relation_code(edge_start, edge_end, query_start, query_end)
        lifted[depth + 1, _CLASSES] = N_TEMPORAL_RELATIONS * lifted[depth, _CLASSES] + digit
        if with_allen:
            digit = allen_code(edge_start, edge_end, query_start, query_end)
            lifted[depth + 1, _ALLEN] = _N_ALLEN * lifted[depth, _ALLEN] + digit
        if with_gap and (last or depth == 0):
            gap = gap_code(edge_start, edge_end, query_start, query_end, gap_edges)
            lifted[depth + 1, _LAST_GAP] = gap
            lifted[depth + 1, _FIRST_GAP] = gap
        if depth > 0:
            lifted[depth + 1, _FIRST_GAP] = lifted[depth, _FIRST_GAP]
        if not last:
            depth += 1
            entity = target[edge]
            to_answer = depth + 1 == length
            cursor[depth] = first_to_answer[entity] - 1 if to_answer else offsets[entity]
            continue
        n_passed += ahead
        next_walk += stride
        body = lifted[length, _BODY]
        for form in range(len(digits_part)):
            digits = lifted[length, digits_part[form]]
            code = lifted[length, code_part[form]]
            mixed = _hash(form, length, query_relation, body, digits, code)
            # Most walks of a query fall under rules that it was just counted for: a small table
            # of these saves the lookup in the large one.
            slot: Any = mixed >> np.uint64(64 - _RECENT_BITS)
            if (
                recent[slot, _QUERY] == query
                and recent[slot, _FORM] == form
                and recent[slot, _LENGTH] == length
                and recent[slot, _RELATIONS] == body
                and recent[slot, _DIGITS] == digits
                and recent[slot, _CODE] == code
            ):
                continue
            recent[slot, _QUERY], recent[slot, _FORM] = query, form
            recent[slot, _LENGTH], recent[slot, _RELATIONS] = length, body
            recent[slot, _DIGITS], recent[slot, _CODE] = digits, code
            position: Any = np.int64(mixed % np.uint64(len(slots)))
            while slots[position] >= 0:
                rule = slots[position]
                if (
                    table[rule, _FORM] == form
                    and table[rule, _LENGTH] == length
                    and table[rule, _RELATION] == query_relation
                    and table[rule, _RELATIONS] == body
                    and table[rule, _DIGITS] == digits
                    and table[rule, _CODE] == code
                ):
                    break
                position = position + 1 if position + 1 < len(slots) else 0
            if slots[position] < 0:
                slots[position] = n_rules
                table[n_rules, _FORM], table[n_rules, _LENGTH] = form, length
                table[n_rules, _RELATION], table[n_rules, _RELATIONS] = query_relation, body
                table[n_rules, _DIGITS], table[n_rules, _CODE] = digits, code
                table[n_rules, _SUPPORT], table[n_rules, _QUERY] = 0, -1
                n_rules += 1
            rule = slots[position]
            table[rule, _SUPPORT] += table[rule, _QUERY] != query
            table[rule, _QUERY] = query
    return depth, n_passed, next_walk, n_rules


@kernel
def _count_to_answer(
    offsets: Array, target: Array, answer: int, limit: int, seed: int, n_walks: Array
) -> Array:
    """Count the walks of each length from each entity to the answer, with repeated facts.

    Where one more step back would read more edges than the limit, entities are sampled. Returns the
    entities that have a count, some of them more than once.
    """
    n_walks[0, answer] = 1.0
    frontier = np.full(1, answer, dtype=np.int32)
    reached = np.empty(16, dtype=np.int32)
    reached[0] = answer
    n_reached = 1
    for length in range(1, len(n_walks)):
        degree = offsets[frontier + 1] - offsets[frontier]
        alike = np.zeros(len(frontier), dtype=np.int32)
        sample = sample_prefixes(degree, alike, 1, limit, seed + answer * 8 + length)
        if len(sample) < len(frontier):
            sampled = np.empty(len(sample), dtype=np.int32)
            counts = np.empty(len(sample))
            for index in range(len(sample)):
                sampled[index] = frontier[sample[index]]
                counts[index] = n_walks[length - 1, sampled[index]]
            for entity in frontier:
                n_walks[length - 1, entity] = 0.0
            for index in range(len(sample)):
                n_walks[length - 1, sampled[index]] = counts[index]
            frontier = sampled
        steps = 0
        for entity in frontier:
            steps += offsets[entity + 1] - offsets[entity]
        next_frontier = np.empty(min(steps, len(offsets) - 1), dtype=np.int32)
        n = 0
        for entity in frontier:
            for edge in range(offsets[entity], offsets[entity + 1]):
                if n_walks[length, target[edge]] == 0.0:
                    next_frontier[n] = target[edge]
                    n += 1
                n_walks[length, target[edge]] += n_walks[length - 1, entity]
        frontier = next_frontier[:n].copy()
        reached = longer(reached, n_reached + n)
        for index in range(n):
            reached[n_reached + index] = frontier[index]
        n_reached += n
    return reached[:n_reached]


@kernel
def _hash(form: int, length: int, relation: int, body: int, digits: int, code: int) -> Any:
    """Mix all integers of a rule into one."""
    mixed = np.uint64(body) * np.uint64(0xD1B54A32D192ED03)
    mixed += np.uint64(digits) * np.uint64(0xBF58476D1CE4E5B9)
    mixed += np.uint64(code) * np.uint64(0x94D049BB133111EB)
    mixed += np.uint64((relation * 8 + length) * 8 + form) * np.uint64(0x8CB92BA72F3D8DD7)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def _grow_table(table: Array) -> tuple[Array, Array]:
    """Return the same rules with room for twice as many, and their slots."""
    larger = np.empty((2 * len(table), _N_COLUMNS), dtype=np.int64)
    for rule in range(len(table)):
        for column in range(_N_COLUMNS):
            larger[rule, column] = table[rule, column]
    slots = np.full(_SLOTS_PER_RULE * len(larger), -1, dtype=np.int64)
    for rule in range(len(table)):
        row = table[rule]
        mixed = _hash(
            row[_FORM], row[_LENGTH], row[_RELATION], row[_RELATIONS], row[_DIGITS], row[_CODE]
        )
        slot: Any = np.int64(mixed % np.uint64(len(slots)))
        while slots[slot] >= 0:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        slots[slot] = rule
    return larger, slots
