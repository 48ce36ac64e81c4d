"""Tuples of arrays that the kernels over walks take and make."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]

NO_PAIRS, ADJACENT_PAIRS, ALL_PAIRS = range(3)
"""Which pairs of its own intervals a body distinguishes."""

CLASS_CODES, ALLEN_CODES, GAP_CODES, NO_CODES = range(4)
"""What codes consist of: each interval's class or Allen relation to the query's, the last gap."""

N_MARKS = 6
"""How many kinds of marked candidates a query may have."""


class Edges(NamedTuple):
    """Facts and their inverses by entity, with the times that constraints compare."""

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array
    end: Array
    rank: Array  # position of each edge in the order of relation, target and edge
    by_rank: Array  # the edges in this order
    source: Array
    interval: Array  # id of each edge's interval among the distinct ones


class IntervalClasses(NamedTuple):
    """Classes of pairs of intervals: before, touching and after, or user-defined ones."""

    n_classes: int
    table: Array  # user-defined: the class of each pair of intervals; else empty
    of_query: Array  # user-defined: the class of each query and interval; else empty
    gap_edges: Array  # least gap of each gap class


class Trie(NamedTuple):
    """Which relation may follow which, as prefix trees; without nodes, any may follow any."""

    roots: Array  # node of the empty body, for the queries of each directed relation
    offsets: Array
    relation: Array
    child: Array


class GroupedQueries(NamedTuple):
    """Queries in the order of an entity that they share: the subject, or the answer.

    Those of a subject are of one relation, too, where rules are given. Among these, queries with
    the same interval, which share counts, stand together.
    """

    entity: Array  # of each group
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
    """Rules by form, length and body, for lookup; bodies by relations and digits, rules by code."""

    body_offsets: Array  # the bodies of form f and length l are at [f, l]:[f, l + 1]
    relations: Array  # of each body, likewise digits
    digits: Array
    rule_offsets: Array  # where the rules of each body begin
    directed_relation: Array  # of each rule, likewise its code
    code: Array


class Level(NamedTuple):
    """The walks of one length from one entity, by body and target, in one temporal form."""

    form: int
    code_type: int  # what codes of the form consist of
    length: int
    chain: Array  # edges of each prefix, a walk without its last edge
    last_edges: Array  # distinct
    prefix: Array  # index of each walk's prefix
    last: Array  # index of each walk's last edge
    group_offsets: Array  # a group is the walks of one body that end in one entity, its target
    group_target: Array
    body_offsets: Array
    relations: Array  # of each body, as one integer
    digits: Array  # temporal relations of each body, as one integer


class Workspace(NamedTuple):
    """Zeros to work with; every kernel leaves zeros behind."""

    counts: Array  # for the codes of at least one group
    of_entity: Array  # an item for each entity
    of_fact: Array  # an item for each fact


class SearchWorkspace(NamedTuple):
    """Zeros to search rules with, `next_to_answer` apart."""

    n_walks: Array  # walks of each length from each entity to the answer
    first_to_answer: Array  # of each entity, its first edge to the answer plus 1 (0: none)
    next_to_answer: Array  # of each edge, the next such edge plus 1: no last step is searched for


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
    first: Array  # the first times of a relation's runs, ascending
    latest: Array  # times by relation and time
    latest_run: Array  # the run of each of these
