"""Tuples of arrays that the kernels over walks take and make."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

NO_PAIRS, ADJACENT_PAIRS, ALL_PAIRS = range(3)
"""Which pairs of its own intervals a body distinguishes."""

CLASS_CODES, ALLEN_CODES, GAP_CODES, NO_CODES = range(4)
"""What codes consist of: each interval's class or Allen relation to the query's, the last gap."""

N_MARKS = 6
"""How many kinds of marked candidates a query may have."""

_MIN_SLOTS = 1 << 18  # that are counted in at once; more of them would not stay in the CPU cache


class Edges(NamedTuple):
    """Facts and their inverses by entity, with the times that constraints compare.

    `rank` is each edge's position in the order of relation, target and edge, `by_rank` its
    inverse; `interval` is the id of the edge's interval among the distinct ones.
    """

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array
    end: Array
    rank: Array
    by_rank: Array
    source: Array
    interval: Array


class IntervalClasses(NamedTuple):
    """Classes of pairs of intervals: before, touching and after, or user-defined ones.

    User-defined classes are in `table` for each pair of intervals, and in `of_query` for each
    query and interval; both are empty otherwise.
    """

    n_classes: int
    table: Array
    of_query: Array


class Trie(NamedTuple):
    """Which relation may follow which, as prefix trees; without nodes, any may follow any.

    `roots` is the node of the empty body, for the queries of each directed relation.
    """

    roots: Array
    offsets: Array
    relation: Array
    child: Array


class QueriesBySubject(NamedTuple):
    """Queries in the order of their distinct subjects, or relations and subjects.

    Queries that share walks stand together: those of a subject and, where rules are given, of one
    relation; and among these, queries with the same interval, which share counts. `answer` is the
    known answer.
    """

    subject: Array
    offsets: Array
    directed_relation: Array
    fact: Array
    start: Array
    end: Array
    answer: Array


class QueriesByAnswer(NamedTuple):
    """Queries in the order of their distinct answers."""

    answer: Array
    offsets: Array
    subject: Array
    directed_relation: Array
    fact: Array
    start: Array
    end: Array


class Marks(NamedTuple):
    """Marked candidates of each query, and which of the `N_MARKS` kinds each is of."""

    offsets: Array
    entity: Array
    mark: Array


class ListedCandidates(NamedTuple):
    """Queries, and the candidates listed for each."""

    subject: Array
    directed_relation: Array
    start: Array
    end: Array
    fact: Array
    offsets: Array
    candidate: Array


class RuleIndex(NamedTuple):
    """Rules by form, length and body, for lookup.

    The bodies of form f and length l, sorted by relations and digits, stand at
    `body_offsets[f, l]:body_offsets[f, l + 1]`; the rules of body b, sorted by relation and code,
    at `rule_offsets[b]:rule_offsets[b + 1]`.
    """

    body_offsets: Array
    relations: Array
    digits: Array
    rule_offsets: Array
    directed_relation: Array
    code: Array


class Level(NamedTuple):
    """The walks of one length from one entity, by body and target, in one temporal form.

    `code_type` is what codes of the form consist of. A prefix is a walk without its last edge:
    `chain` are the edges of each. `last_edges` are distinct; `prefix` and `last` are indices of
    each walk. A group is the walks of one body that end in one entity, `group_target`. `relations`
    and `digits` are of each body, the latter its temporal relations, as one integer each.
    """

    form: int
    code_type: int
    length: int
    chain: Array
    last_edges: Array
    prefix: Array
    last: Array
    group_offsets: Array
    group_target: Array
    body_offsets: Array
    relations: Array
    digits: Array


class Workspace(NamedTuple):
    """Zeros to work with; every kernel leaves zeros behind.

    `counts` holds the codes of at least one group; the others have an item for each entity or fact.
    """

    counts: Array
    of_entity: Array
    of_fact: Array

    @staticmethod
    def of(n_codes: int, n_entities: int, n_facts: int) -> "Workspace":
        """Allocate zeros; pages that are not used cost nothing."""
        return Workspace(
            counts=np.zeros(max(_MIN_SLOTS, 2 * n_codes), np.int32),
            of_entity=np.zeros(n_entities, np.int32),
            of_fact=np.zeros(n_facts, np.int32),
        )


class SearchWorkspace(NamedTuple):
    """Zeros to search rules with, `next_to_answer` apart.

    `n_walks` counts the walks of each length from each entity to the answer. The edges from an
    entity to the answer are a linked list, so that no last step is searched for: `first_to_answer`
    is its first edge plus 1, `next_to_answer` the next one plus 1, and 0 is the end.
    """

    n_walks: Array
    first_to_answer: Array
    next_to_answer: Array

    @staticmethod
    def of(max_length: int, n_entities: int, n_edges: int) -> "SearchWorkspace":
        """Allocate what a search of walks up to a length takes."""
        return SearchWorkspace(
            np.zeros((max_length, n_entities)),
            np.zeros(n_entities, np.int64),
            np.empty(n_edges, np.int64),
        )


# Facts at instants and their inverses; a run is edges that share all columns but the time.


class ByTime(NamedTuple):
    """Edges by entity, then by time."""

    offsets: Array
    relation: Array
    target: Array
    time: Array


class ByEntityRelation(NamedTuple):
    """Edges by entity, relation and time: the runs of each entity, and the edges of each run."""

    offsets: Array
    relation: Array
    run_offsets: Array
    target: Array
    time: Array
    fact: Array


class ByRelation(NamedTuple):
    """Edges by relation, then by time."""

    offsets: Array
    source: Array
    target: Array
    time: Array
    fact: Array


class ByPair(NamedTuple):
    """Edges by entity, target, relation and time: the runs of each entity, the times of each."""

    offsets: Array
    target: Array
    relation: Array
    run_offsets: Array
    time: Array


class ByAnswer(NamedTuple):
    """Edges by relation, target and time: the runs of each relation, and the times of each run."""

    offsets: Array
    target: Array
    run_offsets: Array
    time: Array
