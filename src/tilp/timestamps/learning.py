"""`TimestampRules`: from temporal random walks to rules with confidences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.timestamp_bodies import count_bodies
from tilp._kernels.timestamp_scores import Manner
from tilp._kernels.timestamp_walks import walk_back
from tilp.choices import Transition
from tilp.choosing import choose
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.parallel import Workers, opened
from tilp.timestamps.edges import TimedEdges
from tilp.timestamps.model import TimestampModel
from tilp.timestamps.rule_table import RuleTable

__all__ = ["TimestampRules", "lift"]

_LONGEST = 5
_SEEDS = 1 << 62


@dataclass(frozen=True)
class TimestampRules:
    """Rules over facts at instants, in the manner of TLogic (Liu et al., AAAI 2022).

    Of every fact only its start is read; where that is no date, its end.

    Attributes:
        lengths: of rules.
        walks: how many walks are tried for each directed relation and length.
        transition: how a walk chooses among facts; `exponential` prefers late ones.
        samples: bodies that are drawn to estimate a rule's confidence.
        smoothing: added to the number of distinct bodies that the head's are divided by.
        min_confidence: of a rule that is kept.
        min_bodies: distinct bodies of a rule that is kept.
        window: how long before the query the facts of a body may lie; 0 for any time.
        ahead: whether facts at and after the query are evidence too. Rules say what comes later,
            but to complete a graph they are as well applied to all of it.
        decay: how fast what is far counts less: a fact counts exp(-decay · time between).
        share: of a rule's confidence in what it gives a candidate; the rest is for how near its
            body is in time.
        top: how many candidates must be told apart before no further rule is applied.
        seed: for everything that is drawn.

    >>> import tilp
    >>> graph = tilp.datasets.world(0, 1000).graph
    >>> model = TimestampRules(lengths=(1,), seed=0).fit(graph)
    >>> print(model.rules.filter(relation="diedIn")[0].rule)
    diedIn(E1,E2,I2) ← bornIn(E1,E2,I1) ∧ earlier_than(I1,I2)
    """

    lengths: tuple[int, ...] = (1, 2, 3)
    walks: int = 200
    transition: Transition = Transition.EXPONENTIAL
    samples: int = 500
    smoothing: float = 0.0
    min_confidence: float = 0.01
    min_bodies: int = 2
    window: int = 0
    ahead: bool = False
    decay: float = 0.1
    share: float = 0.5
    top: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        object.__setattr__(self, "transition", choose(Transition, self.transition, "transition"))
        if not self.lengths or self.lengths[0] < 1 or self.lengths[-1] > _LONGEST:
            raise TilpError(f"lengths are some of 1 to {_LONGEST}, not {self.lengths}")
        for name in ("walks", "samples", "top"):
            if getattr(self, name) < 1:
                raise TilpError(f"{name} is {getattr(self, name)}; it is at least 1")
        for name in ("smoothing", "window", "decay", "min_confidence", "min_bodies"):
            if getattr(self, name) < 0:
                raise TilpError(f"{name} is {getattr(self, name)}; it is at least 0")
        if not 0.0 <= self.share <= 1.0:
            raise TilpError(f"share is {self.share}; it is from 0 to 1")

    def fit(
        self,
        graph: TemporalGraph,
        *,
        threads: int = 1,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TimestampModel:
        """Find rules in the train split, for every relation in both directions.

        Args:
            graph: the facts.
            threads: do not change the result.
            workers: in place of threads; they do not change it either.
            progress: called with the share that is done.

        Raises:
            TilpError: no training fact has a date.
        """
        edges = TimedEdges.of(graph, "train")
        if not len(edges.time):
            raise TilpError("no training fact has a date; timestamp rules are learned from dates")
        facts = np.diff(edges.by_head.begin)
        heads = np.flatnonzero(facts)
        tables = []
        edges.by_time, edges.by_relation  # noqa: B018 - made before threads ask for them
        with opened(workers, threads) as workers:
            learned = workers.map(partial(self._learn_head, edges), heads.tolist())
            for number, table in enumerate(learned, start=1):
                tables.append(table)
                if progress is not None:
                    progress(number / len(heads))
        manner = Manner(self.window, self.ahead, self.decay, self.share, self.top)
        return TimestampModel(RuleTable.join(tables), graph.relations, graph.unit, facts, manner)

    def _learn_head(self, edges: TimedEdges, head: int) -> RuleTable:
        """The rules for one directed relation, the most confident first."""
        tables = [self._learn(edges, head, length) for length in self.lengths]
        return RuleTable.join(tables).sorted()

    def _learn(self, edges: TimedEdges, head: int, length: int) -> RuleTable:
        """Those of one length: found by walks, weighed by sampled bodies."""
        chances = np.random.default_rng([self.seed, head, length])
        entities, walked, _ = walk_back(
            edges.by_time,
            edges.by_head,
            edges.n_relations,
            head,
            length,
            self.walks,
            self.transition is Transition.EXPONENTIAL,
            int(chances.integers(_SEEDS)),
        )
        relations, same = lift(entities, walked, edges.n_relations)
        bodies, support = count_bodies(
            edges.by_relation,
            edges.by_head,
            head,
            relations,
            same,
            self.samples,
            chances.integers(_SEEDS, size=len(relations)),
        )
        longest = self.lengths[-1]
        found = RuleTable(
            np.full(len(relations), head),
            np.full(len(relations), length),
            _widened(relations, np.full(longest, -1)),
            _widened(same, np.arange(longest + 1)),
            bodies,
            support,
            support / np.maximum(bodies + self.smoothing, 1.0),
        )
        enough = (found.support > 0) & (found.bodies >= self.min_bodies)
        return found[enough & (found.confidence >= self.min_confidence)]


def lift(
    entities: NDArray[np.int32], relations: NDArray[np.int32], n_relations: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rules of walks that all have one head and length.

    A walk goes back in time, from the head's object to its subject; a rule's body is the same
    walk the other way.

    Returns:
        The relations of each body, and of each of its places the first with the same entity.
    """
    body = (relations[:, :0:-1] + n_relations) % (2 * n_relations)
    places = entities[:, :0:-1]
    same = (places[:, :, None] == places[:, None, :]).argmax(axis=2)
    rules = np.unique(np.concatenate([body, same], axis=1), axis=0)
    relations, same = np.split(rules, [body.shape[1]], axis=1)
    return np.ascontiguousarray(relations), np.ascontiguousarray(same)


def _widened(columns: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same columns, and those that the row has past them."""
    wide = np.tile(row, (len(columns), 1))
    wide[:, : columns.shape[1]] = columns
    return wide
