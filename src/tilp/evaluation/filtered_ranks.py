"""`Ranker`: filtered ranks of answers under every protocol and tie rule."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from tilp._kernels import candidates as kernels
from tilp._kernels.candidates import KnownFacts, RankedQueries
from tilp._utils.arrays import Floats, Ints, Mask, read_only, read_only_tuple
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers
from tilp.scoring import Scores
from tilp.scoring.scorer import query_batches
from tilp.time import OPEN_END, UNKNOWN, known_ends, parse_date
from tilp.types import Protocol, Ties, Unit

_YEAR = re.compile(r"\+?(?:\d{1,2}\.\d{1,2}\.)?(?P<year>\d{4})(?:[^\d#].*)?", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 0, 3000


def instants(graph: TemporalGraph) -> tuple[Ints, Ints]:
    """Return the indices of the first and the last instant of every fact, for `enumerate`.

    Dates are read from their texts, as TimePlex reads them. A start that is not known is before
    all known ones, such an end after all; without both the fact lies before all, unless it is
    open: it holds after all. In years,
    'before all' is 0, 'after all' is 3000, and a year is known only if it has four digits,
    whatever follows; in other units a date is known if it is one instant of the unit.
    """
    times = np.array([_known_time(text, graph.unit) for text in graph.texts], dtype=np.int64)
    start, end = times[graph.start_text], times[graph.end_text]
    known = np.unique(np.concatenate([start, end]))
    known = known[known != UNKNOWN]
    if graph.unit is Unit.YEAR:
        before, after = _FIRST_YEAR, _LAST_YEAR
    else:
        before, after = (int(known[0]) - 1, int(known[-1]) + 1) if len(known) else (0, 1)
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    first = np.where(no_start, before, start)
    undated = no_start & (graph.end != OPEN_END)
    last = np.where(no_end, np.where(undated, before, after), end)
    last = np.maximum(first, last)  # an end before its start is the start
    points = np.union1d(known, [before, after])
    return np.searchsorted(points, first), np.searchsorted(points, last)


def _known_time(text: str, unit: Unit) -> int:
    """Return the time of a date that is exact, or UNKNOWN.

    >>> _known_time("1952-##-##", Unit.YEAR)
    1952
    >>> {_known_time(text, Unit.YEAR) == UNKNOWN for text in ("19##", "360-##-##", "-431", "")}
    {True}
    """
    if unit is Unit.YEAR:
        year = _YEAR.fullmatch(text.strip())
        return int(year["year"]) if year else UNKNOWN
    date = parse_date(text)
    span = date.span(unit) if date.is_complete(unit) else None
    return UNKNOWN if span is None else span[0]


_COLUMN = {
    Protocol.STATIC: kernels.STATIC,
    Protocol.OVERLAP: kernels.OVERLAP,
    Protocol.EXACT: kernels.EXACT,
    Protocol.ENUMERATE: kernels.ENUMERATE,
    Protocol.TILP_RELEASE: kernels.RELEASE,
}


def ties_of(protocol: Protocol) -> tuple[Ties, ...]:
    """Return the tie rules of a protocol."""
    return (Ties.BEST,) if protocol is Protocol.TILP_RELEASE else tuple(Ties)


def default_ties(protocol: Protocol) -> Ties:
    """Return `average`, if the protocol has it."""
    return Ties.AVERAGE if Ties.AVERAGE in ties_of(protocol) else Ties.BEST


def rank_column(protocol: Protocol, ties: Ties) -> str:
    """Return the name of a column of ranks.

    >>> rank_column(Protocol.ENUMERATE, Ties.AVERAGE)
    'rank_enumerate_average'
    """
    return f"rank_{protocol.value}_{ties.value}"


def rank_columns(protocols: Iterable[Protocol]) -> list[str]:
    """Return the names of all columns of ranks."""
    return [rank_column(protocol, ties) for protocol in protocols for ties in ties_of(protocol)]


class Ranker:
    """Ranks the answers of facts, queried in both directions, among all entities.

    Args:
        graph: Protocols remove other answers by its facts.
        rows: Ids of the facts.
        walked: True if the facts are evidence themselves, and are left out for their own queries.
    """

    def __init__(self, graph: TemporalGraph, rows: Ints, *, walked: bool) -> None:
        queries = QueryTable.of_facts(graph, rows, walked=walked)
        self.queries = QueryTable(*map(read_only, queries.columns))
        self._entities = len(graph.entities)
        relations = len(graph.relations)
        start, end = known_ends(graph.start, graph.end)
        dates = np.unique(np.concatenate([graph.start, graph.end]))
        codes = np.searchsorted(dates, graph.start) * len(dates) + np.searchsorted(dates, graph.end)
        first, last = instants(graph)
        train = np.zeros(len(graph), dtype=np.bool_)
        train[graph.span("train")] = True

        entity = np.concatenate([graph.subject, graph.object]).astype(np.int64)
        relation = np.concatenate([graph.relation, graph.relation + relations])
        target = np.concatenate([graph.object, graph.subject])
        key = entity * 2 * relations + relation
        subject = self.queries.subject.astype(np.int64)
        query_key = subject * 2 * relations + self.queries.directed_relation
        order = np.flatnonzero(np.isin(key, query_key))  # others are never looked up
        order = order[np.lexsort((np.tile(first, 2)[order], target[order], key[order]))]
        fact = np.tile(np.arange(len(graph)), 2)[order]
        times = start, end, codes, first, last
        known = (column[fact] for column in (*times, train))
        self._known = read_only_tuple(KnownFacts(target[order], *known))
        begin = np.searchsorted(key[order], query_key, side="left")
        stop = np.searchsorted(key[order], query_key, side="right")
        ranked = (column[np.tile(rows, 2)] for column in times)
        self._ranked = read_only_tuple(RankedQueries(self.queries.answer, begin, stop, *ranked))

    def rank(
        self, part: Ints, scores: Scores, protocols: Sequence[Protocol]
    ) -> tuple[dict[str, Floats], Mask]:
        """Return the ranks of some queries' answers by column, and a mask of listed answers."""
        batch = RankedQueries(*(column[part] for column in self._ranked))
        queries = len(batch.answer)
        scores.check(queries, self._entities)
        counts = np.empty((queries, 2), dtype=np.int64)
        listed = np.empty(queries, dtype=np.bool_)
        removed = np.empty((queries, 2, len(_COLUMN)))
        sparse = scores.offsets, scores.candidate, scores.score, scores.defaults
        score_of = np.full(self._entities, np.nan)
        duplicate = kernels.count_ranks(
            *sparse, batch, self._known, score_of, counts, listed, removed
        )
        if duplicate >= 0:
            raise TilpError(
                f"query {duplicate} of its batch lists a candidate more than once; give each one "
                "score"
            )
        ranks = {}
        for protocol in protocols:
            filtered = np.zeros((queries, 2))
            if protocol in _COLUMN:
                filtered = removed[:, :, _COLUMN[protocol]]
            unit = np.ones(queries)
            if protocol is Protocol.ENUMERATE:
                unit = batch.last - batch.first + unit
            elif protocol is Protocol.TILP_RELEASE:
                unit = batch.end.astype(np.float64) - batch.start
                unit[unit == 0] = 1.0
            for ties in ties_of(protocol):
                ranks[rank_column(protocol, ties)] = _rank(ties, counts, filtered, unit)
        return ranks, listed


