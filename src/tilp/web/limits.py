"""`Limits`: how much one request, and all of them together, may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from tilp.parallel import thread_count

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service bears.

    Attributes:
        body: bytes of a request's body.
        batch_body: likewise, of a batch.
        computations: that run at once; None for as many as there are cores.
        waiting: requests that may wait for one to end; the next is told to come back later.
        seconds: that a request may wait and compute; then it is given up.
        arrival: seconds that a request's body may take to arrive, and each part of an answer to be
            read.
        chunk: queries of a batch that are computed together, between which others have a turn.
    """

    body: int = 2**16
    batch_body: int = 2**21
    computations: int | None = None
    waiting: int = 64
    seconds: float = 30.0
    arrival: float = 15.0
    chunk: int = 16

    @property
    def threads(self) -> int:
        """How many computations run at once."""
        return thread_count(self.computations)
