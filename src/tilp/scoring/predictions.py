"""`Predictions`: the best candidates of a query with their names, also as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._deprecated import RenamedAttribute
from tilp.graph import TemporalGraph
from tilp.scoring.queries import Query
from tilp.viz.html import bar, element, fragment, table

if TYPE_CHECKING:
    from tilp.scoring.topk import TopCandidates


@dataclass(frozen=True, slots=True)
class Prediction:
    """One candidate of a query.

    Attributes:
        rank: Rank among all entities; equal scores in the order of entities.
        candidate: Its name.
        id: Its id.
        score: Higher is better.
        share: Share of all candidates' scores, or of their softmax where scores have a
            temperature.
        known: True if the evidence has it as an answer at a time that touches the query's.
    """

    rank: int
    candidate: str
    id: str
    score: float
    share: float
    known: bool


@dataclass(frozen=True, slots=True)
class Predictions(Sequence[Prediction]):
    """The best candidates of a query, the best first.

    Attributes:
        query: The query as it was given.
        candidates: Its best candidates.

    >>> predictions = Predictions(
    ...     Query("playsFor", "Ada"), (Prediction(1, "Rovers", "7", 2.5, 0.625, True),)
    ... )
    >>> print(predictions)
    (Ada, playsFor, ?, [?, ?])
    rank  candidate   share   score
       1  Rovers     62.5 %  2.5000  known
    """

    query: Query
    candidates: tuple[Prediction, ...]

    answers = RenamedAttribute("candidates")

    def __len__(self) -> int:
        return len(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...
    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        return self.candidates[index]

    def _cells(self) -> list[tuple[str, str, str, str, str]]:
        """Return the cells of each row: rank, candidate, share, score, `known` or nothing."""
        return [
            (
                str(row.rank),
                row.candidate,
                f"{100 * row.share:.1f} %",
                f"{row.score:.4f}",
                "known" if row.known else "",
            )
            for row in self
        ]

    def __str__(self) -> str:
        rows = [("rank", "candidate", "share", "score", ""), *self._cells()]
        rank, name, share, score = (max(len(row[column]) for row in rows) for column in range(4))
        lines = (
            f"{a:>{rank}}  {b:<{name}}  {c:>{share}}  {d:>{score}}  {e}" for a, b, c, d, e in rows
        )
        return "\n".join([str(self.query), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        greatest = max((row.share for row in self), default=0.0)
        rows = [
            [*cells[:2], bar(row.share, 0.0, greatest), *cells[2:]]
            for row, cells in zip(self, self._cells(), strict=True)
        ]
        header = ["", "candidate", "", "share", "score", ""]
        return fragment(element("h3", str(self.query)), table(header, rows, numbers=3))


def name_predictions(
    graph: TemporalGraph, queries: Sequence[Query], best: TopCandidates
) -> list[Predictions]:
    """Return the best candidates of each query with their names."""
    columns = (
        best.rank.tolist(),
        graph.entities.labels.gather(best.entity).to_list(),
        graph.entities.ids.gather(best.entity).to_list(),
        best.score.tolist(),
        best.share.tolist(),
        best.known.tolist(),
    )
    rows = [Prediction(*row) for row in zip(*columns, strict=True)]
    return [
        Predictions(query, tuple(rows[first:last]))
        for query, first, last in zip(queries, best.offsets[:-1], best.offsets[1:], strict=True)
    ]


def predictions_frame(
    graph: TemporalGraph, ids: NDArray[np.int64], queries: pl.DataFrame, best: TopCandidates
) -> pl.DataFrame:
    """Return the best candidates of many queries as a table.

    Each row has the id of the query, the query as it was given (the text of `QueryColumns`), and
    the fields of `Prediction`.
    """
    query = np.repeat(np.arange(len(queries)), np.diff(best.offsets))
    return pl.DataFrame(
        [
            pl.Series("query", ids[query], pl.Int64),
            *queries[query],
            pl.Series("rank", best.rank),
            graph.entities.labels.gather(best.entity).alias("candidate"),
            graph.entities.ids.gather(best.entity).alias("id"),
            pl.Series("score", best.score),
            pl.Series("share", best.share),
            pl.Series("known", best.known),
        ]
    )
