"""`Asker`: one scorer for all requests, and answers as the service gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilp.errors import TilpError, UnknownNameError
from tilp.graph import SPLITS, QueryTable
from tilp.intervals import OPEN_END, UNKNOWN
from tilp.model import TILP
from tilp.ranking import Answers, Query
from tilp.ranking.answers import answers
from tilp.ranking.best import Best
from tilp.ranking.queries import query_table, read_queries
from tilp.web.drawing import add_pictures

__all__ = ["Asker"]

_TRIED = 32


class Asker:
    """Answers queries; may be asked from several threads at once.

    What a scorer keeps between queries does not depend on who asked first, so neither do answers.

    Args:
        model: a fitted model.
    """

    def __init__(self, model: TILP) -> None:
        self._model = model
        self._graph = model.graph
        self._scorer = model.scorer()

    def ask(self, query: Query, k: int) -> Answers:
        """The k best candidates.

        Raises:
            TilpError: the query cannot be asked.
        """
        asked = read_queries(query)
        return self._answer(asked, query_table(self._graph, asked), k)[0]

    def ask_each(self, queries: Sequence[Query], k: int) -> list[Answers | TilpError]:
        """For each query the k best candidates, or why it cannot be asked."""
        tables: list[QueryTable | TilpError] = []
        for query in queries:
            try:
                tables.append(query_table(self._graph, read_queries(query)))
            except TilpError as failure:
                tables.append(failure)
        whole = [one for one in tables if isinstance(one, QueryTable)]
        if not whole:
            return [one for one in tables if isinstance(one, TilpError)]
        asked = [
            query for query, one in zip(queries, tables, strict=True) if isinstance(one, QueryTable)
        ]
        found = iter(self._answer(asked, QueryTable.join(whole), k))
        return [one if isinstance(one, TilpError) else next(found) for one in tables]

    def explain(
        self, query: Query, candidate: str | None, *, groundings: int, reasons: int, pictures: bool
    ) -> dict[str, Any]:
        """Why a candidate is where it is, for programs.

        Args:
            query: as it is asked.
            candidate: its name; the best one for None.
            groundings: shown of each reason, at most.
            reasons: shown, at most.
            pictures: whether each grounding has one, as `svg`.

        Raises:
            TilpError: the query cannot be asked, or the candidate is not known.
        """
        found = self._model.explain(query, candidate, groundings=groundings, top=reasons)
        told = found.to_json()
        if pictures:
            add_pictures(found, told)
        return told

    def warm_up(self) -> Query:
        """Compile and load all that answers and explanations need; gives a query to begin with."""
        example = self.find_example()
        for answer in self.ask(example, 2):  # the winner, and one that lacks something
            self.explain(example, answer.id, groundings=3, reasons=20, pictures=True)
        return example

    def find_example(self) -> Query:
        """A query to begin with: of some held-out facts, the one that is answered best."""
        graph = self._graph
        rows = next(np.array(rows) for rows in map(graph.rows, reversed(SPLITS)) if len(rows))
        start, end = graph.start[rows], graph.end[rows]
        dated = rows[(start != UNKNOWN) & (end != UNKNOWN) & (end != OPEN_END)]
        rows = dated if len(dated) else rows
        best = []
        for row in rows[:: -(-len(rows) // _TRIED)].tolist():
            query = Query(
                graph.relations.label(int(graph.relation[row])),
                subject=self._name(int(graph.subject[row])),
                start=str(graph.texts[int(graph.start_text[row])]) or None,
                end=str(graph.texts[int(graph.end_text[row])]) or None,
            )
            first = self.ask(query, 1)[0]
            right = first.id == graph.entities.id(int(graph.object[row]))
            best.append((not right, -first.share, row, query))
        return min(best)[-1]

    def _name(self, entity: int) -> str:
        """The label of an entity, or its id where others have the same label."""
        try:
            self._graph.entities.find(self._graph.entities.label(entity))
        except UnknownNameError:
            return self._graph.entities.id(entity)
        return self._graph.entities.label(entity)

    def _answer(self, queries: list[Query], table: QueryTable, k: int) -> list[Answers]:
        best = Best.of(self._graph, table, self._scorer(table), k)
        return answers(self._graph, queries, best)
