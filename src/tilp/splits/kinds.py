"""Kinds of splits: random, few, balanced, biased, by time; facts excluded from training."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ints, Mask
from tilp._utils.random import keyed_uniform, sample_share
from tilp.errors import TilpError, TilpWarning
from tilp.graph import ESTIMATED, SPLITS, TemporalGraph
from tilp.graph.build import rebuild_graph
from tilp.time import OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import LateEnds, Unit, WalkGraph, choose

TRAIN, VALID, TEST = (np.uint8(index) for index in range(len(SPLITS)))
LEFT_OUT = np.uint8(len(SPLITS))  # split id of a fact that is in no split


def exclude_from_training(graph: TemporalGraph, facts: Ints, walked: WalkGraph) -> TemporalGraph:
    """Return the graph without some training facts, or with these facts for walks only."""
    if walked is WalkGraph.REDUCED:
        return graph.without(facts)
    walked_only = graph.walked_only.copy()
    walked_only[facts] = True
    return replace(graph, walked_only=walked_only)


def reassign_splits(
    graph: TemporalGraph, split_ids: NDArray[np.uint8], *, no_start: Mask | None = None,
    no_end: Mask | None = None,
) -> TemporalGraph:  # fmt: skip
    """Return the facts in new splits, with some dates removed, as if they had been read like that.

    The facts of a split keep their order. Names stay, even without facts. `split_ids` has the index
    in `SPLITS` of each fact, or `LEFT_OUT`; `no_start` and `no_end` mask dates to remove.
    """
    if graph.walked_only.any():
        raise TilpError(
            "some training facts are for walks only (column walked_only), which is not possible in "
            "other splits; split the original data"
        )
    table, estimated = graph.frame(names="ids"), graph.estimated
    for bit, (name, removed) in enumerate((("start", no_start), ("end", no_end))):
        if removed is not None:
            mask = pl.lit(pl.Series(removed))
            table = table.with_columns(pl.when(mask).then(pl.lit("")).otherwise(name).alias(name))
            estimated = np.where(removed, estimated & ~np.uint8(1 << bit), estimated)
    marks = pl.Series("estimated", ESTIMATED).gather(estimated)
    table = table.with_columns(marks, graph.source_column())
    frames = {s: table.filter(pl.Series(split_ids == index)) for index, s in enumerate(SPLITS)}
    context = graph.source_files, graph.attributes, graph.reading
    return rebuild_graph(frames, graph.entities, graph.relations, graph.unit, *context)


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

    With one seed, a smaller sample is part of a larger one. `TILPConfig(share=share)` draws the
    same sample.

    Args:
        graph: facts to sample from.
        share: share of the training facts to learn from, above 0 and at most 1.
        seed: random seed, 0 by default.
        walked: `kept` (default) leaves the other training facts for walks; `reduced` removes them.

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

    Appendix D; the details follow the files that came with the paper. Test takes n facts of each
    relation, or half of them if there are fewer than 2n. Valid takes as many facts as it had, from
    relations with at least 2n. The rest is train.

    Args:
        graph: facts to split.
        queries: n; by default the size of the test split divided by the number of relations.
        seed: random seed, 0 by default.

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
    graph: TemporalGraph, relation: str, *, removed: float = 0.5, seed: int = 0,
    walked: WalkGraph | str = WalkGraph.REDUCED,
) -> TemporalGraph:  # fmt: skip
    """Return the graph without a share of one relation's training facts; valid and test stay.

    Args:
        graph: facts, `balanced` first for the paper's setting.
        relation: name of the relation.
        removed: share of its training facts to remove, 0.5 by default; the count is rounded down.
        seed: random seed, 0 by default.
        walked: `reduced` (default) removes the facts; `kept` leaves them for walks alone.

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
    """Return ids of the relations with enough training facts to remove a share, 0.5 by default.

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


@dataclass(frozen=True)
class TimeShift:
    """Split by start time, with counts of facts that this concerns."""

    graph: TemporalGraph  # facts in their new splits
    valid_from: int  # first time of valid; training facts start before it, or have no start
    test_from: int  # first time of test
    latest: int | None  # latest time that a start may have; None for any
    no_start: int  # facts without a start; they are in train
    late_starts: int  # those of them whose start was after `latest`
    late_ends: int  # training facts that end at `valid_from` or later, or are open
    ends: LateEnds  # treatment of these late ends


def time_shift(
    graph: TemporalGraph, *, valid_from: str | int | None = None,
    test_from: str | int | None = None, latest: str | int | None = None,
    ends: LateEnds | str = LateEnds.MASK,
) -> TimeShift:  # fmt: skip
    """Split all facts by their start: train, also without a start, then valid, then test.

    All facts that start at one time are in one split. A start that is known in part counts as the
    first time it may mean. A late end in train would reveal the time of the queries, so it is
    removed by default.

    Args:
        graph: facts of all splits.
        valid_from: first time of valid, as text or as a number in the unit of the data.
        test_from: first time of test. If both are None (default), valid and test get as nearly as
            possible the sizes that they had, or a tenth of all facts if there are no such splits.
        latest: later starts count as unknown; None (default) for no limit.
        ends: treatment of training facts that end at `valid_from` or later, or are open. `mask`
            (default) removes the end, `drop` the fact; `keep` changes nothing.

    >>> import tilp
    >>> shift = time_shift(tilp.datasets.world(seed=0, size=1_000).graph)
    >>> shift.valid_from, shift.test_from, shift.no_start, shift.late_ends
    (1988, 1999, 50, 145)
    """
    ends = choose(LateEnds, ends, "ends")
    start, end = graph.start.copy(), graph.end.copy()
    late, last = np.zeros(len(graph), np.bool_), None
    if latest is not None:
        last = _time(latest, graph.unit, "the latest date", last=True)
        late = start > last
        start[late] = UNKNOWN
        # Some ends were set to the start that is removed.
        spans = (parse_date(text).span(graph.unit) for text in graph.date_text("end").filter(late))
        end[late] = [UNKNOWN if span is None else span[1] for span in spans]
    if valid_from is None and test_from is None:
        first, second = _choose_cuts(graph, start)
    elif valid_from is None or test_from is None:
        raise TilpError("give both valid_from and test_from, or neither")
    else:
        first = _time(valid_from, graph.unit, "the first date of valid")
        second = _time(test_from, graph.unit, "the first date of test")
    split_ids = np.where(start < first, TRAIN, np.where(start < second, VALID, TEST))
    if first > second or not (split_ids == TRAIN).any() or not (split_ids == TEST).any():
        dates = [format_time(time, graph.unit) for time in (first, second)]
        n_train, n_test = (np.count_nonzero(split_ids == split) for split in (TRAIN, TEST))
        raise TilpError(
            f"with valid from {dates[0]} and test from {dates[1]}, train has {n_train:,} facts and "
            f"test {n_test:,}; both need some, and valid comes before test. Choose other dates"
        )
    late_ends = (split_ids == TRAIN) & (end >= first)
    masks = (start == UNKNOWN, late, late_ends)
    no_starts, late_starts, n_late_ends = (int(np.count_nonzero(mask)) for mask in masks)
    no_end = late_ends if ends is LateEnds.MASK else None
    if ends is LateEnds.DROP:
        split_ids = np.where(late_ends, LEFT_OUT, split_ids)
    graph = reassign_splits(graph, split_ids, no_start=late, no_end=no_end)
    return TimeShift(graph, first, second, last, no_starts, late_starts, n_late_ends, ends)


def _time(date: str | int, unit: Unit, name: str, *, last: bool = False) -> int:
    """Parse a date that the caller gave; return the first time that it may mean, or the last."""
    if isinstance(date, int):
        return date
    span = parse_date(date).span(unit)
    if span is None or UNKNOWN in span or OPEN_START in span:
        raise TilpError(f"{name} is {date!r}; give a known date that can be read in {unit.value}s")
    return span[last]


def _choose_cuts(graph: TemporalGraph, start: Ints) -> tuple[int, int]:
    """Return the first times of valid and test that bring them nearest to their sizes."""
    valid, test = (len(graph.rows(split)) for split in ("valid", "test"))
    if not test:
        test = len(graph) // 10  # as for valid, if the source has no splits
        valid = valid or test
    known = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    times, before = np.unique(known, return_index=True)
    if len(times) < 2:
        raise TilpError(
            f"the facts have {len(times)} different starts; a split by time needs facts with dates "
            "and at least 2 different starts"
        )

    def nearest(counts: Ints, size: int) -> int:
        """Return the index of the count nearest to a size; the later one of two."""
        return len(counts) - 1 - int(np.argmin(np.abs(counts - size)[::-1]))

    n_from = len(known) - before
    second = 1 + nearest(n_from[1:], test)
    if not valid or second < 2:
        return int(times[second]), int(times[second])
    first = 1 + nearest(n_from[1:second] - n_from[second], valid)
    return int(times[first]), int(times[second])
