"""`balanced` and `biased`: as many test facts of each relation; one relation made rare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._utils.random import keyed_uniform
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.splits.reassign import TEST, TRAIN, VALID, exclude_from_training, reassign_splits
from tilp.types import WalkGraph, choose

__all__ = ["balanced", "biased", "reducible"]

# What a fact's lot is drawn for; beside seeds, which are smaller.
_FOR_TEST, _FOR_VALID, _FOR_REMOVAL = (purpose << 32 for purpose in range(3))


def balanced(graph: TemporalGraph, *, queries: int | None = None, seed: int = 0) -> TemporalGraph:
    """The same facts in splits whose test has as many facts of each relation, as far as can be.

    Appendix D: 'we adjust the distribution of queries in the test set, trying to set the number of
    queries of different relations to be equal. If queries of a certain relation are not enough,
    we would randomly choose half of them.' Read with the files that came with the paper, whose
    counts it gives exactly: the facts of all splits are put together; test takes of each relation
    n, the size of the test split divided by the number of relations, or half of the relation's
    facts where these are fewer than 2n. Valid then takes as many facts as it had from relations
    that have 2n, so that the others keep their other half for train; of this the paper says
    nothing. The rest is train.

    Args:
        graph: the facts.
        queries: n, where it is to be another.
        seed: for what is drawn.

    Raises:
        TilpError: there is no test split to take n from, or n is not positive.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> np.bincount(graph.relation[graph.span("test")])[-5:].tolist()
    [11, 9, 18, 2, 4]
    >>> even = balanced(graph)
    >>> np.bincount(even.relation[even.span("test")])[-5:].tolist()
    [4, 4, 4, 4, 4]
    """
    sizes = np.bincount(graph.relation, minlength=len(graph.relations))
    if queries is None:
        if not len(graph.rows("test")):
            raise TilpError(
                "there is no test split whose size could be shared between the relations; say how "
                "many test facts of each relation there are to be (queries=, --queries)"
            )
        queries = max(len(graph.rows("test")) // int(np.count_nonzero(sizes)), 1)
    if queries < 1:
        raise TilpError(f"there are to be {queries} test facts of each relation; choose 1 or more")
    test = _first(graph, np.minimum(queries, sizes // 2), _lots(graph, seed, _FOR_TEST))
    rest = np.flatnonzero(~test & (sizes >= 2 * queries)[graph.relation])
    most = min(len(graph.rows("valid")), len(rest) // 2)
    order = np.argsort(_lots(graph, seed, _FOR_VALID)[rest], kind="stable")
    place = np.full(len(graph), TRAIN)
    place[test] = TEST
    place[rest[order[:most]]] = VALID
    return reassign_splits(graph, place)


def biased(
    graph: TemporalGraph,
    relation: str,
    *,
    removed: float = 0.5,
    seed: int = 0,
    walked: WalkGraph | str = WalkGraph.REDUCED,
) -> TemporalGraph:
    """The graph with a share of one relation's training facts removed; valid and test stay.

    Appendix D: 'for a specific relation, we randomly reduce 50 % of the edges in the training
    set', for every relation by itself and in five rounds, which are five seeds here; measured as
    the change against the same splits with nothing removed, on a `balanced` test.

    Args:
        graph: the facts, `balanced` where it is to be the paper's setting.
        relation: its name.
        removed: the share; rounded down.
        seed: for what is drawn.
        walked: whether the removed facts are gone (`reduced`), or `kept` to walk on but not
            learned from.

    Raises:
        TilpError: no such relation, a share that is none, or too few facts to remove any.
    """
    walked = choose(WalkGraph, walked, "walked")
    number = graph.relations.find(relation)
    if not 0.0 < removed <= 1.0:
        raise TilpError(
            f"the share to remove is {removed:g}; it is above 0 and at most 1, such as 0.5"
        )
    rows = graph.targets[graph.relation[graph.targets] == number]
    count = int(round(removed * len(rows), 6))
    if not count:
        raise TilpError(
            f"{graph.relations.label(number)} has {len(rows):,} training facts, of which a share "
            f"of {removed:g} is none; choose a greater one, or leave this relation out"
        )
    order = np.argsort(_lots(graph, seed, _FOR_REMOVAL)[rows], kind="stable")
    return exclude_from_training(graph, np.sort(rows[order[:count]]), walked)


def reducible(graph: TemporalGraph, removed: float = 0.5) -> list[int]:
    """The relations with so many training facts that a share of them is at least one."""
    facts = np.bincount(graph.relation[graph.targets], minlength=len(graph.relations))
    return np.flatnonzero(removed * facts >= 1.0).tolist()


def _lots(graph: TemporalGraph, seed: int, purpose: int) -> NDArray[np.float64]:
    """A number for each fact, that does not depend on the other facts."""
    fact = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    return keyed_uniform(seed, np.full(len(graph), purpose), *fact)


def _first(
    graph: TemporalGraph, most: NDArray[np.int64], lots: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Of each relation so many facts, those with the least lots."""
    order = np.lexsort((lots, graph.relation))
    begin = np.searchsorted(graph.relation[order], np.arange(len(graph.relations)))
    rank = np.empty(len(graph), np.int64)
    rank[order] = np.arange(len(graph)) - begin[graph.relation[order]]
    return rank < most[graph.relation]
