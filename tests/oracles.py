"""Plain and slow readings of the paper, for fast code to be compared with."""

from collections import Counter
from dataclasses import fields
from itertools import product

import numpy as np

from tilp.learning import KNOWN_KINDS
from tilp.rules import Atom, Constraint, Rule
from tilp.time import (
    FAR,
    GAP_CLASSES,
    Interval,
    allen,
    gap_code,
    known_ends,
    temporal_relation,
)
from tilp.types import Grain


def edges_of(graph, split="train"):
    """Facts and inverse facts: (source, atom, target, interval, fact), by source."""
    start, end = known_ends(graph.start, graph.end)
    edges = {}
    for row in graph.rows(split):
        relation = graph.relations.label(int(graph.relation[row]))
        interval = Interval(int(start[row]), int(end[row]))
        subject, object_ = int(graph.subject[row]), int(graph.object[row])
        edges.setdefault(subject, []).append((Atom(relation), object_, interval, row))
        edges.setdefault(object_, []).append((Atom(relation, True), subject, interval, row))
    return edges


def walks_from(edges, subject, max_length, own_fact, distinct=True):
    """All walks (lists of edges) from an entity, without the query's own fact.

    They visit no entity twice; unless `distinct`, they only use no fact twice.
    """
    walks = [[]]
    for _ in range(max_length):
        walks = [
            [*walk, edge]
            for walk in walks
            for edge in edges.get(walk[-1][1] if walk else subject, ())
            if edge[3] != own_fact
            and all(edge[3] != earlier[3] for earlier in walk)
            and not (distinct and edge[1] in {subject, *(earlier[1] for earlier in walk)})
        ]
        yield from walks


def lift(walk, head, query, grain, gaps=None):
    """The rule that a walk falls under in one temporal form (eq. 1)."""
    intervals = [edge[2] for edge in walk] + [query]
    last = len(intervals)
    constraints = []
    for first, second in product(range(1, last), range(2, last + 1)):
        if first >= second:
            continue
        a, b = intervals[first - 1], intervals[second - 1]
        with_query = second == last
        if grain is Grain.GAP:
            ends = a.start, a.end, b.start, b.end
            word = gaps[1][gap_code(*ends, gaps[0])] if gaps else GAP_CLASSES[gap_code(*ends)]
            wanted = with_query and first == last - 1
        elif grain is Grain.ALLEN:
            word, wanted = allen(a, b).value, with_query
        else:
            word = temporal_relation(a, b).value
            wanted = {
                Grain.STATIC: False,
                Grain.QUERY: with_query,
                Grain.ADJACENT: with_query or second == first + 1,
                Grain.PAIRS: True,
            }[grain]
        if wanted:
            constraints.append(Constraint(word, (f"I{first}", f"I{second}")))
    return Rule(head, tuple(edge[0] for edge in walk), tuple(constraints))


def counts(edges, subject, head, query, own_fact, max_length, grains, distinct=True, gaps=None):
    """N_c by rule and end, for all rules of the given forms."""
    found = Counter()
    for walk in walks_from(edges, subject, max_length, own_fact, distinct):
        for rule in {lift(walk, head, query, grain, gaps) for grain in grains}:
            found[rule, walk[-1][1]] += 1
    return found


def matching_edges(edges, rule, step, query):
    """Edges that meet the Markovian constraints of one step: predicate, and class to the query."""
    last = rule.length + 1
    word = next(
        one.word for one in rule.constraints if one.variables == (f"I{step + 1}", f"I{last}")
    )
    for source, outgoing in edges.items():
        for atom, target, interval, _ in outgoing:
            if atom == rule.body[step] and temporal_relation(interval, query).value == word:
                yield source, target


def walk_by_matrices(graph, edges, rule, subject, query, entry):
    """Eq. 6 with the operators of eq. 5, or with their maximum replaced by a sum."""
    vector = np.zeros(len(graph.entities), dtype=np.int64)
    vector[subject] = 1
    for step in range(rule.length):
        operator = np.zeros((len(vector), len(vector)), dtype=np.int64)
        for source, target in matching_edges(edges, rule, step, query):
            operator[target, source] = 1 if entry == "maximum" else operator[target, source] + 1
        vector = operator @ vector
    return vector


def walks_with_repeats(edges, rule, subject, query):
    """Walks under Markovian constraints by end, where a fact may be used again."""
    reached = Counter({subject: 1})
    for step in range(rule.length):
        onward = Counter()
        for source, target in matching_edges(edges, rule, step, query):
            if reached[source]:
                onward[target] += reached[source]
        reached = onward
    return dict(reached)


