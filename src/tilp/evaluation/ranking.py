"""From scores to ranks, under every protocol and tie rule at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.ranking import (
    ENUMERATE,
    EXACT,
    OVERLAP,
    RELEASE,
    STATIC,
    Asked,
    Known,
    count_ranks,
)
from tilp.choices import Protocol, Ties
from tilp.errors import TilpError
from tilp.evaluation.instants import instants
from tilp.evaluation.scores import Scores
from tilp.freezing import frozen
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import known_ends

__all__ = ["Ranker", "rank_column", "ties_of"]

_COLUMN = {
    Protocol.STATIC: STATIC,
    Protocol.OVERLAP: OVERLAP,
    Protocol.EXACT: EXACT,
    Protocol.ENUMERATE: ENUMERATE,
    Protocol.TILP_RELEASE: RELEASE,
}


def ties_of(protocol: Protocol) -> tuple[Ties, ...]:
    """The tie rules that a protocol has."""
    return (Ties.BEST,) if protocol is Protocol.TILP_RELEASE else tuple(Ties)


def rank_column(protocol: Protocol, ties: Ties) -> str:
    """The name of a column of ranks.

    >>> rank_column(Protocol.ENUMERATE, Ties.AVERAGE)
    'rank_enumerate_average'
    """
    return f"rank_{protocol.value}_{ties.value}"


class Ranker:
    """Ranks the answers of facts, asked in both directions."""

    def __init__(self, graph: TemporalGraph, rows: NDArray[np.int64], *, walked: bool) -> None:
        self.queries = QueryTable.of_facts(graph, rows, walked=walked).frozen()
        self._entities = len(graph.entities)
        relations = len(graph.relations)
        start, end = known_ends(graph.start, graph.end)
        times = np.unique(np.concatenate([graph.start, graph.end]))
        codes = np.searchsorted(times, graph.start) * len(times) + np.searchsorted(times, graph.end)
        first, last = instants(graph)
        train = np.zeros(len(graph), dtype=np.bool_)
        train[graph.span("train")] = True

        entity = np.concatenate([graph.subject, graph.object]).astype(np.int64)
        head = np.concatenate([graph.relation, graph.relation + relations])
        target = np.concatenate([graph.object, graph.subject])
        key = entity * 2 * relations + head
        order = np.lexsort((np.tile(first, 2), target, key))
        fact = np.tile(np.arange(len(graph)), 2)[order]
        self._known = frozen(
            Known(
                target[order],
                start[fact],
                end[fact],
                codes[fact],
                first[fact],
                last[fact],
                train[fact],
            )
        )
        asked_key = self.queries.subject.astype(np.int64) * 2 * relations + self.queries.head
        both = np.tile(rows, 2)
        self._asked = frozen(
            Asked(
                self.queries.answer,
                np.searchsorted(key[order], asked_key, side="left"),
                np.searchsorted(key[order], asked_key, side="right"),
                start[both],
                end[both],
                codes[both],
                first[both],
                last[both],
            )
        )

    def rank(
        self, part: NDArray[np.int64], scores: Scores, protocols: Sequence[Protocol]
    ) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.bool_]]:
        """Rank the answers of some of the queries.

        Returns:
            The ranks by column name, and whether each answer is listed.

        Raises:
            TilpError: scores that are not of these queries and entities.
        """
        asked = Asked(*(column[part] for column in self._asked))
        queries = len(asked.answer)
        scores.check(queries, self._entities)
        counts = np.empty((queries, 2), dtype=np.int64)
        listed = np.empty(queries, dtype=np.bool_)
        removed = np.empty((queries, 2, len(_COLUMN)))
        twice = count_ranks(
            scores.offsets,
            scores.candidate,
            scores.score,
            scores.defaults,
            asked,
            self._known,
            np.full(self._entities, np.nan),
            counts,
            listed,
            removed,
        )
        if twice >= 0:
            raise TilpError(
                f"query {twice} of its batch lists a candidate more than once; each has one score"
            )
        ranks = {}
        for protocol in protocols:
            removed_now, whole = self._removed(protocol, removed, asked)
            for ties in ties_of(protocol):
                ranks[rank_column(protocol, ties)] = _rank(ties, counts, removed_now, whole)
        return ranks, listed

    @staticmethod
    def _removed(
        protocol: Protocol, removed: NDArray[np.float64], asked: Asked
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How much is removed of the higher and of the equal candidates, and what counts as one."""
        one = np.ones(len(removed))
        match protocol:
            case Protocol.RAW:
                return np.zeros((len(removed), 2)), one
            case Protocol.ENUMERATE:
                one = asked.last - asked.first + one
            case Protocol.TILP_RELEASE:
                one = asked.end.astype(np.float64) - asked.start
                one[one == 0] = 1.0
        return removed[:, :, _COLUMN[protocol]], one


def _rank(
    ties: Ties,
    counts: NDArray[np.int64],
    removed: NDArray[np.float64],
    whole: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Ranks; one division at the end keeps a whole rank whole, as hits need it."""
    higher = np.maximum(whole * counts[:, 0] - removed[:, 0], 0.0)
    equal = whole * counts[:, 1] - removed[:, 1]
    match ties:
        case Ties.BEST:
            return (whole + higher) / whole
        case Ties.WORST:
            return (whole + higher + equal) / whole
        case Ties.AVERAGE:
            return (2.0 * (whole + higher) + equal) / (2.0 * whole)
