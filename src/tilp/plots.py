"""Figures, with the `plot` extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilp.choices import Unit
from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.intervals import OPEN_START, UNKNOWN, format_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_facts_over_time"]

_COLOURS = ("#4477aa", "#ee6677", "#ccbb44")  # told apart in print and by the colour-blind
_OUTLIERS = 0.005
_BARS = 80


def plot_facts_over_time(graph: TemporalGraph, path: Path) -> None:
    """Draw how many facts start when, by split; the rare far outliers are counted, not drawn.

    Raises:
        TilpError: matplotlib is missing, no start is known, or the file's ending is not known.
    """
    figure = _new_figure((8, 3.2))
    axes: Any = figure.subplots()
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
    drawn = {split: starts for split, starts in known.items() if len(starts)}
    axes.hist(
        list(drawn.values()), bins, stacked=True, label=list(drawn), color=_COLOURS[: len(drawn)]
    )
    outside = int(((times < low) | (times > high)).sum())
    undated = int((graph.start == UNKNOWN).sum())
    axes.set_xlabel(f"start · {undated:,} facts without one, {outside:,} outside the figure")
    axes.set_ylabel("facts")
    if graph.unit is not Unit.INTEGER:
        axes.xaxis.set_major_formatter(lambda time, _: format_time(int(time), graph.unit))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    _save(figure, path)


def _new_figure(size: tuple[float, float]) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as failure:
        raise TilpError('figures need an extra: pip install "tilp[plot]"') from failure
    return Figure(figsize=size, layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except ValueError as failure:
        raise TilpError(f"{path}: {failure}") from failure
