"""`Scores`: the scored candidates of queries, sparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints, Mask, ranges_to_indices
from tilp.errors import TilpError
from tilp.graph import QueryTable


@dataclass(frozen=True, eq=False)
class Scores:
    """Scored candidates of a batch of queries; entities that are not listed have a default score.

    Attributes:
        offsets: First index of each query's candidates, and the end of the last.
        candidate: Entity ids, each at most once a query, in any order.
        score: Score of each candidate; higher is better.
        default: Score of entities that are not listed, for all queries or for each (default 0).
        reached: True for each query whose answer a rule reaches. None if that is not known: an
            answer then counts as reached if it is listed.
        temperature: Divisor that makes scores logarithms of probabilities (up to a constant).
            None if scores are proportional to probabilities.

    >>> scores = Scores(np.array([0, 2]), np.array([4, 7]), np.array([0.5, 0.25]), default=0.01)
    >>> scores.totals(n_entities=10)
    array([0.83])
    """

    offsets: Ints
    candidate: Ids
    score: Floats
    default: float | Floats = 0.0
    reached: Mask | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "offsets", np.ascontiguousarray(self.offsets, dtype=np.int64))
        set_field(self, "candidate", _entity_ids(self.candidate))
        set_field(self, "score", np.ascontiguousarray(self.score, dtype=np.float64))
        n, n_scores = len(self.candidate), len(self.score)
        if any(column.ndim != 1 for column in (self.offsets, self.candidate, self.score)):
            raise TilpError("offsets, candidates and scores are arrays of one dimension")
        if n != n_scores:
            raise TilpError(f"{n:,} candidates have {n_scores:,} scores; each has one")
        ends = self.offsets[[0, -1]].tolist() if len(self.offsets) else []
        if ends != [0, n] or (np.diff(self.offsets) < 0).any():
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
                f"{self._query_of(missing[0])} in its batch is not a number; "
                "leave out a candidate that has no score"
            )
        if np.isnan(default).any():
            raise TilpError("a default score is not a number")

    @classmethod
    def dense(cls, matrix: NDArray[np.floating[Any]], reached: Mask | None = None) -> Scores:
        """Make scores from a matrix with a row for each query and a column for each entity.

        >>> len(Scores.dense(np.zeros((2, 3))).candidate)
        6
        """
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            layout = "one row a query and one column an entity"
            raise TilpError(f"dense scores have {layout}, not the shape {matrix.shape}")
        queries, entities = matrix.shape
        offsets = np.arange(queries + 1, dtype=np.int64) * entities
        candidate = np.tile(np.arange(entities, dtype=np.int32), queries)
        return cls(offsets, candidate, matrix.reshape(-1).astype(np.float64), reached=reached)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def query(self) -> Ints:
        """Query index of each listed candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def defaults(self) -> Floats:
        """Default score of each query."""
        return np.broadcast_to(np.asarray(self.default, dtype=np.float64), (len(self),)).copy()

    def take(self, queries: Ints) -> Scores:
        """Return the scores of some of the queries, in the given order."""
        offsets, index = ranges_to_indices(self.offsets[queries], self.offsets[1:][queries])
        default = self.default[queries] if isinstance(self.default, np.ndarray) else self.default
        reached = None if self.reached is None else self.reached[queries]
        score = self.score[index]
        return Scores(offsets, self.candidate[index], score, default, reached, self.temperature)

    def of_candidates(self, offsets: Ints, candidate: Ids) -> Floats:
        """Return the scores of given candidates of each query; the listed ones are ascending."""
        index = self.indices_of(offsets, candidate)
        scores = np.repeat(self.defaults, np.diff(offsets))
        scores[index >= 0] = self.score[index[index >= 0]]
        return scores

    def indices_of(self, offsets: Ints, candidate: Ids) -> Ints:
        """Return the index of given candidates of each query among those listed, or -1."""
        indices = np.full(len(candidate), -1, np.int64)
        for query in range(len(self)):
            first, last = self.offsets[query], self.offsets[query + 1]
            wanted = slice(offsets[query], offsets[query + 1])
            if first < last:
                index = first + np.searchsorted(self.candidate[first:last], candidate[wanted])
                index[index == last] = first
                listed = self.candidate[index] == candidate[wanted]
                indices[wanted][listed] = index[listed]
        return indices

    def totals(self, n_entities: int) -> Floats:
        """Return the sum of the scores of all entities, for each query."""
        listed = np.bincount(self.query, self.score, minlength=len(self))
        return listed + (n_entities - np.diff(self.offsets)) * self.defaults

    def shares(self, query: Ints, score: Floats, n_entities: int) -> Floats:
        """Return scores as shares of all entities' scores; with a temperature, of their softmax."""
        if self.temperature is None:
            total = self.totals(n_entities)
        else:
            from tilp._kernels.candidates import softmax_totals

            greatest, total = softmax_totals(
                self.offsets, self.score, self.defaults, n_entities, self.temperature
            )
            score = np.exp((score - greatest[query]) / self.temperature)
        return np.divide(score, total[query], out=np.zeros_like(score), where=(total > 0)[query])

    def check(self, queries: int, entities: int) -> None:
        """Raise an error for another number of queries, or for candidates that are no entities."""
        if len(self) != queries:
            raise TilpError(f"{queries:,} queries have scores of {len(self):,}; score each query")
        wrong = np.flatnonzero((self.candidate < 0) | (self.candidate >= entities))
        if len(wrong):
            raise TilpError(
                f"query {self._query_of(wrong[0])} of its batch lists candidate "
                f"{self.candidate[wrong[0]]}, but entities are 0 to {entities - 1}"
            )

    def _query_of(self, index: int) -> int:
        return int(np.searchsorted(self.offsets, index, side="right")) - 1


def _entity_ids(candidate: NDArray[Any]) -> Ids:
    candidate = np.asarray(candidate)
    if candidate.size and not np.issubdtype(candidate.dtype, np.integer):
        raise TilpError(f"candidates are the integers of entities, not {candidate.dtype}")
    int32 = np.iinfo(np.int32)
    if candidate.size and (candidate.max() > int32.max or candidate.min() < int32.min):
        raise TilpError("a candidate is past every entity")
    return np.ascontiguousarray(candidate, dtype=np.int32)


ScoreFunction = Callable[[QueryTable], Scores]
"""Function that scores the candidates of queries, in the order of the queries."""
