"""`Case` and `Term`: what is asked of an explanation, and what a score is the sum of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilp.evaluation import Scores
from tilp.explanation.parts import Grounding, Reason, WalkedFact
from tilp.graph import QueryTable, TemporalGraph
from tilp.ranking.scoring import Applied

__all__ = ["NOT_LOOKED_AT", "Case", "Ground", "Key", "Term"]

NOT_LOOKED_AT = "not looked at"
"""The kind of what stands for all that was not looked at."""

Key = tuple[str | int, ...]
Ground = Callable[[int], tuple[Grounding, ...]]


@dataclass(frozen=True, eq=False)
class Case:
    """A single query and one of its candidates.

    Attributes:
        graph: the facts as they were given, whose train split is the evidence.
        queries: the query.
        applied: the rules, applied to it.
        scores: of the candidates that are listed.
        candidate: the entity.
    """

    graph: TemporalGraph
    queries: QueryTable
    applied: Applied
    scores: Scores
    candidate: int

    @property
    def head(self) -> int:
        """The directed relation that is asked for."""
        return int(self.queries.head[0])

    @property
    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidate as a list of candidates: where it begins and ends, and itself."""
        return np.array([0, 1]), np.array([self.candidate], np.int32)

    def walked(self, steps: Iterable[tuple[int, bool]], share: float | None = None) -> Grounding:
        """Facts, each with whether it is read from object to subject, as people read them."""
        return Grounding(
            tuple(WalkedFact(fact, self.graph.fact(fact), inverse) for fact, inverse in steps),
            share,
        )

    def relation(self, directed: int) -> str:
        """The name of a relation, whichever way it is read."""
        return self.graph.relations.label(directed % len(self.graph.relations))


@dataclass(frozen=True, eq=False)
class Term:
    """A part of a score, and the reason that it is, whose groundings are found when wanted.

    Attributes:
        key: by which the same reason of two candidates is known.
        reason: without groundings.
        ground: gives the groundings, up to a number; None where a reason has none.
    """

    key: Key
    reason: Reason
    ground: Ground | None = None

    @property
    def score(self) -> float:
        """What it adds."""
        return self.reason.score

    def grounded(self, n: int) -> Reason:
        """The reason with up to n groundings."""
        if self.ground is None or n < 1:
            return self.reason
        found = self.ground(n)
        return replace(self.reason, groundings=found, walks=max(self.reason.walks, len(found)))
