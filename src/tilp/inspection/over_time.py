"""How many facts start when, in bars of whole times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.intervals import OPEN_START, UNKNOWN

__all__ = ["FactsOverTime", "facts_over_time"]

_OUTLIERS = 0.005
_BARS = 80


@dataclass(frozen=True, slots=True)
class FactsOverTime:
    """Facts counted by their start; the rare far outliers only in one number.

    Attributes:
        bins: where the bars begin, and where the last ends.
        splits: the facts of each bar, for each split that has dated facts.
        unknown: facts whose start is not known.
        outside: facts whose start lies before the first bar or after the last.
    """

    bins: tuple[int, ...]
    splits: dict[str, tuple[int, ...]]
    unknown: int
    outside: int


def facts_over_time(graph: TemporalGraph) -> FactsOverTime:
    """Count how many facts start when, by split.

    Raises:
        TilpError: no start is known.
    """
    known = {
        split: graph.start[graph.span(split)][graph.start[graph.span(split)] > OPEN_START]
        for split in SPLITS
    }
    times = np.concatenate(list(known.values()))
    if not len(times):
        raise TilpError("no fact has a known start, so there is nothing to draw over time")
    low, high = (int(t) for t in np.quantile(times, [_OUTLIERS, 1 - _OUTLIERS]))
    width = -(-(high - low + 1) // _BARS)  # whole times in each bar, or it would look ragged
    bins = np.arange(low, high + width + 1, width)
    counts = {
        split: np.histogram(starts, bins)[0] for split, starts in known.items() if len(starts)
    }
    return FactsOverTime(
        bins=tuple(bins.tolist()),
        splits={split: tuple(bars.tolist()) for split, bars in counts.items()},
        unknown=int((graph.start == UNKNOWN).sum()),
        outside=len(times) - sum(int(bars.sum()) for bars in counts.values()),
    )
