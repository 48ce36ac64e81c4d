"""The rules by which walks reach answers, each with the number of queries whose answer it reaches.

Walks are searched from the queries' subjects and pruned from the answer's side: how many walks of
each length lead from an entity to the answer is counted once for all queries that share it, and
no step is taken that none of them follows. Where there are more walks than the limit, every n-th
is taken, in depth-first order from a seeded place on; the same counts tell which steps lead to
none of these.
"""

from typing import Any

import numpy as np

from tilp._kernels.count import ALLEN, CLASSES, GAP, allen_code, gap_code
from tilp._kernels.expand import chance, relation_code, thin_out
from tilp._kernels.jit import kernel
from tilp._kernels.types import (
    ADJACENT,
    ALL,
    Array,
    Edges,
    IntervalClasses,
    QueriesByAnswer,
    SearchWorkspace,
)
from tilp.time import Allen

# The columns of the table of rules, and of those a query was just counted for.
_FORM, _LENGTH, _HEAD, _RELATIONS, _DIGITS, _CODE, _SUPPORT, _QUERY = range(8)
_COLUMNS = 8
_SLOTS = 4  # for each rule that there is room for
_RECENT_BITS = 10

# What a walk is lifted to, step by step: a number for its relations, for its digits (none, all or
# adjacent pairs), and for its code in each kind of words (none for static ones).
_NOTHING, _BODY, _ALL, _ADJACENT, _CLASSES, _ALLEN, _GAP, _FIRST_GAP = range(8)
_PARTS = 8
_ALLEN_WORDS = len(Allen)


@kernel
def find_rules(
    edges: Edges,
    inverse: Array,
    classes: IntervalClasses,
    queries: QueriesByAnswer,
    kinds: Array,
    words: Array,
    first_gap: int,
    n_directed: int,
    max_length: int,
    limit: int,
    seed: int,
    space: SearchWorkspace,
) -> tuple[Array, Array]:
    """Find the rules by which walks reach the answers of queries.

    Args:
        edges: the graph.
        inverse: for each edge that of the same fact the other way.
        classes: the words between intervals.
        queries: by answer.
        kinds: for each temporal form, what its bodies look at.
        words: for each temporal form, what its codes are made of.
        first_gap: the form whose code is the gap of the first interval, not of the last; -1: none.
        n_directed: how many relations there are, inverse ones included.
        max_length: of walks.
        limit: how many walks of one length are taken from one query.
        seed: for taking every n-th.
        space: to work in.

    Returns:
        Form, length, head, relations, digits and code of each rule; and its number of queries.
    """
    table = np.empty((1024, _COLUMNS), dtype=np.int64)
    slots = np.full(_SLOTS * 1024, -1, dtype=np.int64)
    recent = np.full((1 << _RECENT_BITS, _COLUMNS), -1, dtype=np.int64)
    n_rules = 0
    to_answer, to_it, next_to_it = space.to_answer, space.to_it, space.next_to_it
    chain = np.empty(max_length, dtype=np.int64)
    cursor = np.empty(max_length, dtype=np.int64)
    lifted = np.zeros((max_length + 1, _PARTS), dtype=np.int64)
    digits_of_form, code_of_form = _parts_of_forms(kinds, words, first_gap)
    of_query = np.empty(0, dtype=np.int8)
    offsets, target = edges.offsets, edges.target
    for number in range(len(queries.answer)):
        answer = queries.answer[number]
        reached = _count_to_answer(offsets, target, answer, limit, seed, to_answer)
        for back in range(offsets[answer + 1] - 1, offsets[answer] - 1, -1):
            next_to_it[inverse[back]] = to_it[target[back]]
            to_it[target[back]] = inverse[back] + 1
        for query in range(queries.offsets[number], queries.offsets[number + 1]):
            subject = queries.subject[query]
            if len(classes.of_query) > 0:
                of_query = classes.of_query[query]
            for length in range(1, max_length + 1):
                walks = 0.0
                for edge in range(offsets[subject], offsets[subject + 1]):
                    walks += to_answer[length - 1, target[edge]]
                if walks == 0.0:
                    continue
                stride = max(1.0, walks / limit)
                wanted = stride * chance(seed + subject * 8 + length) if stride > 1 else 0.0
                cursor[0] = to_it[subject] - 1 if length == 1 else offsets[subject]
                depth, passed = 0, 0.0
                while depth >= 0:
                    depth, passed, wanted, n_rules = _search(
                        offsets,
                        target,
                        edges.fact,
                        edges.relation,
                        edges.start,
                        edges.end,
                        edges.interval,
                        classes.table,
                        of_query,
                        classes.n_classes,
                        n_directed,
                        digits_of_form,
                        code_of_form,
                        to_answer,
                        to_it,
                        next_to_it,
                        subject,
                        queries.fact[query],
                        queries.start[query],
                        queries.end[query],
                        queries.directed_relation[query],
                        query,
                        length,
                        stride,
                        chain,
                        cursor,
                        lifted,
                        depth,
                        passed,
                        wanted,
                        recent,
                        table,
                        slots,
                        n_rules,
                    )
                    if depth >= 0:
                        table, slots = _grown(table)
        for entity in reached:
            to_answer[:, entity] = 0.0
        to_it[target[offsets[answer] : offsets[answer + 1]]] = 0
    return table[:n_rules, :_SUPPORT].copy(), table[:n_rules, _SUPPORT].copy()


