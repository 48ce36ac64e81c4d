"""What the loops over walks are given and make, as tuples of arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ADJACENT",
    "ALL",
    "NONE",
    "N_MARKS",
    "Array",
    "Edges",
    "IntervalClasses",
    "Level",
    "ListedCandidates",
    "Marks",
    "QueriesByAnswer",
    "QueriesBySubject",
    "RuleIndex",
    "SearchWorkspace",
    "Trie",
    "Workspace",
]

Array = NDArray[Any]

NONE, ADJACENT, ALL = 0, 1, 2
"""Which pairs of its own intervals a body looks at."""

N_MARKS = 6
"""How many kinds of marked candidates a query may have."""

_SLOTS = 1 << 18  # to count in at once; in more, counts would not stay in the cache


class Edges(NamedTuple):
    """Facts and their inverses by entity, with the times that constraints look at.

    `rank` is each edge's place in the order of relation, target and edge, `by_rank` its inverse;
    `interval` numbers the distinct intervals.
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
    """Words between two intervals: how many, and which, if they are not before, touching, after.

    `table` has the word of each pair of intervals, `of_query` of each query and interval.
    """

    n_classes: int
    table: Array
    of_query: Array


class Trie(NamedTuple):
    """Which relation may follow which; without any node every one may follow."""

    begin: Array
    relation: Array
    child: Array


class QueriesBySubject(NamedTuple):
    """Queries in the order of their subjects, whose queries begin at `begin`.

    The queries of a subject that share the counts of walks stand together: those of one interval,
    and where rules are given, of one head.

    `fact` is the query's own fact, which is not walked (-1: none); `answer` its known answer.
    """

    subject: Array
    offsets: Array
    directed_relation: Array
    fact: Array
    start: Array
    end: Array
    answer: Array


class Marks(NamedTuple):
    """Marked candidates of each query, in the order of queries, whose candidates begin at `begin`.

    `mark` says what each of them is; all other candidates have none.
    """

    offsets: Array
    entity: Array
    mark: Array


class QueriesByAnswer(NamedTuple):
    """Queries in the order of their known answers, whose queries begin at `begin`."""

    answer: Array
    offsets: Array
    subject: Array
    directed_relation: Array
    fact: Array
    start: Array
    end: Array


class RuleIndex(NamedTuple):
    """Rules by form, length and body: bodies sorted by relations and digits, then their rules.

    Bodies of form f and length l stand at `first[f, l]:first[f, l + 1]`; the rules of body b,
    sorted by head and code, at `begin[b]:begin[b + 1]`.
    """

    body_offsets: Array
    relations: Array
    digits: Array
    rule_offsets: Array
    directed_relation: Array
    code: Array


class ListedCandidates(NamedTuple):
    """Queries and the candidates listed for each, at `offsets[q]:offsets[q + 1]`.

    `fact` is the query's own fact, which is no evidence (-1: none).
    """

    subject: Array
    directed_relation: Array
    start: Array
    end: Array
    fact: Array
    offsets: Array
    candidate: Array


class Level(NamedTuple):
    """The walks of one length from one entity, in the order of body and end, in one form.

    Attributes:
        form: which of the temporal forms; `words` is what its codes are made of.
        length: of the walks.
        chain: the edges of each prefix.
        edges: the distinct last edges.
        prefix: of each walk; likewise `last`, the place of its last edge.
        group_begin: where the walks of each body and end begin, and where the last end.
        group_end: the entity that they end in.
        body_begin: where the groups of each body begin, and where the last end.
        relations: the number that stands for each body's relations; likewise `digits`.
    """

    form: int
    words: int
    length: int
    chain: Array
    edges: Array
    prefix: Array
    last: Array
    group_begin: Array
    group_end: Array
    body_begin: Array
    relations: Array
    digits: Array


class Workspace(NamedTuple):
    """Zeros to work with; every loop leaves zeros behind.

    `counts` has room for the codes of one group at least; `of_entity` has a place for each entity,
    `of_fact` for each fact.
    """

    counts: Array
    of_entity: Array
    of_fact: Array

    @staticmethod
    def of(n_codes: int, n_entities: int, n_facts: int) -> "Workspace":
        """As many zeros as are needed; pages of them that are not used cost nothing."""
        return Workspace(
            counts=np.zeros(max(_SLOTS, 2 * n_codes), np.int32),
            of_entity=np.zeros(n_entities, np.int32),
            of_fact=np.zeros(n_facts, np.int32),
        )


class SearchWorkspace(NamedTuple):
    """To find rules in: zeros, but for `next_to_it`; pages that are not used cost nothing.

    `to_answer` counts the walks of each length from each entity to an answer. `to_it` is the first
    edge from each entity to the answer, `next_to_it` the next one after each edge, as a chain, so
    that no last step is searched for; both count from 1, and 0 is none.
    """

    to_answer: Array
    to_it: Array
    next_to_it: Array

    @staticmethod
    def of(max_length: int, n_entities: int, n_edges: int) -> "SearchWorkspace":
        """As much as is needed."""
        return SearchWorkspace(
            np.zeros((max_length, n_entities)),
            np.zeros(n_entities, np.int64),
            np.empty(n_edges, np.int64),
        )
