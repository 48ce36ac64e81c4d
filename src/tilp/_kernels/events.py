"""Facts at instants and their inverses, in the orders in which timestamp rules read them."""

from typing import NamedTuple

from tilp._kernels.arrays import find_sorted
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


class ByTime(NamedTuple):
    """Edges by entity, then by time."""

    offsets: Array
    relation: Array
    target: Array
    time: Array


class ByEntityRelation(NamedTuple):
    """Edges by entity, relation and time.

    The relations that an entity has stand at `offsets[e]:offsets[e + 1]` of `relation`, the edges
    of the one at place p at `begin[p]:begin[p + 1]`.
    """

    offsets: Array
    relation: Array
    run_offsets: Array
    target: Array
    time: Array
    fact: Array


class ByRelation(NamedTuple):
    """Edges by relation, then by time; those of relation r stand at `begin[r]:begin[r + 1]`."""

    offsets: Array
    source: Array
    target: Array
    time: Array
    fact: Array


class ByPair(NamedTuple):
    """Edges by entity, target, relation and time.

    The pairs of a target and a relation that an entity has stand at `offsets[e]:offsets[e + 1]` of
    `target` and `relation`, the times of the one at place p at `begin[p]:begin[p + 1]`.
    """

    offsets: Array
    target: Array
    relation: Array
    run_offsets: Array
    time: Array


class ByAnswer(NamedTuple):
    """Edges by relation, target and time.

    What answered a relation stands at `offsets[r]:offsets[r + 1]` of `target`, the times at which
    the one at place p did at `begin[p]:begin[p + 1]`.
    """

    offsets: Array
    target: Array
    run_offsets: Array
    time: Array


@kernel
def edges_of(edges: ByEntityRelation, entity: int, relation: int) -> tuple[int, int]:
    """Where the edges of an entity's relation begin and end."""
    run = find_sorted(edges.relation, edges.offsets[entity], edges.offsets[entity + 1], relation)
    if run < 0:
        return 0, 0
    return edges.run_offsets[run], edges.run_offsets[run + 1]


@kernel
def first_from(times: Array, first: int, last: int, time: int) -> int:
    """The place of the first time that is no earlier, among those from first to last, which rise.

    `last` where all are earlier.
    """
    while first < last:
        middle = (first + last) // 2
        if times[middle] < time:
            first = middle + 1
        else:
            last = middle
    return first
