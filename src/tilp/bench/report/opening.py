"""How a report begins: what was asked, of which data, by what, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from tilp._utils.versions import version_report
from tilp.bench.jobs import Results
from tilp.bench.plans import Plan
from tilp.bench.report.blocks import Block, Code, Folded, Heading, Items, Table, Text
from tilp.bench.sources import Source
from tilp.graph import SPLITS
from tilp.types import ExperimentKind, Protocol

__all__ = ["opening"]

_PROTOCOLS = {
    Protocol.ENUMERATE: "for each instant of the query's interval, the other answers of facts of "
    "any split that hold then are removed; the rank is the mean over the instants",
    Protocol.EXACT: "other answers with the same start and end are removed",
    Protocol.OVERLAP: "other answers whose interval touches the query's are removed",
    Protocol.STATIC: "all other answers are removed, at whatever time they hold",
    Protocol.RAW: "no other answer is removed",
    Protocol.TILP_RELEASE: "as the code released with the paper ranks: the share of the query's "
    "interval that train facts of better candidates cover is subtracted; best ties",
}
_DIGITS = 16  # of a fingerprint


def opening(plan: Plan, sources: Sequence[Source], results: Results, command: str) -> list[Block]:
    """Blocks before the first experiment.

    Args:
        plan: what was run.
        sources: on what.
        results: what came of it.
        command: that asks for the same again.
    """
    days = sorted(one["finished"][:10] for one in results)
    measured = f"Measured {days[0]}" if days else "Nothing was measured"
    if days and days[0] != days[-1]:
        measured += f" to {days[-1]}"
    return [
        Heading(plan.title, 1),
        *([Text(plan.about)] if plan.about else []),
        Code(command),
        Text(f"{measured}. Every run is a file in the folder runs, beside this report.", True),
        _data(sources),
        _methods(plan),
        Folded("How to read it", tuple(_reading(plan))),
        Folded("Versions and machine", (Code(version_report()),)),
    ]


def _data(sources: Sequence[Source]) -> Block:
    rows = []
    for source in sources:
        graph = source.graph
        counts = [len(graph.rows(split)) for split in SPLITS]
        counts += [len(graph.entities), len(graph.relations), len(graph.defects)]
        words = [source.name, graph.unit.value, source.fingerprint[:_DIGITS]]
        rows.append([*words, *(f"{count:,}" for count in counts)])
    header = ["data", "unit", "fingerprint", *SPLITS, "entities", "relations", "date defects"]
    return Table.of(header, rows, 3)


def _methods(plan: Plan) -> Block:
    methods = {
        asked.method.name: asked.method.about
        for experiment in plan.experiments
        for asked in experiment.methods
    }
    return Table.of(["method", "what it is"], [list(one) for one in methods.items()], 2)


def _reading(plan: Plan) -> list[Block]:
    asked = [
        experiment
        for experiment in plan.experiments
        if experiment.kind is not ExperimentKind.EFFICIENCY
    ]
    protocols = dict.fromkeys(
        figure.protocol for experiment in asked for figure in experiment.figures
    )
    return [
        Text(
            "Every fact of the split is asked in both directions, and every entity is a candidate; "
            "train alone is evidence where no setting says otherwise, and valid decides what is "
            "chosen. MRR is the mean of 1/rank, "
            "hits@k the share of ranks up to k. ± is the standard deviation of one run over "
            "seeds, which are 0 and on; without it, there was one run. The best of our methods is "
            "bold in each column, of all where there is none of ours; baselines and floors are to "
            "be compared with. What others published is slanted, and stands beside the protocol "
            "that is nearest to theirs."
        ),
        Items(tuple(f"{one.value}: {_PROTOCOLS[one]}" for one in protocols)),
        Text(
            "Ties: best is 1 + the candidates that score higher, worst 1 + the others that score "
            "at least as high, average the mean of the two."
        ),
    ]
