"""`time_shift`: learn from facts that start before a date, test on facts that start after."""

from dataclasses import dataclass

import numpy as np

from tilp._utils.arrays import Ints
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.splits.reassign import LEFT_OUT, TEST, TRAIN, VALID, reassign_splits
from tilp.time import OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import LateEnds, Unit, choose


@dataclass(frozen=True)
class TimeShift:
    """Split by start time.

    Attributes:
        graph: facts in their new splits.
        valid_from: first time of valid; training facts start before it, or have no start.
        test_from: first time of test.
        latest: latest time that a start may have; None for any.
        no_start: number of facts without a start; they are in train.
        late_starts: number of these whose start was after `latest`.
        late_ends: number of training facts that end at `valid_from` or later, or are open.
        ends: treatment of these late ends.
    """

    graph: TemporalGraph
    valid_from: int
    test_from: int
    latest: int | None
    no_start: int
    late_starts: int
    late_ends: int
    ends: LateEnds


def time_shift(
    graph: TemporalGraph,
    *,
    valid_from: str | int | None = None,
    test_from: str | int | None = None,
    latest: str | int | None = None,
    ends: LateEnds | str = LateEnds.MASK,
) -> TimeShift:
    """Split all facts by their start: train, then valid, then test.

    Appendix D: 'we put the edges missing start time into training set, and correct the edges with
    wrong start time (greater than the year of 2022)', and the start times of the three splits
    follow each other. Here all facts that start at one time are in one split, and a start after
    `latest` counts as unknown. A late end in train would reveal the time after the cut, where the
    next fact often starts, so it is removed by default. Valid and test keep their ends, which are
    part of the query. A start that is known in part counts as the first time it may mean.

    Args:
        graph: facts of all splits.
        valid_from: first time of valid, as text or as a number in the unit of the data.
        test_from: first time of test. If both are None (default), valid and test get as nearly as
            possible the sizes that they had, or a tenth of all facts if there are no such splits.
        latest: latest time that a start may have; None (default) for any.
        ends: treatment of training facts that end at `valid_from` or later, or are open. `mask`
            (default) removes the end, `drop` the fact; `keep` changes nothing.

    Raises:
        TilpError: dates cannot be read or contradict each other, or a split has no facts.

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
