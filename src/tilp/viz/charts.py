"""Draw line charts with matplotlib (the `plot` extra), the same bytes every time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from tilp.errors import TilpError
from tilp.viz.svg import LIGHT, SERIES, clean

_SIZE = 7.2, 3.6
_MOST_TICKS = 8
_DASHES = ("solid", "dashed", "dotted")  # tell lines apart when all colours are used
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "tilp",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 9.5,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor"), LIGHT["soft"]),
    **dict.fromkeys(("xtick.color", "ytick.color"), LIGHT["soft"]),
    "text.color": LIGHT["ink"],
    "grid.color": LIGHT["line"],
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
}


class MissingMatplotlibError(TilpError):
    """Matplotlib is not installed."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at x, and its standard deviation (0 for none)."""

    x: float
    y: float
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points from left to right."""

    name: str  # label in the legend; empty for no label
    points: tuple[Point, ...]
    colour: int | None = None  # index of its colour; by default the index of the line
    faint: bool = False  # shows an expectation, not a measurement


def draw_lines(
    lines: Sequence[Line], x_name: str, y_name: str, *, x_log: bool = False, y_log: bool = False
) -> str:
    """Return a chart of lines with error bars, as SVG."""
    points = [point for line in lines for point in line.points if point.y > 0 or not y_log]
    x_log = x_log and any(point.x > 0 for point in points)
    y_log = y_log and any(point.y > 0 for point in points)
    ticks = sorted({point.x for point in points})

    def draw(axes: Any) -> None:
        for index, line in enumerate(lines):
            if line.points:
                _draw_line(axes, line, index if line.colour is None else line.colour)
        if x_log:
            axes.set_xscale("log")
        if y_log:
            axes.set_yscale("log", nonpositive="mask")
        if len(ticks) <= _MOST_TICKS:
            axes.set_xticks(ticks)
            axes.minorticks_off()
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda x, _: f"{x:,.0f}" if abs(x) >= 1_000 else f"{x:.3g}")
        if not y_log:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.set_ylabel(y_name)

    return _to_svg(draw, x_name)


def _matplotlib() -> Any:
    """Return matplotlib, or say how to install it."""
    try:
        import matplotlib.figure
    except ImportError as failure:
        message = 'figures need matplotlib: pip install "tilp[plot]"'
        raise MissingMatplotlibError(message) from failure
    return matplotlib


def _to_svg(draw: Callable[[Any], None], x_name: str) -> str:
    """Return what is drawn on a figure's axes, with a grid and a legend."""
    with _matplotlib().rc_context(_STYLE), warnings.catch_warnings():
        # Names may have characters that matplotlib's own font lacks; the reader's font has them.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure = _matplotlib().figure.Figure(figsize=_SIZE, layout="constrained")
        axes: Any = figure.subplots()
        draw(axes)
        axes.set_xlabel(x_name, loc="right")
        axes.grid(axis="y", linewidth=0.6)
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            columns = max(1, min(4, 72 // (max(map(len, labels)) + 6)))
            where: Any = {"loc": "outside upper left", "ncols": columns}
            figure.legend(handles, labels, frameon=False, **where)
        buffer, metadata = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def _draw_line(axes: Any, line: Line, index: int) -> None:
    x, y = [point.x for point in line.points], [point.y for point in line.points]
    style: dict[str, Any] = {"color": _colour(index)}
    if line.faint:
        axes.plot(x, y, linewidth=1.0, linestyle=(0, (3, 3)), alpha=0.65, **style)
        return
    spreads = [point.spread or nan for point in line.points]
    style |= {"linestyle": _DASHES[index // SERIES % len(_DASHES)], "linewidth": 1.6}
    style |= {"marker": "o", "markersize": 4, "capsize": 3, "label": _legend_name(line.name)}
    axes.errorbar(x, y, yerr=None if all(map(isnan, spreads)) else spreads, **style)


def _legend_name(name: str) -> str:
    """Return a name that matplotlib shows: it hides those that begin with an underscore."""
    return f" {clean(name)}" if name.startswith("_") else clean(name)


def _colour(index: int) -> str:
    return LIGHT[str(index % SERIES + 1)]