@kernel
def _search(
    offsets: Array,
    target: Array,
    fact: Array,
    relation: Array,
    start: Array,
    end: Array,
    interval: Array,
    class_table: Array,
    of_query: Array,
    n_classes: int,
    n_directed: int,
    digits_of_form: Array,
    code_of_form: Array,
    to_answer: Array,
    to_it: Array,
    next_to_it: Array,
    subject: int,
    own_fact: int,
    query_start: int,
    query_end: int,
    head: int,
    query: int,
    length: int,
    stride: float,
    chain: Array,
    cursor: Array,
    lifted: Array,
    depth: int,
    passed: float,
    wanted: float,
    recent: Array,
    table: Array,
    slots: Array,
    n_rules: int,
) -> tuple[int, float, float, int]:
    """Search the walks of one length for one query, and count it for the rules they fall under.

    All in one loop: a call that is given arrays costs more than a step.

    Args:
        stride: every how many walks one is taken.
        chain: the edges of the walk under way; `cursor` the next edge to try at each depth.
        lifted: what the walk is lifted to at each depth (eq. 1).
        depth: where the search stands.
        passed: how many walks come before those of the step under way.
        wanted: the place of the next walk that is taken.
        recent: rules that queries were just counted for.

    Returns:
        Depth (-1: done; else there is no more room in the table), passed, wanted, and how many
        rules there are.
    """
    with_allen, with_gap = np.any(code_of_form == _ALLEN), np.any(code_of_form >= _GAP)
    here = subject if depth == 0 else target[chain[depth - 1]]
    while depth >= 0:
        last = depth + 1 == length
        edge = cursor[depth]
        if edge == (-1 if last else offsets[here + 1]):
            depth -= 1
            here = target[chain[depth - 1]] if depth > 0 else subject
            continue
        if last and n_rules + len(digits_of_form) > len(table):
            return depth, passed, wanted, n_rules
        cursor[depth] = next_to_it[edge] - 1 if last else edge + 1
        ahead = to_answer[length - depth - 1, target[edge]]
        if passed + ahead <= wanted:
            passed += ahead
            continue
        fresh = fact[edge] != own_fact
        for step in range(depth):
            fresh &= fact[chain[step]] != fact[edge]
        if not fresh:
            passed += ahead
            wanted += stride * np.ceil((passed - wanted) / stride)
            continue
        chain[depth] = edge
        edge_start, edge_end = start[edge], end[edge]
        word = 0
        pairs = lifted[depth, _ALL]
        for step in range(depth):
            earlier = chain[step]
            if len(class_table) > 0:
                word = class_table[interval[earlier], interval[edge]]
            else:
                word = relation_code(start[earlier], end[earlier], edge_start, edge_end)
            pairs = n_classes * pairs + word
        lifted[depth + 1, _BODY] = lifted[depth, _BODY] * n_directed + relation[edge]
        lifted[depth + 1, _ALL] = pairs
        lifted[depth + 1, _ADJACENT] = n_classes * lifted[depth, _ADJACENT] + word
        if len(of_query) > 0:
            word = of_query[interval[edge]]
        else:
            word = relation_code(edge_start, edge_end, query_start, query_end)
        lifted[depth + 1, _CLASSES] = n_classes * lifted[depth, _CLASSES] + word
        if with_allen:
            word = allen_code(edge_start, edge_end, query_start, query_end)
            lifted[depth + 1, _ALLEN] = _ALLEN_WORDS * lifted[depth, _ALLEN] + word
        if with_gap and (last or depth == 0):
            gap = gap_code(edge_start, edge_end, query_start, query_end)
            lifted[depth + 1, _GAP] = gap
            lifted[depth + 1, _FIRST_GAP] = gap
        if depth > 0:
            lifted[depth + 1, _FIRST_GAP] = lifted[depth, _FIRST_GAP]
        if not last:
            depth += 1
            here = target[edge]
            cursor[depth] = to_it[here] - 1 if depth + 1 == length else offsets[here]
            continue
        passed += ahead
        wanted += stride
        body = lifted[length, _BODY]
        for form in range(len(digits_of_form)):
            digits = lifted[length, digits_of_form[form]]
            code = lifted[length, code_of_form[form]]
            mixed = _mixed(form, length, head, body, digits, code)
            # Most walks of a query fall under rules that it was just counted for: a small table
            # of these spares the way to the large one.
            place = mixed >> np.uint64(64 - _RECENT_BITS)
            if (
                recent[place, _QUERY] == query
                and recent[place, _FORM] == form
                and recent[place, _LENGTH] == length
                and recent[place, _RELATIONS] == body
                and recent[place, _DIGITS] == digits
                and recent[place, _CODE] == code
            ):
                continue
            recent[place, _QUERY], recent[place, _FORM] = query, form
            recent[place, _LENGTH], recent[place, _RELATIONS] = length, body
            recent[place, _DIGITS], recent[place, _CODE] = digits, code
            slot: Any = np.int64(mixed % np.uint64(len(slots)))
            while slots[slot] >= 0:
                rule = slots[slot]
                if (
                    table[rule, _FORM] == form
                    and table[rule, _LENGTH] == length
                    and table[rule, _HEAD] == head
                    and table[rule, _RELATIONS] == body
                    and table[rule, _DIGITS] == digits
                    and table[rule, _CODE] == code
                ):
                    break
                slot = slot + 1 if slot + 1 < len(slots) else 0
            if slots[slot] < 0:
                slots[slot] = n_rules
                table[n_rules, _FORM], table[n_rules, _LENGTH] = form, length
                table[n_rules, _HEAD], table[n_rules, _RELATIONS] = head, body
                table[n_rules, _DIGITS], table[n_rules, _CODE] = digits, code
                table[n_rules, _SUPPORT], table[n_rules, _QUERY] = 0, -1
                n_rules += 1
            rule = slots[slot]
            table[rule, _SUPPORT] += table[rule, _QUERY] != query
            table[rule, _QUERY] = query
    return depth, passed, wanted, n_rules


