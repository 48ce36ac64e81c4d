"""`Answers`: the best candidates of a query, with their names; and many of them as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.graph import TemporalGraph
from tilp.scoring.queries import Query
from tilp.scoring.topk import TopCandidates
from tilp.viz.html import bar, element, fragment, table


@dataclass(frozen=True, slots=True)
class Answer:
    """One candidate of a query.

    Attributes:
        rank: among all entities; equal scores in the order of entities.
        candidate: its name.
        id: of the candidate.
        score: higher is better.
        share: of all candidates' scores; of their softmax, where scores have a temperature.
        known: whether the evidence already has it as an answer at a time that touches the query's.
    """

    rank: int
    candidate: str
    id: str
    score: float
    share: float
    known: bool


@dataclass(frozen=True, slots=True)
class Answers(Sequence[Answer]):
    """The best candidates of a query, the best first.

    Attributes:
        query: as it was asked.
        answers: these.

    >>> found = Answers(Query("playsFor", "Ada"), (Answer(1, "Rovers", "7", 2.5, 0.625, True),))
    >>> print(found)
    (Ada, playsFor, ?, [?, ?])
    rank  candidate   share   score
       1  Rovers     62.5 %  2.5000  known
    """

    query: Query
    answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...
    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[place]

    def __str__(self) -> str:
        cells = [("rank", "candidate", "share", "score", "")]
        cells += [
            (
                str(one.rank),
                one.candidate,
                f"{100 * one.share:.1f} %",
                f"{one.score:.4f}",
                "known" if one.known else "",
            )
            for one in self
        ]
        rank, name, share, score = (max(len(row[place]) for row in cells) for place in range(4))
        lines = (
            f"{a:>{rank}}  {b:<{name}}  {c:>{share}}  {d:>{score}}  {e}" for a, b, c, d, e in cells
        )
        return "\n".join([str(self.query), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        greatest = max((one.share for one in self), default=0.0)
        rows = [
            [
                str(one.rank),
                one.candidate,
                bar(one.share, 0.0, greatest),
                f"{100 * one.share:.1f} %",
                f"{one.score:.4f}",
                "known" if one.known else "",
            ]
            for one in self
        ]
        header = ["", "candidate", "", "share", "score", ""]
        return fragment(element("h3", str(self.query)), table(header, rows, numbers=3))


def answers(graph: TemporalGraph, queries: Sequence[Query], best: TopCandidates) -> list[Answers]:
    """The best candidates of each query, with names.

    Args:
        graph: whose entities they are.
        queries: as they were asked.
        best: their best candidates.
    """
    entities = graph.entities
    columns = (
        best.rank.tolist(),
        entities.labels.gather(best.entity).to_list(),
        entities.ids.gather(best.entity).to_list(),
        best.score.tolist(),
        best.share.tolist(),
        best.known.tolist(),
    )
    every = [Answer(*row) for row in zip(*columns, strict=True)]
    return [
        Answers(query, tuple(every[first:last]))
        for query, first, last in zip(queries, best.begin[:-1], best.begin[1:], strict=True)
    ]


def answers_frame(
    graph: TemporalGraph, numbers: NDArray[np.int64], asked: pl.DataFrame, best: TopCandidates
) -> pl.DataFrame:
    """The best candidates of many queries as a table.

    Args:
        graph: whose entities they are.
        numbers: of the queries.
        asked: the queries, as the text of `QueryColumns` has them.
        best: their best candidates.

    Returns:
        A row for each candidate: the number of the query, the query as it was asked, and the
        fields of `Answer`.
    """
    query = np.repeat(np.arange(len(asked)), np.diff(best.begin))
    return pl.DataFrame(
        [
            pl.Series("query", numbers[query], pl.Int64),
            *asked[query],
            pl.Series("rank", best.rank),
            graph.entities.labels.gather(best.entity).alias("candidate"),
            graph.entities.ids.gather(best.entity).alias("id"),
            pl.Series("score", best.score),
            pl.Series("share", best.share),
            pl.Series("known", best.known),
        ]
    )
