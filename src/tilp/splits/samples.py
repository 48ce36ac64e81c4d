"""`random_split`; `few`, `balanced`, `biased`: few examples, equal test counts, a rare relation."""

import warnings

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats
from tilp._utils.random import keyed_uniform, sample_share
from tilp.errors import TilpError, TilpWarning
from tilp.graph import TemporalGraph
from tilp.splits.reassign import TEST, TRAIN, VALID, exclude_from_training, reassign_splits
from tilp.types import WalkGraph, choose

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Shares of the training facts in the paper's Figure 2."""

# Random streams; larger than any seed, so that no seed mixes them up.
TEST_STREAM, VALID_STREAM, REMOVAL_STREAM, SPLIT_STREAM = (stream << 32 for stream in range(4))


def random_split(
    graph: TemporalGraph, *, valid: float = 0.1, test: float = 0.1, seed: int = 0
) -> TemporalGraph:
    """Return the same facts in new splits, at random; train has every entity and relation.

    The facts of all splits are put together. A fact stays in train if an entity or the relation
    would otherwise not occur there. Equal facts stay together. The order of facts does not matter.

    Args:
        graph: facts to split.
        valid: share of the facts in valid, 0.1 by default; 0 for no valid split.
        test: share of the facts in test, 0.1 by default.
        seed: random seed, 0 by default.

    Raises:
        TilpError: a share is out of range, or there are too few facts to split.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> made = random_split(graph)
    >>> [len(made.rows(split)) for split in tilp.SPLITS]
    [800, 100, 100]
    """
    if not (valid >= 0.0 and test > 0.0 and valid + test < 1.0):
        raise TilpError(
            f"the shares of valid and test are {valid:g} and {test:g}; choose 0 or more for valid, "
            "more than 0 for test, and less than 1 for both together"
        )
    # Equal facts have one rank, and so one split.
    keys, rank = np.unique(random_keys(graph, seed, SPLIT_STREAM), return_inverse=True)
    free = np.ones(len(keys), np.bool_)
    ends, relation = (graph.subject, graph.object), (graph.relation,)
    for names, columns in ((graph.entities, ends), (graph.relations, relation)):
        last = np.full(len(names), -1)
        for column in columns:
            np.maximum.at(last, column, rank)
        free[last[last >= 0]] = False  # the last fact of each name stays in train
    movable = np.flatnonzero(free)
    n_test, n_valid = round(test * len(keys)), round(valid * len(keys))
    found = f"{len(movable):,} of {len(keys):,} different facts can leave train"
    found += ", which keeps a fact of each entity and relation"
    if too_many := n_test + n_valid > len(movable):
        both = n_test + n_valid
        n_test, n_valid = (n * len(movable) // both for n in (n_test, n_valid))
    if not n_test or (valid and not n_valid):
        raise TilpError(f"too few facts to split: {found}; give more facts or larger shares")
    if too_many:
        message = f"valid and test are smaller than their shares: {found}"
        warnings.warn(TilpWarning(message), stacklevel=2)
    split_ids = np.full(len(keys), TRAIN)
    split_ids[movable[:n_test]] = TEST
    split_ids[movable[n_test : n_test + n_valid]] = VALID
    return reassign_splits(graph, split_ids[rank])


def few(
    graph: TemporalGraph, share: float, *, seed: int = 0, walked: WalkGraph | str = WalkGraph.FULL
) -> TemporalGraph:
    """Return the graph with a sample of its training facts to learn from; valid and test stay.

    Appendix D: 'we randomly reduce the number of training samples in training set', in five
    rounds, which are five seeds here. With one seed, a smaller sample is part of a larger one. The
    sample is the one that `TILPConfig(share=share)` draws. The paper's shares are of all
    facts, so that its 80 % are all of train; here they are of the training facts.

    Args:
        graph: facts to sample from.
        share: share of the training facts to learn from, above 0 and at most 1.
        seed: random seed, 0 by default.
        walked: `kept` (default) leaves the other training facts in the graph that walks use, as in
            the files that came with the paper; `reduced` removes them.

    Raises:
        TilpError: the share is out of range, or the sample is empty.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> len(few(graph, 0.05).targets), len(few(graph, 0.1).targets), len(graph.targets)
    (41, 81, 812)
    """
    walked = choose(WalkGraph, walked, "walked")
    if not 0.0 < share <= 1.0:
        raise TilpError(f"the share is {share:g}; choose one above 0 and at most 1, such as 0.05")
    targets = graph.targets
    rows = targets[sample_share(len(targets), share, seed)]
    if not len(rows):
        raise TilpError(
            f"a share of {share:g} of {len(targets):,} training facts is less than one fact; "
            "choose a larger share"
        )
    return exclude_from_training(graph, np.setdiff1d(np.asarray(graph.rows("train")), rows), walked)


def balanced(graph: TemporalGraph, *, queries: int | None = None, seed: int = 0) -> TemporalGraph:
    """Return the same facts in new splits, with equally many test facts of each relation.

    Appendix D: 'we adjust the distribution of queries in the test set, trying to set the number of
    queries of different relations to be equal. If queries of a certain relation are not enough,
    we would randomly choose half of them.' The details follow the files that came with the paper
    and give their counts exactly: the facts of all splits are put together; test takes n facts of
    each relation, the size of the test split divided by the number of relations, or half of the
    relation's facts if there are fewer than 2n. Valid then takes as many facts as it had, from
    relations with at least 2n facts, so that the others keep their other half for train; the paper
    does not mention this. The rest is train.

    Args:
        graph: facts to split.
        queries: n, the number of test facts of each relation; by default computed as above.
        seed: random seed, 0 by default.

    Raises:
        TilpError: `queries` is below 1, or not given while there is no test split.

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
                "there is no test split whose size could be divided by the number of relations; "
                "give the number of test facts of each relation (queries=, --queries)"
            )
        queries = max(len(graph.rows("test")) // int(np.count_nonzero(sizes)), 1)
    if queries < 1:
        raise TilpError(f"the number of test facts of each relation is {queries}; choose 1 or more")
    table = pl.DataFrame({"of": graph.relation, "key": random_keys(graph, seed, TEST_STREAM)})
    rank = table.select(pl.col("key").rank("ordinal").over("of"))["key"].to_numpy()
    test = rank <= np.minimum(queries, sizes // 2)[graph.relation]
    rest = np.flatnonzero(~test & (sizes >= 2 * queries)[graph.relation])
    n_valid = min(len(graph.rows("valid")), len(rest) // 2)
    order = np.argsort(random_keys(graph, seed, VALID_STREAM)[rest], kind="stable")
    split_ids = np.full(len(graph), TRAIN)
    split_ids[test] = TEST
    split_ids[rest[order[:n_valid]]] = VALID
    return reassign_splits(graph, split_ids)


def biased(
    graph: TemporalGraph,
    relation: str,
    *,
    removed: float = 0.5,
    seed: int = 0,
    walked: WalkGraph | str = WalkGraph.REDUCED,
) -> TemporalGraph:
    """Return the graph without a share of one relation's training facts; valid and test stay.

    Appendix D: 'for a specific relation, we randomly reduce 50 % of the edges in the training
    set', for each relation separately and in five rounds, which are five seeds here. The result is
    compared with the same splits with nothing removed, on a `balanced` test.

    Args:
        graph: facts, `balanced` first for the paper's setting.
        relation: name of the relation.
        removed: share of its training facts to remove, 0.5 by default; the count is rounded down.
        seed: random seed, 0 by default.
        walked: `reduced` (default) removes the facts; `kept` leaves them in the graph that walks
            use, but does not learn from them.

    Raises:
        TilpError: no such relation, a share out of range, or too few facts to remove any.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> len(graph.targets) - len(biased(graph, "livesIn").targets)
    79
    """
    walked = choose(WalkGraph, walked, "walked")
    relation_id = graph.relations.find(relation)
    if not 0.0 < removed <= 1.0:
        choice = "choose one above 0 and at most 1, such as 0.5"
        raise TilpError(f"the share to remove is {removed:g}; {choice}")
    rows = graph.targets[graph.relation[graph.targets] == relation_id]
    count = int(round(removed * len(rows), 6))
    if not count:
        raise TilpError(
            f"{graph.relations.label(relation_id)} has {len(rows):,} training facts, too few to "
            f"remove a share of {removed:g}; choose a larger share, or leave this relation out"
        )
    order = np.argsort(random_keys(graph, seed, REMOVAL_STREAM)[rows], kind="stable")
    return exclude_from_training(graph, np.sort(rows[order[:count]]), walked)


def reducible(graph: TemporalGraph, removed: float = 0.5) -> list[int]:
    """Return ids of the relations with enough training facts for a share to be at least one.

    Args:
        graph: facts.
        removed: share to remove, 0.5 by default.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> [graph.relations.label(relation) for relation in reducible(graph, removed=0.01)]
    ['livesIn']
    """
    facts = np.bincount(graph.relation[graph.targets], minlength=len(graph.relations))
    return np.flatnonzero(removed * facts >= 1.0).tolist()


def random_keys(graph: TemporalGraph, seed: int, stream: int) -> Floats:
    """Return a random number for each fact that does not depend on the other facts."""
    fact = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    return keyed_uniform(seed, np.full(len(graph), stream), *fact)