@kernel
def _parts_of_forms(kinds: Array, words: Array, first_gap: int) -> tuple[Array, Array]:
    """Which part of what a walk is lifted to holds the digits of each form, and which its code."""
    digits = np.full(len(kinds), _NOTHING)
    code = np.full(len(kinds), _NOTHING)
    for form in range(len(kinds)):
        if kinds[form] == ALL:
            digits[form] = _ALL
        elif kinds[form] == ADJACENT:
            digits[form] = _ADJACENT
        if words[form] == CLASSES:
            code[form] = _CLASSES
        elif words[form] == ALLEN:
            code[form] = _ALLEN
        elif words[form] == GAP:
            code[form] = _FIRST_GAP if form == first_gap else _GAP
    return digits, code


@kernel
def _count_to_answer(
    offsets: Array, target: Array, answer: int, limit: int, seed: int, to_answer: Array
) -> Array:
    """Count the walks of each length that lead from an entity to the answer, facts used twice too.

    Where one more step back would read more edges than the limit, some entities are left out.

    Returns:
        The entities that have a count, some of them more than once.
    """
    to_answer[0, answer] = 1.0
    frontier = np.full(1, answer, dtype=np.int32)
    reached = [frontier]
    for length in range(1, len(to_answer)):
        chosen = thin_out(offsets, frontier, limit, seed + answer * 8 + length)
        if len(chosen) < len(frontier):
            kept = to_answer[length - 1][frontier[chosen]]
            to_answer[length - 1][frontier] = 0.0
            to_answer[length - 1][frontier[chosen]] = kept
            frontier = frontier[chosen]
        steps = (offsets[frontier + 1] - offsets[frontier]).sum()
        further = np.empty(min(steps, len(offsets) - 1), dtype=np.int32)
        n = 0
        for entity in frontier:
            for edge in range(offsets[entity], offsets[entity + 1]):
                if to_answer[length, target[edge]] == 0.0:
                    further[n] = target[edge]
                    n += 1
                to_answer[length, target[edge]] += to_answer[length - 1, entity]
        frontier = further[:n].copy()
        reached.append(frontier)
    return _joined(reached)


