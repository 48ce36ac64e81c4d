"""Draw figures of data with matplotlib (the `plot` extra)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilp._utils.files import new_file
from tilp.data_quality import facts_over_time
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.time import format_time
from tilp.types import Unit
from tilp.viz.charts import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#4477aa", "#ee6677", "#ccbb44")  # distinct in print and for the colour-blind


def plot_facts_over_time(graph: TemporalGraph, path: Path) -> None:
    """Draw how many facts start when, by split; rare far outliers are counted, not drawn.

    Args:
        graph: Facts to count.
        path: File of the figure; its ending decides the format.
    """
    figure = new_figure((8, 3.2))
    axes: Any = figure.subplots()
    counts = facts_over_time(graph)
    n_splits, weights = len(counts.splits), list(counts.splits.values())
    look = {"label": list(counts.splits), "color": _COLOURS[:n_splits]}
    axes.hist([counts.bins[:-1]] * n_splits, counts.bins, weights=weights, stacked=True, **look)
    left_out = f"{counts.unknown:,} facts without one, {counts.outside:,} outside the figure"
    axes.set_xlabel(f"start · {left_out}")
    axes.set_ylabel("facts")
    if graph.unit is not Unit.INTEGER:
        axes.xaxis.set_major_formatter(lambda time, _: format_time(int(time), graph.unit))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    try:
        with new_file(path) as partial:
            figure.savefig(partial, dpi=150, format=path.suffix[1:] or "png")
    except ValueError as failure:
        raise TilpError(f"{path}: {failure}") from failure
