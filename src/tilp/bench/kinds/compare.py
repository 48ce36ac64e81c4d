"""`compare`: methods side by side on each data set, as in Tables 1 and 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tilp.bench.cells import Cell
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import Keys
from tilp.bench.kinds.base import (
    Kind,
    asked_cells,
    best_of_ours,
    not_done,
    over_seeds,
    plus_minus,
    share_text,
)
from tilp.bench.plans import Asked, Experiment, Figure, Published
from tilp.bench.report.blocks import Block, Entry, Folded, Items, Table, Text
from tilp.bench.report.blocks import Figure as Picture
from tilp.bench.settings import Setting, read_setting
from tilp.bench.sources import Source
from tilp.pictures.chart import Bars, Point, draw_bars

__all__ = ["Compare"]

_NAMES = {"mrr": "MRR", "hits@1": "hits@1", "hits@10": "hits@10"}


class Compare(Kind):
    """Methods × data sets × seeds, under one setting."""

    def read(self, keys: Keys) -> Setting:
        """The setting."""
        return read_setting(keys)

    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """Every method, as often as it has seeds."""
        return [
            cell
            for asked in experiment.methods
            for cell in asked_cells(experiment, source, experiment.options, asked)
        ]

    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """A table for each protocol and tie rule, a chart of the first, and what it took."""
        shown = _Shown(experiment, sources, results)
        jobs = list(chain.from_iterable(self.jobs(experiment, source) for source in sources))
        blocks: list[Block] = [Text(f"Setting: {experiment.options.words}.", quiet=True)]
        blocks += not_done(jobs, results)
        if not shown.done:
            return blocks
        for figure in experiment.figures:
            blocks += shown.table(figure)
        blocks += [shown.chart(), shown.cost(), *shown.by_relation()]
        return blocks


class _Shown:
    """What came of an experiment, as tables and pictures."""

    def __init__(self, experiment: Experiment, sources: Sequence[Source], results: Results) -> None:
        self._experiment, self._results = experiment, results
        self._cells = {
            (asked.method.name, source.name): asked_cells(
                experiment, source, experiment.options, asked
            )
            for asked in experiment.methods
            for source in sources
        }
        # A data set on which nothing could be run has no columns.
        self._names = [
            source.name
            for source in sources
            if any(
                results.of(cell)
                for asked in experiment.methods
                for cell in self._of(asked, source.name)
            )
        ]
        self.done = bool(self._names)

    def _of(self, asked: Asked, source: str) -> list[Cell]:
        return self._cells[asked.method.name, source]

    def table(self, figure: Figure) -> list[Block]:
        """Ours with the best of each column strong, and then what was published."""
        header = ["method", *(f"{data} {word}" for data in self._names for word in _NAMES.values())]
        methods = self._experiment.methods
        rows: list[list[str | Entry]] = [[asked.method.name] for asked in methods]
        for data in self._names:
            for name in _NAMES:
                means = [
                    over_seeds(self._of(asked, data), self._results, figure, name)
                    for asked in methods
                ]
                entries = zip(means, best_of_ours(methods, means), strict=True)
                for row, (mean, strong) in zip(rows, entries, strict=True):
                    row.append(Entry(plus_minus(mean), strong=strong))
        for row, asked in zip(rows, methods, strict=True):
            row.append(self._runs(asked))
        published = self._published(figure)
        rows += [[*row, ""] for row in published[0]]
        title = f"{figure}; {self._experiment.split} split"
        blocks: list[Block] = [Table.of([*header, "runs"], rows, 1, title)]
        if published[1]:
            blocks.append(Items(tuple(published[1])))
        return blocks

    def _runs(self, asked: Asked) -> str:
        counts = {
            sum(self._results.of(cell) is not None for cell in self._of(asked, data))
            for data in self._names
        }
        return "/".join(str(one) for one in sorted(counts))

    def _published(self, figure: Figure) -> tuple[list[list[str | Entry]], list[str]]:
        """Rows of what others published, and how it was measured."""
        by_method: dict[str, dict[str, Published]] = {}
        for one in self._experiment.published:
            if one.figure == figure and one.data in self._names:
                by_method.setdefault(one.method, {})[one.data] = one
        rows: list[list[str | Entry]] = []
        told: dict[str, list[str]] = {}
        for method, found in by_method.items():
            row: list[str | Entry] = [Entry(f"{method} (published)", slanted=True)]
            for data in self._names:
                here = found.get(data)
                values = (here.mrr, here.hits_at_1, here.hits_at_10) if here else (None,) * 3
                row += [Entry(share_text(value), slanted=True) for value in values]
            rows.append(row)
            for one in found.values():
                words = f"measured as: {one.protocol}" + (f"; {one.note}" if one.note else "")
                told.setdefault(words, []).append(method)
        return rows, [
            f"{', '.join(dict.fromkeys(methods))} (published), {words}"
            for words, methods in told.items()
        ]

    def chart(self) -> Block:
        """MRR of each method on each data set."""
        figure = self._experiment.figures[0]
        bars = []
        for data in self._names:
            values = []
            for asked in self._experiment.methods:
                mean = over_seeds(self._of(asked, data), self._results, figure, "mrr")
                values.append(None if mean is None else Point(0.0, mean.value, mean.spread))
            bars.append(Bars(data, tuple(values)))
        title = f"{self._experiment.title}: MRR ({figure})"
        groups = [asked.method.name for asked in self._experiment.methods]
        return Picture(self._experiment.name, draw_bars(title, groups, bars, "MRR"), title)

    def cost(self) -> Block:
        """Rules, and seconds to learn and to ask."""
        header = ["method", *(f"{data} {word}" for data in self._names for word in _COST)]
        rows = []
        for asked in self._experiment.methods:
            row = [asked.method.name]
            for data in self._names:
                found = [self._results.of(cell) for cell in self._of(asked, data)]
                # What a run that was stopped took before is not known.
                whole = [one for one in found if one is not None and not one["resumed"]]
                row += _costs(whole[0]) if whole else [""] * len(_COST)
            rows.append(row)
        words = "what one run took; seconds to learn and to ask all queries under every protocol"
        return Table.of(header, rows, 1, words)

    def by_relation(self) -> list[Block]:
        """MRR of each relation, folded."""
        figure = self._experiment.figures[0]
        blocks: list[Block] = []
        for data in self._names:
            columns, queries = {}, dict[str, int]()
            for asked in self._experiment.methods:
                found = [self._results.of(cell) for cell in self._of(asked, data)]
                tables = [one["relations"][figure.key] for one in found if one is not None]
                columns[asked.method.name] = tables
                for table in tables:
                    queries |= {name: int(one["queries"]) for name, one in table.items()}
            rows = [
                [
                    relation,
                    f"{queries[relation]:,}",
                    *(
                        share_text(_mean([one[relation]["mrr"] for one in tables]))
                        for tables in columns.values()
                    ),
                ]
                for relation in sorted(queries, key=lambda one: (-queries[one], one))
            ]
            table = Table.of(["relation", "queries", *columns], rows)
            blocks.append(Folded(f"{data}: MRR of each relation ({figure})", (table,)))
        return blocks


_COST = ("rules", "learn, s", "ask, s")


def _costs(result: dict[str, object]) -> list[str]:
    rules, seconds = result["rules"], result["seconds"]
    assert isinstance(seconds, dict)
    learn = sum(taken for stage, taken in seconds.items() if stage != "evaluate")
    return [
        f"{rules:,}" if isinstance(rules, int) else "",
        f"{learn:.1f}" if learn else "",
        f"{seconds['evaluate']:.1f}",
    ]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
