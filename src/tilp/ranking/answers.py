"""`Answers`: the best candidates of a query, with their names; and many of them as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import overload

import polars as pl

from tilp.evaluation import Scores
from tilp.graph import QueryTable, TemporalGraph
from tilp.pictures.markup import bar, element, fragment, table
from tilp.ranking.queries import Query
from tilp.ranking.standing import Standing

__all__ = ["Answer", "Answers", "answers", "answers_frame"]


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


def answers(
    graph: TemporalGraph, queries: Sequence[Query], table: QueryTable, scores: Scores, k: int
) -> list[Answers]:
    """The k best candidates of each query, with names; equal scores in the order of entities.

    Args:
        graph: whose train split is the evidence.
        queries: as they were asked.
        table: the same as integers.
        scores: of their candidates.
        k: how many.
    """
    return [
        Answers(
            query,
            tuple(
                Answer(
                    rank=rank,
                    candidate=graph.entities.label(entity),
                    id=graph.entities.id(entity),
                    score=float(standing.score[entity]),
                    share=float(standing.share[entity]),
                    known=entity in standing.known,
                )
                for rank, entity in enumerate(standing.best(k), start=1)
            ),
        )
        for query, standing in zip(queries, Standing.each(graph, table, scores), strict=True)
    ]


def answers_frame(found: Iterable[Answers]) -> pl.DataFrame:
    """Answers as a table.

    Returns:
        A row for each: the number of the query, the query as it was asked, and the fields of
        `Answer`.
    """
    rows = [
        {
            "query": number,
            "subject": one.query.subject,
            "relation": one.query.relation,
            "object": one.query.object,
            "start": _text(one.query.start),
            "end": _text(one.query.end),
            **asdict(answer),
        }
        for number, one in enumerate(found)
        for answer in one
    ]
    return pl.DataFrame(rows, schema=_SCHEMA)


def _text(date: str | int | None) -> str | None:
    return None if date is None else str(date)


_SCHEMA = {
    "query": pl.Int64,
    "subject": pl.String,
    "relation": pl.String,
    "object": pl.String,
    "start": pl.String,
    "end": pl.String,
    "rank": pl.Int64,
    "candidate": pl.String,
    "id": pl.String,
    "score": pl.Float64,
    "share": pl.Float64,
    "known": pl.Boolean,
}
