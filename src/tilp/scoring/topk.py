"""The k best candidates of queries: `Predictions`, and the one path of every prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._kernels.candidates import best_candidates
from tilp._utils.arrays import Floats, Ids, Ints, Mask, ranges_to_indices, split_by_sum
from tilp.errors import TilpError
from tilp.graph import KnownFact, QueryTable, TemporalGraph, known_facts
from tilp.graph.queries import KnownFacts, known_lines
from tilp.learning import known_answers
from tilp.parallel import Workers
from tilp.scoring.queries import Query, query_table
from tilp.scoring.scorer import Scorer
from tilp.scoring.scores import Scores
from tilp.viz.html import bar, element, fragment, table

_MAX_BATCH_MEMORY = 2**22  # numbers in memory while a batch is scored, about
_MAX_BATCH_QUERIES = 2**11  # larger batches have nothing more to share


@dataclass(frozen=True, slots=True)
class Prediction:
    """One candidate of a query.

    Attributes:
        rank: Rank among all entities; equal scores in the order of entities.
        candidate: Its name.
        id: Its id.
        score: Higher is better.
        share: Share of all candidates' scores, or of their softmax if they have a temperature.
        known: True if the evidence has it as an answer at a time that touches the query's.
        source: File and line of the first fact that says so; None if it is not known.
    """

    rank: int
    candidate: str
    id: str
    score: float
    share: float
    known: bool
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Predictions(Sequence[Prediction]):
    """The best candidates of a query, the best first.

    Attributes:
        query: The query as it was given.
        candidates: Its best candidates.
        known: Facts that answer it at that time.

    >>> predictions = Predictions(
    ...     Query("playsFor", "Ada"),
    ...     (Prediction(1, "Rovers", "7", 2.5, 0.625, True, "facts.csv:2"),),
    ...     (KnownFact(0, "Ada", "playsFor", "Rovers", "1990", "", "facts.csv:2"),),
    ... )
    >>> print(predictions)
    (Ada, playsFor, ?, [?, ?])
    known: Ada playsFor Rovers, 1990 to ? (facts.csv:2)
    rank  candidate   share   score
       1  Rovers     62.5 %  2.5000  known
    """

    query: Query
    candidates: tuple[Prediction, ...]
    known: Sequence[KnownFact] = ()

    def __len__(self) -> int:
        return len(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...
    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        return self.candidates[index]

    def _cells(self) -> list[tuple[str, str, str, str, str]]:
        cells = []
        for row in self:
            share, score = f"{100 * row.share:.1f} %", f"{row.score:.4f}"
            cells.append((str(row.rank), row.candidate, share, score, "known" * row.known))
        return cells

    def __str__(self) -> str:
        rows = [("rank", "candidate", "share", "score", ""), *self._cells()]
        rank, name, share, score = (max(len(row[column]) for row in rows) for column in range(4))
        layout = f"{{:>{rank}}}  {{:<{name}}}  {{:>{share}}}  {{:>{score}}}  {{}}"
        known = known_lines(self.known, len(self))
        return "\n".join([str(self.query), *known, *(layout.format(*row).rstrip() for row in rows)])

    def _repr_html_(self) -> str:
        greatest = max((row.share for row in self), default=0.0)
        rows = [
            [*cells[:2], bar(row.share, 0.0, greatest), *cells[2:]]
            for row, cells in zip(self, self._cells(), strict=True)
        ]
        header = ["", "candidate", "", "share", "score", ""]
        known = [element("p", line) for line in known_lines(self.known, len(self))]
        return fragment(element("h3", str(self.query)), *known, table(header, rows, numbers=3))


@dataclass(frozen=True, eq=False)
class TopCandidates:
    """The best candidates of queries, one query after the other, as columns of `Prediction`."""

    offsets: Ints  # of each query's candidates
    entity: Ids
    rank: Ints
    score: Floats
    share: Floats
    known: Mask
    fact: Ids  # first fact that makes the candidate known; -1 if none

    @classmethod
    def select(
        cls, graph: TemporalGraph, queries: QueryTable, scores: Scores, k: int, *, new_only: bool
    ) -> TopCandidates:
        """Select the k best candidates of each query; with `new_only`, of those not yet known."""
        n = len(graph.entities)
        known_offsets, known_entity = known_answers(graph, queries).at_query_time()
        n_known = np.diff(known_offsets)
        k_each = np.minimum(k + n_known if new_only else np.full(len(queries), k), n)
        offsets, entity, score = best_candidates(
            scores.offsets, scores.candidate, scores.score, scores.defaults, k_each, n
        )
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        known_key = np.repeat(np.arange(len(queries)), n_known) * n + known_entity
        known = np.isin(query * n + entity, known_key)
        rank = np.arange(len(entity)) - offsets[query] + 1
        fact = np.full(len(entity), -1, np.int32)
        best = cls(offsets, entity, rank, score, scores.shares(query, score, n), known, fact)
        if new_only:
            return best._first(k, ~known)
        for number in np.unique(query[known]).tolist():
            rows, answers = known_facts(graph, queries, number)
            own = slice(offsets[number], offsets[number + 1])
            hits = np.flatnonzero(np.isin(answers, entity[own]))[::-1]
            first = dict(zip(answers[hits].tolist(), rows[hits].tolist(), strict=True))
            fact[own] = [first.get(each, -1) for each in entity[own].tolist()]
        return best

    @classmethod
    def join(cls, parts: Sequence[TopCandidates]) -> TopCandidates:
        """Join the candidates of several parts, one part after the other."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(np.append(0, np.cumsum(sizes)), *map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _columns(self) -> list[NDArray[Any]]:
        return [getattr(self, column.name) for column in fields(self)[1:]]

    def take(self, queries: Ints) -> TopCandidates:
        """Return the candidates of some queries, in the given order, repeated or not."""
        offsets, index = ranges_to_indices(self.offsets[queries], self.offsets[1:][queries])
        return TopCandidates(offsets, *(column[index] for column in self._columns()))

    def _first(self, k: int, mask: Mask) -> TopCandidates:
        """Return the first k candidates of each query that are in a mask."""
        before = np.append(0, np.cumsum(mask))
        position = before[1:] - np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))
        mask = mask & (position <= k)
        offsets = np.append(0, np.cumsum(mask))[self.offsets]
        return TopCandidates(offsets, *(column[mask] for column in self._columns()))

    def named(self, graph: TemporalGraph) -> pl.DataFrame:
        """Return a table with the fields of `Prediction`."""
        return pl.DataFrame(
            {
                "rank": self.rank,
                "candidate": graph.entities.labels.gather(self.entity),
                "id": graph.entities.ids.gather(self.entity),
                "score": self.score,
                "share": self.share,
                "known": self.known,
                "source": [graph.source(row) if row >= 0 else None for row in self.fact.tolist()],
            },
            schema_overrides={"source": pl.String},
        )

    def frame(self, graph: TemporalGraph, ids: Ints, queries: pl.DataFrame) -> pl.DataFrame:
        """Return a table with id and text (of `QueryColumns`) of each candidate's query."""
        query = np.repeat(np.arange(len(queries)), np.diff(self.offsets))
        columns = [pl.Series("query", ids[query], pl.Int64), *queries[query]]
        return pl.DataFrame([*columns, *self.named(graph)])


