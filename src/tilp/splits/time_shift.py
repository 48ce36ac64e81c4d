"""`time_shift`: learn from what started before, be asked for what started after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.splits.reassign import LEFT_OUT, TEST, TRAIN, VALID, reassign_splits
from tilp.time import OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import LateEnds, Unit, choose

__all__ = ["TimeShift", "time_shift"]

_TENTH = 10  # of all facts are test, and valid, where the source has no splits


@dataclass(frozen=True)
class TimeShift:
    """A split by start time, and what became of dates that do not fit it.

    Attributes:
        graph: the facts in their new splits.
        valid_from: the first time of valid; every training fact starts before, or has no start.
        test_from: the first time of test.
        latest: the latest time that a start could have; None: any.
        no_start: facts without a start, which are in train.
        late_starts: how many of them have a start after the latest date.
        late_ends: training facts that end at `valid_from` or later, or have not ended yet.
        ends: what became of these.
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
    """Split all facts anew by their start: train, then valid, then test.

    Appendix D: 'we put the edges missing start time into training set, and correct the edges with
    wrong start time (greater than the year of 2022)', and the start times of the three splits
    follow each other. Here all facts that start at one time are in one split; a start after
    `latest` is taken for unknown. And an end in train tells of the time after the cut, where the
    next fact often starts: by default it is unknown to train. Valid and test keep their ends, for
    they are part of what is asked. Of a start that is known in part the first time counts that it
    may mean.

    Args:
        graph: the facts of all splits.
        valid_from: the first time of valid, as text or as a number in the unit of the data.
        test_from: likewise of test. Where both are None, they are the times that make valid and
            test most nearly as large as they were; a tenth of all facts each where there is
            neither.
        latest: the latest time that a start can have; None: any.
        ends: what becomes of the end of a training fact that lies at `valid_from` or later, or
            is open: unknown (`mask`), the fact left out (`drop`), or as it is (`keep`).

    Raises:
        TilpError: dates that cannot be read or contradict each other, or a split without facts.

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
        end[late] = _written_ends(graph, late)  # some were set to the start that is gone
    if valid_from is None and test_from is None:
        first, second = _cuts(start, *_wanted(graph))
    elif valid_from is None or test_from is None:
        raise TilpError("give both the first date of valid and that of test, or none of them")
    else:
        first = _time(valid_from, graph.unit, "the first date of valid")
        second = _time(test_from, graph.unit, "the first date of test")
    place = np.where(start < first, TRAIN, np.where(start < second, VALID, TEST))
    if first > second or not (place == TRAIN).any() or not (place == TEST).any():
        dates = [format_time(time, graph.unit) for time in (first, second)]
        raise TilpError(
            f"with valid from {dates[0]} and test from {dates[1]}, train has "
            f"{np.count_nonzero(place == TRAIN):,} facts and test "
            f"{np.count_nonzero(place == TEST):,}; both need some, and valid comes before test. "
            "Choose other dates"
        )
    late_ends = (place == TRAIN) & (end >= first)
    no_start = start == UNKNOWN
    no_end = late_ends if ends is LateEnds.MASK else None
    if ends is LateEnds.DROP:
        place = np.where(late_ends, LEFT_OUT, place)
    return TimeShift(
        graph=reassign_splits(graph, place, no_start=late, no_end=no_end),
        valid_from=first,
        test_from=second,
        latest=last,
        no_start=int(np.count_nonzero(no_start)),
        late_starts=int(np.count_nonzero(late)),
        late_ends=int(np.count_nonzero(late_ends)),
        ends=ends,
    )


def _time(date: str | int, unit: Unit, name: str, *, last: bool = False) -> int:
    """A date that was chosen, as a time; the first that it may mean, or the last."""
    if isinstance(date, int):
        return date
    span = parse_date(date).span(unit)
    if span is None or UNKNOWN in span or OPEN_START in span:
        raise TilpError(f"{name} is {date!r}; give a known one that can be read in {unit.value}s")
    return span[last]


def _written_ends(graph: TemporalGraph, facts: NDArray[np.bool_]) -> list[int]:
    spans = (parse_date(text).span(graph.unit) for text in graph.date_text("end").filter(facts))
    return [UNKNOWN if span is None else span[1] for span in spans]


def _wanted(graph: TemporalGraph) -> tuple[int, int]:
    """How many facts valid and test are to have."""
    valid, test = (len(graph.rows(split)) for split in ("valid", "test"))
    tenth = len(graph) // _TENTH
    return (valid, test) if test else (valid or tenth, tenth)


def _cuts(start: NDArray[np.int64], valid: int, test: int) -> tuple[int, int]:
    """The first times of valid and of test that make them most nearly so large."""
    known = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    times, before = np.unique(known, return_index=True)
    if len(times) < 2:
        raise TilpError(
            f"the facts have {len(times)} different starts, and cannot be split by them; a split "
            "by time needs facts with dates"
        )
    from_here = len(known) - before
    second = 1 + _nearest(from_here[1:], test)
    if not valid or second < 2:
        return int(times[second]), int(times[second])
    first = 1 + _nearest(from_here[1:second] - from_here[second], valid)
    return int(times[first]), int(times[second])


def _nearest(counts: NDArray[np.int64], wanted: int) -> int:
    """The place of the count that is nearest; of two, the later."""
    return len(counts) - 1 - int(np.argmin(np.abs(counts - wanted)[::-1]))
