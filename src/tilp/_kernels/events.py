"""Facts at instants and their inverses, in the orders in which forecasting rules read them.

A *run* is the edges that share all columns of an order but the time.
"""

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


@kernel
def find_edges(edges: ByEntityRelation, entity: int, relation: int) -> tuple[int, int]:
    """Return where the edges of an entity's relation begin and end."""
    run = find_sorted(edges.relation, edges.offsets[entity], edges.offsets[entity + 1], relation)
    if run < 0:
        return 0, 0
    return edges.run_offsets[run], edges.run_offsets[run + 1]
