"""`biased`: what becomes of MRR when a relation is made rare, as in Figure 3 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilp._utils.files import file_name_part
from tilp.bench.cells import Cell
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import NUMBER, TEXT, Keys, list_of, word_of
from tilp.bench.kinds.base import Kind, Mean, asked_cells, not_done, plus_minus
from tilp.bench.plans import Asked, Experiment
from tilp.bench.report.blocks import Block, Heading, Table, Text
from tilp.bench.report.blocks import Figure as Picture
from tilp.bench.settings import Balanced, Biased
from tilp.bench.sources import Source
from tilp.evaluation.evaluate import shown_names
from tilp.pictures.chart import Bars, Point, draw_bars
from tilp.splits import balanced, reducible
from tilp.types import Walked

__all__ = ["BiasedData"]


@dataclass(frozen=True)
class BiasedOptions:
    """Which relations are made rare.

    Attributes:
        relations: by name; none: each that has a fact to remove.
        removed: the share of its training facts.
        walked: whether removed facts are walked on.
        refit: what is touched and learned anew, as `Biased` has it; None: all.
    """

    relations: tuple[str, ...]
    removed: float
    walked: Walked
    refit: float | None


class BiasedData(Kind):
    """Methods × relations × rounds, and the balanced data that each round is compared with."""

    uses = Kind.uses - {"published"}

    def read(self, keys: Keys) -> BiasedOptions:
        """The relations, and what is removed of them."""
        removed = keys.get("removed", NUMBER, 0.5)
        if not 0.0 < removed <= 1.0:
            keys.refuse("removed", removed, "a share above 0 and at most 1")
        return BiasedOptions(
            keys.get("relations", list_of(TEXT), ()),
            removed,
            keys.get("graph", word_of(Walked), Walked.REDUCED),
            keys.get("refit", NUMBER, None),
        )

    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """Balanced data, and then each relation, for every method and round."""
        settings = [Balanced(), *_settings(experiment.options, source).values()]
        return [
            cell
            for asked in experiment.methods
            for setting in settings
            for cell in asked_cells(experiment, source, setting, asked)
        ]

    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """For each data set a chart of the changes, and a table."""
        options = experiment.options
        rounds = ", ".join(f"{one.method.name} {one.seeds}" for one in experiment.methods)
        removed = (
            f"{options.removed:.0%} of one relation's training facts are removed; what is told is "
            "the change of MRR against the same splits with nothing removed. Answers that only "
            "removed facts state are known to the filter."
        )
        said = filter(None, (removed, _anew(options), f"Rounds: {rounds}."))
        blocks: list[Block] = [Text(" ".join(said), quiet=True)]
        for source in sources:
            jobs = self.jobs(experiment, source)
            blocks += [Heading(source.name, 3), *not_done(jobs, results)]
            if any(results.of(job) for job in jobs):
                blocks += _changes(experiment, source, results)
        return blocks


def _anew(options: BiasedOptions) -> str:
    if options.refit is None:
        return ""
    return (
        "Forms of TILP learn anew what is touched: the relation, and those of whose rules, by "
        f"weight and support, at least {options.refit:.0%} go through it; other relations keep "
        "their weights, and are asked on the reduced facts."
    )


def _settings(options: BiasedOptions, source: Source) -> dict[str, Biased]:
    """The setting of each relation, by its name in figures."""
    graph = source.graph
    if options.relations:
        numbers = [graph.relations.find(relation) for relation in options.relations]
    else:
        numbers = reducible(balanced(graph), options.removed)
    names = shown_names(graph.relations)
    ids, removed, walked = graph.relations.ids, options.removed, options.walked
    return {
        str(names[number]): Biased(
            str(ids[number]), removed, walked, graph.relations.label(number), options.refit
        )
        for number in numbers
    }


def _changes(experiment: Experiment, source: Source, results: Results) -> list[Block]:
    figure = experiment.figures[0]
    settings = _settings(experiment.options, source)
    own: dict[str, list[Mean | None]] = {}
    rows = [[relation] for relation in settings]
    header = ["relation made rare"]
    for asked in experiment.methods:
        before = asked_cells(experiment, source, Balanced(), asked)
        of_method = own[asked.method.name] = []
        for row, (relation, setting) in zip(rows, settings.items(), strict=True):
            after = asked_cells(experiment, source, setting, asked)
            pairs = list(zip(before, after, strict=True))
            changed = Mean.of(
                _change(results, pair, "relations", figure.key, relation) for pair in pairs
            )
            of_all = Mean.of(_change(results, pair, "figures", figure.key) for pair in pairs)
            of_method.append(changed)
            row += [plus_minus(changed, "+"), plus_minus(of_all, "+")]
        header += [f"{asked.method.name}: its MRR", f"{asked.method.name}: MRR of all"]
    title = f"{source.name}: change of a relation's MRR ({figure}) when it is made rare"
    bars = [
        Bars(name, tuple(None if one is None else Point(0, one.value, one.spread) for one in means))
        for name, means in own.items()
    ]
    picture = draw_bars(title, list(settings), bars, "change of MRR")
    name = f"{experiment.name}-{file_name_part(source.name)}"
    return [
        Picture(name, picture, title),
        _mean_table(experiment.methods, own),
        Table.of(header, rows, 1, f"change of MRR, {figure}"),
    ]


def _mean_table(methods: Sequence[Asked], own: dict[str, list[Mean | None]]) -> Block:
    means = {
        name: Mean.of(None if one is None else one.value for one in found)
        for name, found in own.items()
    }
    rows = [[asked.method.name, plus_minus(means[asked.method.name], "+")] for asked in methods]
    caption = "mean change over the relations made rare (± their spread); nearer to 0 is better"
    return Table.of(["method", "change"], rows, 1, caption)


def _change(results: Results, pair: tuple[Cell, Cell], *path: str) -> float | None:
    """How much MRR rose from balanced data to biased ones."""
    found = []
    for cell in pair:
        value = results.of(cell)
        for name in path:
            value = None if value is None else value.get(name)
        if value is None:
            return None
        found.append(float(value["mrr"]))
    return found[1] - found[0]