@kernel
def _joined(parts: list[Array]) -> Array:
    size = 0
    for part in parts:
        size += len(part)
    joined = np.empty(size, dtype=np.int32)
    size = 0
    for part in parts:
        joined[size : size + len(part)] = part
        size += len(part)
    return joined


@kernel
def _mixed(form: int, length: int, head: int, body: int, digits: int, code: int) -> Any:
    """A number in whose bits all numbers of a rule have their part."""
    mixed = np.uint64(body) * np.uint64(0xD1B54A32D192ED03)
    mixed += np.uint64(digits) * np.uint64(0xBF58476D1CE4E5B9)
    mixed += np.uint64(code) * np.uint64(0x94D049BB133111EB)
    mixed += np.uint64((head * 8 + length) * 8 + form) * np.uint64(0x8CB92BA72F3D8DD7)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def _grown(table: Array) -> tuple[Array, Array]:
    """The same rules with room for twice as many, and their slots."""
    larger = np.empty((2 * len(table), _COLUMNS), dtype=np.int64)
    larger[: len(table)] = table
    slots = np.full(_SLOTS * len(larger), -1, dtype=np.int64)
    for rule in range(len(table)):
        mixed = _mixed(
            table[rule, _FORM],
            table[rule, _LENGTH],
            table[rule, _HEAD],
            table[rule, _RELATIONS],
            table[rule, _DIGITS],
            table[rule, _CODE],
        )
        slot: Any = np.int64(mixed % np.uint64(len(slots)))
        while slots[slot] >= 0:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        slots[slot] = rule
    return larger, slots


@kernel
def walks_between(
    offsets: Array,
    target: Array,
    fact: Array,
    subject: int,
    answer: int,
    max_length: int,
    own_fact: int,
    most: int,
) -> tuple[Array, bool]:
    """Every walk from one entity to another, pruned by the distance to the answer.

    Args:
        offsets: where each entity's edges begin.
        target: of each edge; likewise `fact`.
        subject: where walks begin.
        answer: where they end; they may pass through it.
        max_length: of walks.
        own_fact: the fact that is not walked (-1: none).
        most: how many walks to return.

    Returns:
        The edges of each walk, -1 past its end, in depth-first order; and whether these are all.
    """
    far = max_length + 1
    distance = np.full(len(offsets) - 1, far, dtype=np.int8)
    distance[answer] = 0
    queue = np.empty(len(offsets) - 1, dtype=np.int32)
    queue[0] = answer
    n_queued, first = 1, 0
    while first < n_queued and distance[queue[first]] < max_length - 1:
        entity = queue[first]
        first += 1
        for out in range(offsets[entity], offsets[entity + 1]):
            if distance[target[out]] == far:
                distance[target[out]] = distance[entity] + 1
                queue[n_queued] = target[out]
                n_queued += 1
    found = np.full((16, max_length), -1, dtype=np.int32)
    n = 0
    chain = np.full(max_length, -1, dtype=np.int32)
    next_edge = np.empty(max_length, dtype=np.int64)
    next_edge[0] = offsets[subject]
    stop = np.empty(max_length, dtype=np.int64)
    stop[0] = offsets[subject + 1]
    depth = 0
    while depth >= 0:
        if next_edge[depth] == stop[depth]:
            chain[depth] = -1
            depth -= 1
            continue
        here = next_edge[depth]
        next_edge[depth] += 1
        fresh = fact[here] != own_fact
        for step in range(depth):
            fresh &= fact[chain[step]] != fact[here]
        if not fresh or distance[target[here]] > max_length - depth - 1:
            continue
        chain[depth] = here
        if target[here] == answer:
            if n == most:
                return found[:n], False
            if n == len(found):
                larger = np.full((2 * n, max_length), -1, dtype=np.int32)
                larger[:n] = found
                found = larger
            found[n, : depth + 1] = chain[: depth + 1]
            n += 1
        if depth + 1 < max_length:
            depth += 1
            next_edge[depth] = offsets[target[here]]
            stop[depth] = offsets[target[here] + 1]
    return found[:n], True
