"""The beginning of a report: its data, its methods, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from tilp.bench.experiments.base import RankedExperiment
from tilp.bench.jobs import Results
from tilp.bench.plan import Plan
from tilp.bench.report import Report
from tilp.bench.sources import Source
from tilp.choices import Protocol
from tilp.graph import SPLITS
from tilp.versions import version_report

_PROTOCOLS = {
    Protocol.ENUMERATE: "for each instant of the query's interval, the other answers of facts of "
    "any split that hold then are removed; the rank is the mean over the instants",
    Protocol.EXACT: "other answers with the same start and end are removed",
    Protocol.OVERLAP: "other answers whose interval touches the query's are removed",
    Protocol.STATIC: "all other answers are removed, whenever they hold",
    Protocol.RAW: "no other answer is removed",
    Protocol.TILP_RELEASE: "as the code released with the paper ranks: the share of the query's "
    "interval that train facts of better candidates cover is subtracted; best ties",
}
_READING = (
    "Every fact of the split is a query in both directions, and every entity is a candidate. Train "
    "alone is evidence unless the setting says otherwise; hyperparameters are chosen on valid. MRR "
    "is the mean of 1/rank, hits@k the share of ranks up to k. ± is the standard deviation over "
    "seeds, which are 0 and on; without it, there was one run. The best of our methods is bold in "
    "each column, or the best of all if none is ours; the others are baselines to compare with. "
    "Published results are in italics, beside the protocol that is nearest to theirs."
)
_TIES = (
    "Ties: best is 1 + the candidates that score higher, worst 1 + the others that score at least "
    "as high, average the mean of the two."
)
_DIGITS = 16  # of a fingerprint


def write_overview(
    report: Report, plan: Plan, sources: Sequence[Source], results: Results, command: str
) -> None:
    """Write what comes before the first experiment."""
    report.heading(plan.title, 1)
    if plan.about:
        report.text(plan.about)
    report.code(command)
    days = sorted({result["finished"][:10] for result in results})
    period = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    measured = f"Measured {period}" if days else "Nothing was measured"
    report.text(f"{measured}. Every run is a file in the folder runs, beside this report.")
    _write_data(report, sources)
    methods = {
        runs.method.name: runs.method.about
        for experiment in plan.experiments
        for runs in experiment.methods
    }
    report.table(["method", "what it is"], list(methods.items()), 2)
    with report.folded("How to read it"):
        report.text(_READING)
        ranked = [one for one in plan.experiments if isinstance(one, RankedExperiment)]
        rankings = [ranking for experiment in ranked for ranking in experiment.figures]
        protocols = dict.fromkeys(ranking.protocol for ranking in rankings)
        if protocols:
            report.items(f"{protocol.value}: {_PROTOCOLS[protocol]}" for protocol in protocols)
        report.text(_TIES)
    with report.folded("Versions and machine"):
        report.code(version_report())


def _write_data(report: Report, sources: Sequence[Source]) -> None:
    rows = []
    for source in sources:
        graph = source.graph
        counts = [len(graph.rows(split)) for split in SPLITS]
        counts += [len(graph.entities), len(graph.relations), len(graph.defects)]
        words = [source.name, graph.unit.value, source.fingerprint[:_DIGITS]]
        rows.append([*words, *(f"{count:,}" for count in counts)])
    header = ["data", "unit", "fingerprint", *SPLITS, "entities", "relations", "date defects"]
    report.table(header, rows, 3)