@dataclass(frozen=True)
class TopKPredictor:
    """Predicts the k best candidates of queries."""

    graph: TemporalGraph  # as it was given; its train split is the scorer's evidence
    scorer: Scorer
    k: int = 10
    new_only: bool = False  # leave out known answers; the others keep their ranks

    def __post_init__(self) -> None:
        if self.k < 1:
            raise TilpError(f"k is {self.k}; ask for at least one candidate")

    def __call__(self, batch: QueryTable) -> TopCandidates:
        """Return the best candidates of one batch of queries."""
        batch = self.scorer.rule_scorer.resolve_dates(batch)
        scores = self.scorer.score(batch)
        return TopCandidates.select(self.graph, batch, scores, self.k, new_only=self.new_only)

    def top_candidates(self, queries: QueryTable, workers: Workers | None = None) -> TopCandidates:
        """Return the best candidates of any number of queries, whatever the workers."""
        batches = QueryBatches(queries, self.scorer)
        best = map(self, batches) if workers is None else workers.map(self, batches)
        return batches.join(list(best))

    def predict(self, queries: Sequence[Query]) -> list[Predictions]:
        """Return the best candidates of each query, with their names."""
        table = self.scorer.rule_scorer.resolve_dates(query_table(self.graph, queries))
        best = self.top_candidates(table)
        rows = [Prediction(*row) for row in best.named(self.graph).iter_rows()]
        known = (known_facts(self.graph, table, number)[0] for number in range(len(table)))
        bounds = zip(queries, best.offsets[:-1], best.offsets[1:], known, strict=True)
        return [
            Predictions(query, tuple(rows[first:last]), KnownFacts(self.graph, facts))
            for query, first, last, facts in bounds
        ]


class QueryBatches:
    """Queries in batches of bounded memory, sorted by subject, each distinct query once.

    They depend on queries and evidence alone; `rows` has the queries of each, of one at least.
    """

    def __init__(
        self, queries: QueryTable, scorer: Scorer, *, keep_duplicates: bool = False,
        max_memory: int = _MAX_BATCH_MEMORY,
    ) -> None:  # fmt: skip
        columns = (queries.subject, queries.directed_relation, *queries.given_dates())
        order = np.lexsort(columns[::-1])
        is_new = np.full(len(order), keep_duplicates)
        is_new[:1] = True
        for column in columns:
            is_new[1:] |= np.diff(column[order]) != 0
        self._queries = queries
        self._index = np.empty(len(order), np.int64)
        self._index[order] = np.cumsum(is_new) - 1
        distinct = order[is_new]
        self.rows = [distinct]
        if len(distinct) > 1:
            memory = scorer.memory_per_query(queries[distinct])
            sizes = np.maximum(memory, max_memory / _MAX_BATCH_QUERIES)
            self.rows = split_by_sum(distinct, sizes, max_memory)

    def __iter__(self) -> Iterator[QueryTable]:
        return (self._queries[rows] for rows in self.rows)

    def join(self, parts: Sequence[TopCandidates]) -> TopCandidates:
        """Join the candidates of all batches, in the order of the queries."""
        return TopCandidates.join(parts).take(self._index)
