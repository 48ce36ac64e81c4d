"""`Grounder`: the walks of one rule between two entities, the nearest in time first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ints, Mask, ranges_to_indices
from tilp.graph import QueryTable
from tilp.rules import Rule
from tilp.time import (
    allen_codes,
    ends_as_of,
    gap_codes,
    gap_lengths,
    temporal_relation_codes,
)
from tilp.types import Grain
from tilp.walks.walker import Step, Walker

Times = tuple[Ints, Ints]


@dataclass(frozen=True)
class Groundings:
    """Walks of a rule, the nearest in time first; unless `complete`, far ones are missing."""

    walks: tuple[tuple[Step, ...], ...]
    complete: bool


@dataclass(frozen=True)
class _Body:
    relations: list[int]  # of the steps, first to last
    codes: dict[tuple[int, int], int]  # of pairs of intervals; the query's interval is the last
    grain: Grain  # of the relations to the query's interval


class Grounder:
    """Finds the facts by which a rule leads from a query's subject to a candidate.

    Steps are first read backwards, so that only entities are walked through from which the rule's
    relations lead to the candidate.

    Args:
        walker: whose edges are walked, and whose temporal relations are compared.
        max_walks: follow at most this many walks at once, 20,000 by default.

    >>> import tilp
    >>> grounder = Grounder(Walker(tilp.datasets.world(seed=0, size=1_000).graph, max_length=1))
    """

    def __init__(self, walker: Walker, max_walks: int = 20_000) -> None:
        self._walker = walker
        self._max_walks = max_walks
        edges = walker.edges
        self._relations = edges.relation[edges.by_rank]  # ascending, and for each of them:
        self._targets = edges.target[edges.by_rank]
        self._bodies: dict[Rule, _Body] = {}

    def __call__(
        self, rule: Rule, queries: QueryTable, candidate: int, n: int | None = None
    ) -> Groundings:
        """Find n walks, all by default, of a rule from the subject of one query to a candidate."""
        body = self._bodies.get(rule)
        if body is None:
            body = self._bodies[rule] = self._body(rule)
        columns = (queries.fact, queries.latest, queries.start, queries.end)
        times = (int(column[0]) for column in columns)
        chain, gap, complete = self._walks(body, int(queries.subject[0]), candidate, *times)
        order = np.lexsort((*self._walker.edges.fact[chain].T[::-1], gap))
        walks = tuple(self._walker.steps(walk) for walk in chain[order[:n]])
        return Groundings(walks, complete)

    def _body(self, rule: Rule) -> _Body:
        encoding = self._walker.encoding
        row = encoding.encode([rule])
        length = int(row[0, 1])
        form = encoding.forms[int(row[0, 0])]
        codes = form.relation_codes(length, row[:, 4], row[:, 5])
        return _Body(
            [int(each[0]) for each in encoding.body_relations(row, length)],
            {pair: int(code[0]) for pair, code in codes.items()},
            form.grain,
        )

    def _walks(
        self, body: _Body, subject: int, candidate: int, fact: int, latest: int, start: int,
        end: int,
    ) -> tuple[Ints, Floats, bool]:  # fmt: skip
        """Return the edges of walks, their gaps to the query's time, and if none was dropped."""
        edges = self._walker.edges
        steps = self._possible_steps(body, subject, candidate, fact, latest, start, end)
        chain = steps[0].reshape(-1, 1)
        gap = gap_lengths(*self._times(steps[0], latest), start, end)
        complete = True
        for step, possible in enumerate(steps[1:], start=2):
            order = np.argsort(gap, kind="stable")
            chain, gap = chain[order], gap[order]
            here = edges.target[chain[:, -1]]
            source = edges.source[possible]  # ascending
            begin, stop = np.searchsorted(source, here), np.searchsorted(source, here, side="right")
            room = np.maximum(self._max_walks - np.cumsum(stop - begin) + (stop - begin), 0)
            complete &= bool((stop - begin <= room).all())
            offsets, onward = ranges_to_indices(begin, np.minimum(stop, begin + room))
            prefix = np.repeat(np.arange(len(chain)), np.diff(offsets))
            chain = np.column_stack([chain[prefix], possible[onward]])
            mask = self._matches(body, chain, step, latest)
            chain = chain[mask]
            gap = gap[prefix[mask]] + gap_lengths(*self._times(chain[:, -1], latest), start, end)
        return chain, gap, complete

    def _possible_steps(
        self, body: _Body, subject: int, candidate: int, fact: int, latest: int, start: int,
        end: int,
    ) -> list[Ints]:  # fmt: skip
        """Return the edges of each step, ascending, from which the rest of the body leads there."""
        edges = self._walker.edges
        last = len(body.relations) + 1
        reached = np.array([candidate])
        steps = []
        for step in range(last - 1, 0, -1):
            edge = self._edges_to(body.relations[step - 1], reached)
            edge = edge[(edges.fact[edge] != fact) & (edges.start[edge] <= latest)]
            if step == 1:
                edge = edge[edges.source[edge] == subject]
            if self._walker.distinct:
                edge = edge[edges.target[edge] != subject]
            code = body.codes.get((step, last))
            if code is not None:
                query = np.array(start), np.array(end)
                edge = edge[self._codes(body.grain, self._times(edge, latest), query) == code]
            steps.append(np.sort(edge))
            reached = np.unique(edges.source[edge])
        return steps[::-1]

    def _edges_to(self, relation: int, entities: Ints) -> Ints:
        """Return the edges of a directed relation that lead to some entities."""
        low, high = np.searchsorted(self._relations, [relation, relation + 1])
        targets = self._targets[low:high]
        begin, end = (np.searchsorted(targets, entities, side) for side in ("left", "right"))
        _, ranks = ranges_to_indices(begin, end)
        edge: Ints = self._walker.edges.by_rank[low + ranks].astype(np.int64)
        return edge

    def _matches(self, body: _Body, chain: Ints, step: int, latest: int) -> Mask:
        """Mask walks whose last step is allowed, and lies to earlier ones as the rule says."""
        edges = self._walker.edges
        visited = (edges.target if self._walker.distinct else edges.fact)[chain]
        mask: Mask = (visited[:, :-1] != visited[:, -1:]).all(axis=1)
        last = self._times(chain[:, -1], latest)
        for earlier in range(1, step):
            code = body.codes.get((earlier, step))
            if code is not None:
                times = self._times(chain[:, earlier - 1], latest)
                mask &= self._codes(Grain.PAIRS, times, last) == code
        return mask

    def _codes(self, grain: Grain, first: Times, second: Times) -> NDArray[np.integer]:
        """Return the codes of the temporal relations between intervals."""
        if grain is Grain.ALLEN:
            return allen_codes(*first, *second)
        if grain is Grain.GAP:
            return gap_codes(*first, *second, self._walker.gap_edges)
        return temporal_relation_codes(*first, *second)

    def _times(self, edge: Ints, latest: int) -> Times:
        start = self._walker.edges.start[edge]
        return start, ends_as_of(start, self._walker.edges.end[edge], latest)
