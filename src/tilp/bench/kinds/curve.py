"""`curve`: MRR over shares of the training facts, as in Figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilp._utils.files import file_name_part
from tilp.bench.cells import Cell
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import SHARE, Keys, list_of, word_of
from tilp.bench.kinds.base import Kind, asked_cells, best_of_ours, not_done, over_seeds, plus_minus
from tilp.bench.plans import Asked, Experiment, Figure
from tilp.bench.report.blocks import Block, Entry, Heading, Table, Text
from tilp.bench.report.blocks import Figure as Picture
from tilp.bench.settings import Few, Setting, Whole
from tilp.bench.sources import Source
from tilp.pictures.chart import Line, Point, draw_lines
from tilp.types import Walked

__all__ = ["Curve"]

_X_NAME = "share of the training facts that are learned from"


@dataclass(frozen=True)
class CurveOptions:
    """What a curve is of.

    Attributes:
        shares: of the training facts, ascending.
        walked: whether the others are walked on.
    """

    shares: tuple[float, ...]
    walked: Walked

    def setting(self, share: float) -> Setting:
        """What becomes of the data; nothing where all facts are learned from."""
        return Whole() if share == 1.0 else Few(share, self.walked)


class Curve(Kind):
    """Methods × shares × rounds; a round is a seed, for the sample and for the method."""

    def read(self, keys: Keys) -> CurveOptions:
        """The shares."""
        shares = keys.take("shares", list_of(SHARE))
        walked = keys.get("graph", word_of(Walked), Walked.KEPT)
        return CurveOptions(tuple(sorted(set(shares))), walked)

    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """Every method at every share, as often as it has rounds; at all facts, these are one."""
        return [
            cell
            for asked in experiment.methods
            for share in experiment.options.shares
            for cell in _cells(experiment, source, asked, share)
        ]

    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """For each data set a chart, and its points as a table."""
        others = "walked on" if experiment.options.walked is Walked.KEPT else "gone"
        blocks: list[Block] = [
            Text(
                f"Of each round a smaller sample is part of a greater one; the other training "
                f"facts are {others}. Rounds: "
                + ", ".join(f"{asked.method.name} {asked.seeds}" for asked in experiment.methods)
                + "; of all facts there is one sample, and one run.",
                quiet=True,
            )
        ]
        for source in sources:
            jobs = self.jobs(experiment, source)
            blocks += [Heading(source.name, 3), *not_done(jobs, results)]
            if any(results.of(job) for job in jobs):
                blocks.append(_chart(experiment, source, results))
                blocks += [_table(experiment, source, results, one) for one in experiment.figures]
        return blocks


def _cells(experiment: Experiment, source: Source, asked: Asked, share: float) -> list[Cell]:
    if share == 1.0:
        asked = replace(asked, seeds=1)
    return asked_cells(experiment, source, experiment.options.setting(share), asked)


def _chart(experiment: Experiment, source: Source, results: Results) -> Block:
    figure = experiment.figures[0]
    lines = []
    for asked in experiment.methods:
        points = []
        for share in experiment.options.shares:
            cells = _cells(experiment, source, asked, share)
            mean = over_seeds(cells, results, figure, "mrr")
            if mean is not None:
                points.append(Point(share, mean.value, mean.spread))
        lines.append(Line(asked.method.name, tuple(points)))
    published: dict[str, list[Point]] = {}
    for one in experiment.published:
        if (one.data, one.figure) == (source.name, figure) and one.share is not None:
            published.setdefault(one.method, []).append(Point(one.share, one.mrr))
    lines += [
        Line(f"{method} (published)", tuple(sorted(points, key=lambda point: point.x)))
        for method, points in published.items()
    ]
    title = f"{source.name}: MRR ({figure}) over the share of facts learned from"
    picture = draw_lines(title, lines, _X_NAME, "MRR", x_log=len(experiment.options.shares) > 2)
    name = f"{experiment.name}-{file_name_part(source.name)}"
    return Picture(name, picture, f"{title}; bars: the spread over rounds")


def _table(experiment: Experiment, source: Source, results: Results, figure: Figure) -> Block:
    rows: list[list[str | Entry]] = [[asked.method.name] for asked in experiment.methods]
    for share in experiment.options.shares:
        means = [
            over_seeds(_cells(experiment, source, asked, share), results, figure, "mrr")
            for asked in experiment.methods
        ]
        strong = best_of_ours(experiment.methods, means)
        for row, mean, best in zip(rows, means, strong, strict=True):
            row.append(Entry(plus_minus(mean), strong=best))
    header = ["method", *(f"{share:.0%}" for share in experiment.options.shares)]
    return Table.of(header, rows, 1, f"MRR, {figure}")
