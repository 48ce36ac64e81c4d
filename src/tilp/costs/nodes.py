"""Work on several machines: what is divided, what is not, and what goes over the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilp.costs.memory import GraphSize
from tilp.costs.stage import StageCost

__all__ = ["Nodes", "Spread", "spread"]


@dataclass(frozen=True)
class Nodes:
    """Machines of one kind.

    Attributes:
        count: how many.
        cores: of each, all of which work.
        bandwidth: bytes a second that leave one of them.
    """

    count: int = 1
    cores: int = 1
    bandwidth: float = 1.25e9

    @property
    def workers(self) -> int:
        """Cores of all."""
        return self.count * self.cores


@dataclass(frozen=True)
class Spread:
    """What a job takes on several machines.

    Attributes:
        alone: seconds in which one of them works alone.
        shipping: seconds in which the graph goes to the others.
        together: seconds in which all work.
        memory: bytes of each machine.
    """

    alone: float
    shipping: float
    together: float
    memory: float

    @property
    def seconds(self) -> float:
        """In all."""
        return self.alone + self.shipping + self.together


def spread(
    stages: Sequence[StageCost],
    size: GraphSize,
    nodes: Nodes,
    *,
    worker: float = 0.0,
    before: float = 0.0,
) -> Spread:
    """What stages take on several machines, each of which holds the whole graph.

    One machine reads and indexes the facts, and sends what it made to another; each that has it
    sends it on to one that has not. Then all work, each core on chunks of its own.

    Args:
        stages: of the job.
        size: of the graph.
        nodes: the machines.
        worker: bytes that each core needs for itself.
        before: bytes of the program.
    """
    alone = sum(one.serial for one in stages)
    together = sum(one.seconds(nodes.workers) - one.serial for one in stages)
    shipping = math.ceil(math.log2(nodes.count)) * size.whole / nodes.bandwidth
    while_built = max(size.reading, size.whole + size.building)
    while_walked = size.whole + nodes.cores * worker
    peak = max((one.peak for one in stages), default=0.0)
    return Spread(alone, shipping, together, before + max(while_built, while_walked) + peak)
