"""`Grounder`: the walks of one rule between two entities, the nearest in time first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ranges_to_indices
from tilp.graph import QueryTable
from tilp.rules import Rule
from tilp.time import (
    allen_codes,
    gap_codes,
    gap_lengths,
    possible_intervals,
    temporal_relation_codes,
)
from tilp.types import Grain
from tilp.walks.walker import Step, Walker

__all__ = ["Grounder", "Groundings"]

DEFAULT_MOST = 20_000

Times = tuple[NDArray[np.int64], NDArray[np.int64]]
Chain = NDArray[np.int64]


@dataclass(frozen=True)
class Groundings:
    """Walks of a rule.

    Attributes:
        walks: the nearest to the query's time first, by the sum of their facts' gaps to it.
        complete: whether these are all; else some were left out on the way, the farthest first.
    """

    walks: tuple[tuple[Step, ...], ...]
    complete: bool


@dataclass(frozen=True)
class _Body:
    """What a rule asks of the steps of a walk.

    Attributes:
        symbols: of the steps, first to last.
        words: the number of the word that each pair of intervals has; the query's is the last.
        grain: how the words to the query are chosen.
    """

    symbols: list[int]
    words: dict[tuple[int, int], int]
    grain: Grain


class Grounder:
    """Finds the facts by which a rule leads from a query's subject to a candidate.

    Steps are read backwards first, so that only entities are walked through from which the
    candidate is reached along the rule's relations.

    Args:
        walker: whose edges are walked, and by whose words time is told.
        most: walks that are followed at once at the most.
    """

    def __init__(self, walker: Walker, max_walks: int = DEFAULT_MOST) -> None:
        self._walker = walker
        self._most = max_walks
        edges = walker.edges
        self._symbols = edges.relation[edges.by_rank]  # ascending, and for each of them:
        self._targets = edges.target[edges.by_rank]
        self._bodies: dict[Rule, _Body] = {}

    def __call__(
        self, rule: Rule, queries: QueryTable, candidate: int, n: int | None = None
    ) -> Groundings:
        """The walks of a rule from the subject of a single query to a candidate.

        Args:
            rule: of a form that the walker has.
            queries: the query, its unknown ends settled.
            candidate: where walks end.
            n: how many are wanted; all by default.

        Raises:
            TilpError: the rule is of none of the walker's forms.
        """
        body = self._bodies.get(rule)
        if body is None:
            body = self._bodies[rule] = self._body(rule)
        starts, ends = queries.start, queries.end
        if self._walker.every_reading:
            _, starts, ends = possible_intervals(*queries.given_dates())
        subject, own = int(queries.subject[0]), int(queries.fact[0])
        found = [
            self._walks(body, subject, candidate, own, start, end)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        chain = np.concatenate([one for one, _, _ in found])
        gap = np.concatenate([one for _, one, _ in found])
        edges = self._walker.edges
        order = np.lexsort((*edges.fact[chain].T[::-1], gap))
        half = self._walker.encoding.symbols.count // 2
        walks: dict[tuple[Step, ...], None] = {}  # readings of a fact are the same step
        for walk in chain[order]:
            if n is not None and len(walks) >= n:
                break
            inverse = (edges.relation[walk] >= half).tolist()
            walks[tuple(map(Step, edges.fact[walk].tolist(), inverse))] = None
        return Groundings(tuple(walks), all(whole for _, _, whole in found))

    def _body(self, rule: Rule) -> _Body:
        encoding = self._walker.encoding
        row = encoding.encode([rule])
        number, length = int(row[0, 0]), int(row[0, 1])
        form = encoding.forms[number]
        words = form.relation_codes(length, row[:, 4], row[:, 5])
        return _Body(
            [int(one[0]) for one in encoding.symbols_of(row, length)],
            {pair: int(word[0]) for pair, word in words.items()},
            form.grain,
        )

    def _walks(
        self, body: _Body, subject: int, candidate: int, own: int, start: int, end: int
    ) -> tuple[Chain, NDArray[np.float64], bool]:
        """The edges of walks, their gaps to the query's time, and whether none was left out."""
        edges = self._walker.edges
        steps = self._steps_towards(body, subject, candidate, own, start, end)
        chain = steps[0].reshape(-1, 1)
        gap = self._gap(steps[0], start, end)
        complete = True
        for place, possible in enumerate(steps[1:], start=2):
            order = np.argsort(gap, kind="stable")
            chain, gap = chain[order], gap[order]
            here = edges.target[chain[:, -1]]
            source = edges.source[possible]  # ascending
            begin, stop = np.searchsorted(source, here), np.searchsorted(source, here, side="right")
            room = np.maximum(self._most - np.cumsum(stop - begin) + (stop - begin), 0)
            complete &= bool((stop - begin <= room).all())
            offsets, onward = ranges_to_indices(begin, np.minimum(stop, begin + room))
            prefix = np.repeat(np.arange(len(chain)), np.diff(offsets))
            chain = np.column_stack([chain[prefix], possible[onward]])
            fits = self._fits(body, chain, place)
            chain = chain[fits]
            gap = gap[prefix[fits]] + self._gap(chain[:, -1], start, end)
        return chain, gap, complete

    def _steps_towards(
        self, body: _Body, subject: int, candidate: int, own: int, start: int, end: int
    ) -> list[NDArray[np.int64]]:
        """The edges that each step may take, ascending: the rest of the relations leads there."""
        edges = self._walker.edges
        last = len(body.symbols) + 1
        reached = np.array([candidate])
        found = []
        for place in range(last - 1, 0, -1):
            edge = self._leading_to(body.symbols[place - 1], reached)
            edge = edge[edges.fact[edge] != own]
            if place == 1:
                edge = edge[edges.source[edge] == subject]
            word = body.words.get((place, last))
            if word is not None:
                query = np.array(start), np.array(end)
                edge = edge[self._words(body.grain, self._times(edge), query) == word]
            found.append(np.sort(edge))
            reached = np.unique(edges.source[edge])
        return found[::-1]

    def _leading_to(self, symbol: int, reached: NDArray[np.int64]) -> NDArray[np.int64]:
        """The edges with a symbol that lead to some entities."""
        low, high = np.searchsorted(self._symbols, [symbol, symbol + 1])
        targets = self._targets[low:high]
        begin, end = (np.searchsorted(targets, reached, side) for side in ("left", "right"))
        _, place = ranges_to_indices(begin, end)
        found: NDArray[np.int64] = self._walker.edges.by_rank[low + place].astype(np.int64)
        return found

    def _fits(self, body: _Body, chain: Chain, place: int) -> NDArray[np.bool_]:
        """Whether the last steps take no fact again, and lie to earlier ones as the rule says."""
        fact = self._walker.edges.fact[chain]
        fits: NDArray[np.bool_] = (fact[:, :-1] != fact[:, -1:]).all(axis=1)
        last = self._times(chain[:, -1])
        for earlier in range(1, place):
            word = body.words.get((earlier, place))
            if word is not None:
                before = self._times(chain[:, earlier - 1])
                fits &= self._words(Grain.PAIRS, before, last) == word
        return fits

    def _words(self, grain: Grain, first: Times, second: Times) -> NDArray[np.integer]:
        """The numbers of the words between intervals."""
        if grain is Grain.ALLEN:
            return allen_codes(*first, *second)
        if grain is Grain.GAP:
            return gap_codes(*first, *second)
        classes = self._walker.classes
        return (
            temporal_relation_codes(*first, *second)
            if classes is None
            else np.asarray(classes.code(*first, *second))
        )

    def _times(self, edge: NDArray[np.int64]) -> Times:
        return self._walker.edges.start[edge], self._walker.edges.end[edge]

    def _gap(self, edge: NDArray[np.int64], start: int, end: int) -> NDArray[np.float64]:
        """How far edges are from the query's time."""
        return gap_lengths(*self._times(edge), start, end)