def _rank(ties: Ties, counts: Ints, removed: Floats, unit: Floats) -> Floats:
    """Return 1 + candidates with a higher score + those of the equal ones that the rule counts."""
    # Counted, and removed, in units until the division, so that whole ranks stay whole.
    higher = np.maximum(unit * counts[:, 0] - removed[:, 0], 0.0)
    equal = unit * counts[:, 1] - removed[:, 1]
    match ties:
        case Ties.BEST:
            return (unit + higher) / unit
        case Ties.WORST:
            return (unit + higher + equal) / unit
        case Ties.AVERAGE:
            return (2.0 * (unit + higher) + equal) / (2.0 * unit)


_CHOSEN_BY = rank_column(Protocol.ENUMERATE, Ties.AVERAGE)


def best_variant(
    ranker: Ranker, score: Callable[[QueryTable], Sequence[Scores]], memory: Floats,
    workers: Workers, progress: Callable[[float], None],
) -> int:  # fmt: skip
    """Return the index of the variant with the best MRR; of equal ones the first."""
    order = np.argsort(ranker.queries.subject, kind="stable")
    parts = query_batches(order, memory[order], workers.block_bytes)
    ranks: list[Floats] = []
    for part in workers.map(partial(_reciprocal_ranks, ranker, score), parts):
        ranks.append(part)
        progress(len(ranks) / len(parts))
    return int(np.argmax(np.concatenate(ranks, axis=1).sum(axis=1)))


def _reciprocal_ranks(
    ranker: Ranker, score: Callable[[QueryTable], Sequence[Scores]], part: Ints
) -> Floats:
    variants = score(ranker.queries[part])
    ranks = (ranker.rank(part, scores, [Protocol.ENUMERATE])[0] for scores in variants)
    return np.array([1.0 / columns[_CHOSEN_BY] for columns in ranks])
