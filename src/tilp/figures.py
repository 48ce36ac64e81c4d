"""Draw figures of data and models with matplotlib (the `plot` extra)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats
from tilp._utils.files import new_file
from tilp.data_quality import facts_over_time
from tilp.errors import TilpError
from tilp.features.paper.distributions import Exponential, Gaussian
from tilp.graph import TemporalGraph
from tilp.model.feature_tables import Distributions
from tilp.time import format_time
from tilp.types import Unit
from tilp.viz.charts import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#4477aa", "#ee6677", "#ccbb44")  # distinct in print and for the colour-blind
_OUTLIERS = 0.005
_PANEL_BARS = 30
_PAIRS, _LENGTHS, _ACROSS = 6, 3, 3
_TITLE_WIDTH = 48
_LEAST_LENGTH = 0.5  # of a unit; shorter durations show nothing
_FINE = 2_000  # steps of a curve


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


def plot_features(
    distributions: Distributions, rows: pl.DataFrame, path: Path, *,
    progress: Callable[[float], None] | None = None,
) -> None:  # fmt: skip
    """Draw times between relations, and durations, as observed and as fitted.

    The first few rows that are not pooled are drawn.

    Args:
        distributions: Fitted distributions.
        rows: Rows of their table to draw; each needs its row of `order` too.
        path: File of the figure; its ending decides the format.
        progress: Called with the share that is done.
    """
    own = rows.filter(~pl.col("pooled"))
    pairs = own.filter(feature="pair").head(_PAIRS)
    lengths = own.filter(pl.col("mean") >= _LEAST_LENGTH, feature="duration").head(_LENGTHS)
    if not len(pairs) + len(lengths):
        raise TilpError(
            "nothing to draw: no such pair, and no such relation that lasts, was seen often enough"
        )
    across = min(max(len(pairs), len(lengths)), _ACROSS)
    begin = -(-len(pairs) // across) * across  # durations have rows of their own
    down = begin // across + -(-len(lengths) // across)
    figure = new_figure((4.4 * across, 3.0 * down))
    panels: list[Any] = list(figure.subplots(down, across, squeeze=False).flat)
    observed = pl.DataFrame() if pairs.is_empty() else distributions.observed(progress=progress)
    for axes, row in zip(panels, pairs.iter_rows(named=True), strict=False):
        # Differences of starts: the density of their size, times the share of their sign.
        key = {name: row[name] for name in ("evidence", "query", "other")}
        later = rows.filter(feature="order", **key)["probability"].item()
        values = observed.filter(**key)["difference"].to_numpy()
        labels = (row["sentence"], f"from {row['relation']} to {row['other']}", "pairs")
        _draw(axes, labels, values, partial(_log_density, row, later), distributions.graph.unit)
    for axes, row in zip(panels[begin:], lengths.iter_rows(named=True), strict=False):
        relation = np.array(distributions.graph.relations.find(row["relation"]), np.int32)
        values = distributions.lengths(row["relation"])
        log_density = partial(distributions.durations.log_density, relation)
        labels = (row["sentence"], f"that {row['relation']} lasts", "intervals")
        _draw(axes, labels, values, log_density, distributions.graph.unit)
    for axes in panels:
        axes.set_visible(axes.has_data())
    panels[0].legend(frameon=False, fontsize="small")
    _save(figure, path)


def _log_density(row: Mapping[str, Any], later: float, x: Floats) -> Floats:
    """Return the fitted log density of differences of starts, of which a share is positive."""
    size: Gaussian | Exponential
    if row["distribution"] == "Gaussian":
        size = Gaussian(np.array(row["mean"]), np.array(row["deviation"]))
    else:
        size = Exponential(np.array(row["rate"]))
    sign = np.log(np.where(x > 0, later, 1.0 - later))
    return np.asarray(sign + size.log_density(np.abs(x)))


def _draw(
    axes: Any, labels: tuple[str, str, str], values: Floats,
    log_density: Callable[[Floats], Floats], unit: Unit,
) -> None:  # fmt: skip
    """Draw a histogram of whole times, and the counts that the fitted density expects."""
    title, label, things = labels
    units = "time" if unit is Unit.INTEGER else f"{unit.value}s"
    low, high = (int(value) for value in np.quantile(values, [_OUTLIERS, 1 - _OUTLIERS]))
    width = -(-(high - low + 1) // _PANEL_BARS)
    edges = np.arange(low - 2 * width, high + 3 * width, width) - 0.5
    axes.hist(values, edges, color="0.82", edgecolor="0.45", linewidth=0.5, label="observed")
    fine = np.linspace(edges[0] - width, edges[-1] + width, _FINE)
    density = np.exp(log_density((fine[1:] + fine[:-1]) / 2))
    mass = np.append(0.0, np.cumsum(density * np.diff(fine)))
    at = np.linspace(edges[0], edges[-1], _FINE // 4)
    expected = np.interp(at + width / 2, fine, mass) - np.interp(at - width / 2, fine, mass)
    axes.plot(at, len(values) * expected, color="black", linewidth=1.4, label="fitted")
    outside = int(((values < edges[0]) | (values > edges[-1])).sum())
    words, _, count = title.rpartition("; ")
    count = count.replace(" ", "\N{NO-BREAK SPACE}")
    axes.set_title(fill(f"{words}; {count}", _TITLE_WIDTH), fontsize="medium", loc="left")
    axes.set_xlabel(f"{units} {label}" + (f" · {outside:,} outside" if outside else ""))
    axes.set_ylabel(things if width == 1 else f"{things} in {width} {units}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    try:
        with new_file(path) as partial:
            figure.savefig(partial, dpi=150, format=path.suffix[1:] or "png")
    except ValueError as failure:
        raise TilpError(f"{path}: {failure}") from failure