def counted(walker, queries, index):
    """Return what a walker counts for one query, as `counts` does: walks by rule and end."""
    records, weights = walker.count(queries[np.array([index])])
    assert (weights == 1).all()
    relation = int(queries.directed_relation[index])
    found = Counter()
    for _, form, length, relations, digits, code, end, count in records.tolist():
        rule = walker.encoding.lift((form, length, relation, relations, digits, code))
        if (rule, end) in found:  # the same rule in two forms: the same walks
            assert found[rule, end] == count
        found[rule, end] = count
    return found


def query_parts(walker, queries, number):
    """Subject, head, interval and own fact of one query."""
    head = int(queries.directed_relation[number])
    size = len(walker.graph.relations)
    atom = Atom(walker.graph.relations.label(head % size), head >= size)
    interval = Interval(int(queries.start[number]), int(queries.end[number]))
    return int(queries.subject[number]), atom, interval, int(queries.fact[number])


def pick(count, total, seed=0):
    """Some rows, seeded."""
    chosen = np.random.default_rng(seed).choice(total, min(count, total), replace=False)
    return np.sort(chosen)


def known_plainly(graph, subject, head, own_fact):
    """Candidate and interval of each training fact that answers a subject and directed relation."""
    start, end = known_ends(graph.start, graph.end)
    size = len(graph.relations)
    found = []
    for row in graph.rows("train"):
        ends = int(graph.subject[row]), int(graph.object[row])
        relation = int(graph.relation[row])
        for (here, there), directed in ((ends, relation), (ends[::-1], relation + size)):
            if (here, directed) == (subject, head) and row != own_fact:
                found.append((there, Interval(int(start[row]), int(end[row]))))
    return found


def kind_of(known, query):
    """How an interval at which a candidate is known lies to a query's, in a word."""
    if known.end < query.start:
        return "before"
    if known.start > query.end:
        return "after"
    arrives = known.start < known.end == query.start
    leaves = query.end == known.start < known.end
    return "meeting" if arrives or leaves else "touching"


def kinds_of_known(graph, subject, head, query, own_fact):
    """The place in `KINDS` of each candidate that is known; of several places the last."""
    kinds = {}
    for candidate, interval in known_plainly(graph, subject, head, own_fact):
        kind = KNOWN_KINDS.index(kind_of(interval, query))
        kinds[candidate] = max(kind, kinds.get(candidate, kind))
    return kinds


def marks_of(known, number):
    """Return the marks of a query's candidates by entity."""
    part = slice(known.offsets[number], known.offsets[number + 1])
    entities = known.entity[part].tolist()
    assert entities == sorted(set(entities))
    return dict(zip(entities, known.mark[part].tolist(), strict=True))


def same_arrays(first, second):
    """Whether two tables are the same, bit for bit."""
    return all(
        same_arrays(getattr(first, one.name), getattr(second, one.name))
        if one.name == "queries"
        else np.array_equal(getattr(first, one.name), getattr(second, one.name))
        for one in fields(first)
    )


def of_pairs(scores, begin, candidate):
    """Scores of listed candidates, whatever their order."""
    found = []
    for query in range(len(scores)):
        part = slice(scores.offsets[query], scores.offsets[query + 1])
        of = dict(zip(scores.candidate[part].tolist(), scores.score[part].tolist(), strict=True))
        default = float(scores.defaults[query])
        found += [of.get(int(one), default) for one in candidate[begin[query] : begin[query + 1]]]
    return np.array(found)


def assert_terms_add_up(terms, scores):
    """Check that contributions by name add up to the scores."""
    total = np.sum(list(terms.values()), axis=0)
    size = np.sum(np.abs(list(terms.values())), axis=0)
    assert (np.abs(total - scores) <= 1e-9 * size + 1e-12).all()


def walk_gap(walk, query):
    """How far the facts of a walk are from a time, together; open ends are numbers too."""
    return sum(
        max(float(query.start) - edge[2].end, float(edge[2].start) - query.end, 0.0)
        for edge in walk
    )


def clipped(interval):
    return tuple(min(max(one, -FAR), FAR) for one in (interval.start, interval.end))


def nearest_intervals(graph, edges, candidate, subject, own, query):
    """The nearest fact's interval for each group: kind · directed relations + relation."""
    size = len(graph.relations)
    start, end = clipped(query)
    found = {}
    for atom, target, interval, row in edges.get(candidate, ()):
        if row == own:
            continue
        relation = graph.relations.find(atom.relation) + size * atom.inverse
        group = 2 * size * (target == subject) + relation
        low, high = clipped(interval)
        order = (max(start - high, low - end, 0), abs(low - start), row)
        if group not in found or order < found[group][0]:
            found[group] = (order, interval)
    return {group: interval for group, (_, interval) in found.items()}
