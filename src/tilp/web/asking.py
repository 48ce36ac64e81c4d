"""`Asker`: one scorer for all requests, and answers as the service gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilp.errors import TilpError
from tilp.graph import SPLITS, QueryTable
from tilp.intervals import OPEN_END, UNKNOWN
from tilp.model import TILP
from tilp.ranking import Query
from tilp.ranking.queries import answers, query_table, read_queries
from tilp.web.errors import error_of

__all__ = ["Asker"]

_TRIED = 32


class Asker:
    """Answers queries; safe to be asked from several threads at once.

    What is kept between queries (`JointScorer` keeps what facts say at a time) does not depend on
    who put it there, and so neither do answers.

    Args:
        model: a fitted model.
    """

    def __init__(self, model: TILP) -> None:
        self._graph = model.graph
        self._scorer = model.scorer()
        self.example = self._find_example()

    def predict(self, query: Query, k: int) -> list[dict[str, Any]]:
        """The k best candidates.

        Raises:
            TilpError: the query cannot be asked.
        """
        asked = read_queries(query)
        return self._answer(asked, query_table(self._graph, asked), k)[0]

    def predict_each(self, queries: Sequence[Query], k: int) -> list[dict[str, Any]]:
        """For each query its `answers`, or its `error`."""
        found: list[dict[str, Any]] = [{} for _ in queries]
        tables: dict[int, QueryTable] = {}
        for place, query in enumerate(queries):
            try:
                tables[place] = query_table(self._graph, read_queries(query))
            except TilpError as failure:
                found[place] = {"error": error_of(failure).to_json()}
        if tables:
            asked = [queries[place] for place in tables]
            answered = self._answer(asked, QueryTable.join(list(tables.values())), k)
            for place, best in zip(tables, answered, strict=True):
                found[place] = {"answers": best}
        return found

    def _answer(
        self, queries: list[Query], table: QueryTable, k: int
    ) -> list[list[dict[str, Any]]]:
        frame = answers(self._graph, queries, table, self._scorer(table), k)
        rows = frame.drop("subject", "relation", "object", "start", "end").to_dicts()
        found: list[list[dict[str, Any]]] = [[] for _ in queries]
        for row in rows:
            found[row.pop("query")].append(row)
        return found

    def _find_example(self) -> Query:
        """A query to begin with: of some held-out facts, the one whose answer has most share.

        Asking them also compiles what is compiled.
        """
        graph = self._graph
        rows = next(rows for rows in map(graph.rows, reversed(SPLITS)) if len(rows))
        dated = [
            row
            for row in rows
            if graph.start[row] > UNKNOWN and UNKNOWN < graph.end[row] < OPEN_END
        ]
        tried = (dated or list(rows))[:: max(1, len(dated or rows) // _TRIED)][:_TRIED]
        facts = np.array(tried, np.int64)
        queries = [
            Query(
                graph.relations.label(int(graph.relation[row])),
                subject=graph.entities.label(int(graph.subject[row])),
                start=str(graph.texts[int(graph.start_text[row])]) or None,
                end=str(graph.texts[int(graph.end_text[row])]) or None,
            )
            for row in tried
        ]
        best = -1.0
        for query, fact in zip(queries, facts.tolist(), strict=True):
            table = QueryTable.of_facts(graph, np.array([fact]), walked=False)
            first = self._answer([query], table[np.array([0])], 1)[0][0]
            right = first["candidate"] == graph.entities.label(int(graph.object[fact]))
            if right and first["share"] > best:
                best, example = first["share"], query
        return example if best > 0 else queries[0]
