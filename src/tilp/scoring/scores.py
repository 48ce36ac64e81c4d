"""`Scores`: what a scorer says of queries, sparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ranges_to_indices
from tilp.errors import TilpError
from tilp.graph import QueryTable


@dataclass(frozen=True, eq=False)
class Scores:
    """The scored candidates of a batch of queries; every entity that is not listed is one too.

    Attributes:
        offsets: where the candidates of each query begin, and where the last end.
        candidate: entities, each at most once a query, in any order.
        score: of each of them; higher is better.
        default: the score of all that are not listed; one for all queries, or one for each.
        reached: whether some rule reaches each query's answer; None where that is not known, and
            an answer counts as reached if it is listed.
        temperature: that scores are divided by to be logarithms of candidates' shares; None where
            they are shares themselves.
    """

    offsets: NDArray[np.int64]
    candidate: NDArray[np.int32]
    score: NDArray[np.float64]
    default: float | NDArray[np.float64] = 0.0
    reached: NDArray[np.bool_] | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "offsets", np.ascontiguousarray(self.offsets, dtype=np.int64))
        set_field(self, "candidate", _integers(self.candidate))
        set_field(self, "score", np.ascontiguousarray(self.score, dtype=np.float64))
        if any(one.ndim != 1 for one in (self.offsets, self.candidate, self.score)):
            raise TilpError("offsets, candidates and scores are arrays of one dimension")
        if len(self.candidate) != len(self.score):
            raise TilpError(
                f"{len(self.candidate):,} candidates have {len(self.score):,} scores; each has one"
            )
        if (
            not len(self.offsets)
            or self.offsets[0] != 0
            or self.offsets[-1] != len(self.candidate)
            or (np.diff(self.offsets) < 0).any()
        ):
            raise TilpError(
                "offsets rise from 0 to the number of candidates: one for the begin of each "
                "query's candidates, and one for the end of the last"
            )
        default = np.asarray(self.default, dtype=np.float64)
        if default.ndim and default.shape != (len(self),):
            raise TilpError(f"{len(self):,} queries have {default.size:,} default scores")
        if self.reached is not None:
            set_field(self, "reached", np.asarray(self.reached, dtype=np.bool_))
            if self.reached.shape != (len(self),):
                raise TilpError(f"`reached` has shape {self.reached.shape}, not ({len(self)},)")
        missing = np.flatnonzero(np.isnan(self.score))
        if len(missing):
            raise TilpError(
                f"the score of candidate {self.candidate[missing[0]]} of query "
                f"{self.query_of(missing[0])} in its batch is not a number; "
                "leave out a candidate that has no score"
            )
        if np.isnan(default).any():
            raise TilpError("a default score is not a number")

    @classmethod
    def dense(
        cls, matrix: NDArray[np.floating[Any]], reached: NDArray[np.bool_] | None = None
    ) -> Scores:
        """All candidates listed: one row a query, one column an entity.

        >>> len(Scores.dense(np.zeros((2, 3))).candidate)
        6
        """
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise TilpError(
                f"dense scores have one row a query and one column an entity, not the shape "
                f"{matrix.shape}"
            )
        queries, entities = matrix.shape
        return cls(
            np.arange(queries + 1, dtype=np.int64) * entities,
            np.tile(np.arange(entities, dtype=np.int32), queries),
            matrix.reshape(-1).astype(np.float64),
            reached=reached,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, queries: NDArray[np.int64]) -> Scores:
        """The scores of some of the queries, in the given order."""
        offsets, place = ranges_to_indices(self.offsets[queries], self.offsets[1:][queries])
        return Scores(
            offsets,
            self.candidate[place],
            self.score[place],
            self.default[queries] if isinstance(self.default, np.ndarray) else self.default,
            None if self.reached is None else self.reached[queries],
            self.temperature,
        )

    def of(self, begin: NDArray[np.int64], candidate: NDArray[np.int32]) -> NDArray[np.float64]:
        """The scores of some candidates of each query, where those listed here are ascending.

        Args:
            begin: where the candidates of each query begin, and where the last end.
            candidate: these.
        """
        place = self.places_of(begin, candidate)
        # A score at the end, for those that are not listed.
        listed = np.append(self.score, np.nan)[place]
        return np.where(place >= 0, listed, np.repeat(self.defaults, np.diff(begin)))

    def places_of(
        self, begin: NDArray[np.int64], candidate: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Where such candidates stand in the list; -1: they are not listed."""
        found = np.full(len(candidate), -1, np.int64)
        for query in range(len(self)):
            first, last = self.offsets[query], self.offsets[query + 1]
            wanted = slice(begin[query], begin[query + 1])
            if first < last:
                place = first + np.searchsorted(self.candidate[first:last], candidate[wanted])
                place[place == last] = first
                listed = self.candidate[place] == candidate[wanted]
                found[wanted][listed] = place[listed]
        return found

    def totals(self, n_entities: int) -> NDArray[np.float64]:
        """The sum of the scores of all entities, for each query."""
        listed = np.bincount(self.query, self.score, minlength=len(self))
        return listed + (n_entities - np.diff(self.offsets)) * self.defaults

    def shares(
        self, query: NDArray[np.int64], score: NDArray[np.float64], n_entities: int
    ) -> NDArray[np.float64]:
        """What share of all candidates' scores some scores are; of their softmax, if they have one.

        Args:
            query: that each score is a candidate's of.
            score: these.
            n_entities: all candidates that a query has.
        """
        if self.temperature is None:
            total = self.totals(n_entities)
        else:
            from tilp._kernels.topk import softmax_totals

            greatest, total = softmax_totals(
                self.offsets, self.score, self.defaults, n_entities, self.temperature
            )
            score = np.exp((score - greatest[query]) / self.temperature)
        some = (total > 0)[query]
        return np.divide(score, total[query], out=np.zeros_like(score), where=some)

    @property
    def query(self) -> NDArray[np.int64]:
        """The query of each listed candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def defaults(self) -> NDArray[np.float64]:
        """The default score of each query."""
        return np.broadcast_to(np.asarray(self.default, dtype=np.float64), (len(self),)).copy()

    def query_of(self, place: int) -> int:
        """The query that a listed candidate belongs to."""
        return int(np.searchsorted(self.offsets, place, side="right")) - 1

    def check(self, queries: int, entities: int) -> None:
        """Refuse scores of another number of queries, and candidates that are no entities.

        Raises:
            TilpError: what is wrong, and where.
        """
        if len(self) != queries:
            raise TilpError(f"{queries:,} queries were asked, but scores of {len(self):,} came")
        strange = np.flatnonzero((self.candidate < 0) | (self.candidate >= entities))
        if len(strange):
            raise TilpError(
                f"query {self.query_of(strange[0])} of its batch lists candidate "
                f"{self.candidate[strange[0]]}, but entities are 0 to {entities - 1}"
            )


def _integers(candidate: NDArray[Any]) -> NDArray[np.int32]:
    candidate = np.asarray(candidate)
    if candidate.size and not np.issubdtype(candidate.dtype, np.integer):
        raise TilpError(f"candidates are the integers of entities, not {candidate.dtype}")
    if candidate.size and (
        candidate.max() > np.iinfo(np.int32).max or candidate.min() < np.iinfo(np.int32).min
    ):
        raise TilpError("a candidate is past every entity")
    return np.ascontiguousarray(candidate, dtype=np.int32)


ScoreFunction = Callable[[QueryTable], Scores]
"""From queries to the scores of their candidates, in the order of the queries."""
