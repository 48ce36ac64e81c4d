"""Commands that measure models and scores, compare evaluations, and run experiments."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from tilp.cli import console, options
from tilp.cli.console import output, print_json, print_table, task_bar
from tilp.errors import TilpError
from tilp.types import Backend, EvaluationTask, Protocol, Ties

if TYPE_CHECKING:
    import polars as pl
    from rich.progress import Progress

    from tilp.bench import Job
    from tilp.evaluation import Evaluation

_SHOWN_RELATIONS = 30
_METRICS = dict.fromkeys(("mrr", "hits@1", "hits@3", "hits@10"), ".4f") | {"mean_rank": ",.1f"}
_METRIC_TITLES = tuple(name.replace("_", " ") for name in _METRICS)


def evaluate_command(
    model: options.ModelArgument,
    split: options.SplitOption = "test",
    task: Annotated[EvaluationTask, Option()] = EvaluationTask.LINK,
    known: Annotated[Path | None, Option(metavar="DATA", show_default="the model's data")] = None,
    protocol: options.ProtocolsOption = None,
    sample: Annotated[int | None, Option(min=1, show_default="all")] = None,
    out: options.EvaluationFolderOption = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Measure a model: MRR, hits and mean rank, under every protocol and tie rule.

    Each fact of the split gives two queries, one for its object and one for its subject. Every
    entity is a candidate, and only train is evidence. For a large split, --sample 1000 measures a
    random sample, and the interval shows how precise that is. Evaluations saved with --out can be
    compared: tilp compare A B.

    Args:
        task: What is predicted. link: the object and the subject of each fact; time: the interval
            of each fact with two known dates (aeIOU, errors, calibration; see docs/when.md).
        known: Data to take the split and the known answers from. For a model of part of the
            data (tilp.splits.few, biased): the data with all facts.
        sample: Evaluate on a random sample of this many facts of the split, drawn with --seed.
    """
    fitted = options.load_model(model, threads, backend, address)
    graph = None if known is None else options.read_like(known, fitted)
    if task is EvaluationTask.TIME:
        if protocol or out is not None:
            raise TilpError("--protocol and --out go with --task link")
        with task_bar("predict") as advance:
            found = fitted.evaluate_times(
                split, known=graph, sample=sample, seed=seed, progress=advance
            )
        _report_times(found.to_json(seed=seed), str(model), json=json)
        return
    with task_bar("rank") as advance:
        rank = partial(fitted.evaluate, split, known=graph, protocols=protocol or None)
        result = rank(sample=sample, seed=seed, progress=advance)
    _report(result, str(model), out, json=json, seed=seed)


def _report_times(result: dict[str, Any], name: str, *, json: bool) -> None:
    if json:
        print_json(result)
        return
    rows = []
    for metric, value in result["metrics"].items():
        low, high = result["intervals"].get(metric, (None, None))
        rows.append((metric, f"{value:.4f}", "" if low is None else f"{low:.4f} to {high:.4f}"))
    title = f"{name} · times of {result['facts']:,} facts of {result['split']}"
    figures = ("value", "95 % interval")
    print_table(title, ("metric", *figures), rows, right=figures)
    shown = {"facts": ",", "aeiou@1": ".4f", "aeiou@10": ".4f", "mae_start": ".1f"}
    by_relation = ((row["relation"], *console.cells(row, **shown)) for row in result["relations"])
    print_table("by relation", ("relation", *shown), by_relation, right=tuple(shown))


def evaluate_scores_command(
    scores: Annotated[Path, Argument(metavar="SCORES")],
    data: Annotated[Path, Option(help="DATA that the scores belong to.")],
    split: options.SplitOption = "test",
    protocol: options.ProtocolsOption = None,
    out: options.EvaluationFolderOption = None,
    default: options.DefaultScoreOption = float("-inf"),
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    seed: options.SeedOption = 0,
    read: options.ReadOptions = options.READ,
) -> None:
    """Measure the scored candidates of any tool: MRR, hits and mean rank.

    Each fact of the split gives two queries, and every entity is a candidate. Metrics are printed
    for each protocol and tie rule, for each relation and direction, for subsets worth a look, and
    with a bootstrap interval.

    Args:
        scores: Scored candidates as TSV, CSV or Parquet, with the columns subject, relation,
            object, start, end (the fact, as in DATA), direction (object or subject: which one the
            query asks for), candidate, score.
    """
    from tilp.evaluation import evaluate, read_scores
    from tilp.parallel import thread_count

    graph = read.read(data)
    candidates = read_scores(scores, graph, split, default=default)
    rank = partial(evaluate, candidates, graph, split, protocols=protocol or None)
    with task_bar("rank") as advance:
        count, note = thread_count(threads), f"scores of {scores.name}"
        evaluation = rank(threads=count, progress=advance, note=note)
    _report(evaluation, str(scores), out, json=json, seed=seed)


def compare_command(
    first: Annotated[Path, Argument(metavar="A", help="A saved evaluation.")],
    second: Annotated[Path, Argument(metavar="B", help="Another of the same queries.")],
    protocol: Annotated[Protocol, Option()] = Protocol.ENUMERATE,
    ties: Annotated[Ties | None, Option(show_default="average")] = None,
    json: options.JsonOption = False,
    seed: options.SeedOption = 0,
) -> None:
    """Compare two evaluations of the same queries, A and B: paired, with significance.

    For MRR and hits: both metrics, B - A with its bootstrap interval, and the p-value of a paired
    permutation test over facts. Then the number of queries that either ranks better, and MRR for
    each relation and direction. tilp evaluate and tilp evaluate-scores save evaluations: --out.

    Args:
        protocol: Which other true answers to filter out before ranking.
        ties: Rank among equal scores.
    """
    from tilp.evaluation import compare, load_evaluation

    evaluations = load_evaluation(first), load_evaluation(second)
    comparison = compare(*evaluations, protocol, ties, seed=seed)
    if json:
        print_json({"first": str(first), "second": str(second), **comparison.to_json()})
        return
    output().print(f"A: {first}\nB: {second}")
    setting = f"{comparison.protocol} {comparison.ties}"
    rows = []
    for name, metric in comparison.metrics.items():
        values = (f"{metric.first:.4f}", f"{metric.second:.4f}", f"{metric.difference:+.4f}")
        p_value = "< 0.001" if metric.p_value < 0.001 else f"{metric.p_value:.3f}"
        rows.append((name, *values, f"{metric.low:+.4f} to {metric.high:+.4f}", p_value))
    figures = ("A", "B", "B - A", "95 % interval", "p")
    title = f"{setting} · {comparison.facts:,} facts, queried both ways"
    print_table(title, ("metric", *figures), rows, right=figures)
    output().print(
        f"B ranks the answer better in {comparison.wins:,} queries, A in {comparison.losses:,}; "
        f"{comparison.draws:,} are the same.\n"
    )
    counts = ("queries", "A", "B", "B - A", "B better", "A better")
    formats = {"queries": ",", "first": ".4f", "second": ".4f", "difference": "+.4f"}
    formats |= {"wins": ",", "losses": ","}
    title, relations = f"MRR by relation · {setting}", comparison.by_relation
    _print_relations(title, counts, relations, lambda row: console.cells(row, **formats))


def _report(evaluation: Evaluation, name: str, out: Path | None, *, json: bool, seed: int) -> None:
    from tilp.evaluation import SUBSETS

    if out is not None:
        evaluation.save(out)
    if json:
        print_json(evaluation.to_json(seed=seed))
        return
    rows = [
        (protocol.value, ties.value, *_metric_cells(evaluation.metrics(protocol, ties).to_json()))
        for protocol, ties in evaluation.protocols_and_ties()
    ]
    title = f"{name} · {len(evaluation) // 2:,} facts of {evaluation.split}, queried both ways"
    print_table(title, ("protocol", "ties", *_METRIC_TITLES), rows, right=_METRIC_TITLES)
    if evaluation.sample is not None:
        output().print(f"measured on {evaluation.sample} of {evaluation.split}")
    headline = " ".join(evaluation.headline)
    mrr = evaluation.bootstrap(seed=seed)["mrr"]
    interval = f"95 % interval {mrr.low:.4f} to {mrr.high:.4f} (bootstrap over facts)"
    output().print(f"{headline}: MRR {mrr.value:.4f}, {interval}\n")
    figures = ("queries", *_METRIC_TITLES)
    subsets = (
        (SUBSETS[row["rows"]] if row["holds"] else "… the rest", *_query_cells(row))
        for row in evaluation.by_subset().iter_rows(named=True)
    )
    print_table(f"subsets · {headline}", ("facts", *figures), subsets, right=figures)
    _print_relations(f"relations · {headline}", figures, evaluation.by_relation(), _query_cells)


def _metric_cells(metrics: dict[str, float | None]) -> list[str]:
    """Format metrics; a dash if there are no queries."""
    values = ((metrics[name], digits) for name, digits in _METRICS.items())
    return ["-" if value is None else format(value, digits) for value, digits in values]


def _query_cells(row: dict[str, Any]) -> list[str]:
    return [f"{row['queries']:,}", *_metric_cells(row)]


def _print_relations(
    title: str, figures: tuple[str, ...], relations: pl.DataFrame,
    row_cells: Callable[[dict[str, Any]], list[str]],
) -> None:  # fmt: skip
    rows = (
        (row["relation"], row["direction"], *row_cells(row))
        for row in relations.head(_SHOWN_RELATIONS).iter_rows(named=True)
    )
    print_table(title, ("relation", "query for", *figures), rows, right=figures)
    omitted = len(relations) - _SHOWN_RELATIONS
    if omitted > 0:
        output().print(f"(and {omitted:,} rows more: --json)", style="dim")


def bench_command(
    plan: Annotated[str | None, Argument(metavar="PLAN")] = None,
    data: Annotated[list[str] | None, Argument(metavar="[DATA]…")] = None,
    out: Annotated[Path | None, Option(metavar="REPORT")] = None,
    threads: options.ThreadsOption = None,
    jobs: Annotated[int, Option(min=1)] = 1,
    seeds: Annotated[
        int | None, Option("--seeds", "--rounds", min=1, show_default="as the plan says")
    ] = None,
    only: Annotated[list[str] | None, Option(metavar="EXPERIMENT", show_default="all")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="List the runs, and run nothing.")] = False,
    list_plans: Annotated[bool, Option("--list")] = False,
) -> None:
    """Run the experiments of a PLAN on DATA, the paper's or your own, and write a report.

    A plan says which methods are compared, in which settings, under which protocols, with how many
    seeds. The result of every run is a file, so a plan that was stopped continues where it was. The
    report is Markdown and HTML, with tables, charts (they need the extra plot), the command,
    versions and fingerprints of the data. Example: tilp bench quick --out report

    Args:
        plan: A TOML file, or the name of a plan that comes with tilp: see --list.
        data: Files or folders of facts, or names of published sets (tilp datasets list). Default:
            the bundled world.
        out: Folder of the report and of the results. Runs that have a result are not run again;
            several plans may share a folder, one after the other.
        jobs: Count of runs at a time, which share the threads. Much faster for many small runs, but
            the seconds of a single run then mean less.
        seeds: Count of runs of each method, each with a seed of its own.
        only: An experiment of the plan, by its name; repeatable.
        list_plans: List the plans that come with tilp, and stop.
    """
    from tilp import bench

    screen = output()
    if list_plans:
        for name, shipped in bench.shipped_plans().items():
            experiments = ", ".join(experiment.name for experiment in shipped.experiments)
            screen.print(f"{name:12}{shipped.title} ({experiments})")
        return
    if plan is None:
        raise TilpError("name a PLAN: a TOML file, or one of those that tilp bench --list names")
    chosen = bench.load_plan(plan).narrowed(seeds, tuple(only or ()))
    sources = [bench.find_source(name) for name in data or ()]
    sources = sources or [bench.world_source(chosen.world)]
    if dry_run:
        planned, refused = bench.plan_jobs(chosen, sources)
        for job in planned:
            screen.print(job.name)
        for where, reason in refused.items():
            console.print_warning(f"{where}: {reason}")
        return
    if out is None:
        raise TilpError("name the folder of the report: --out REPORT")
    with console.resume_hint(out), console.progress_bar() as bar:
        run = partial(bench.run_plan, chosen, sources, out, threads=threads, side_by_side=jobs)
        done = run(command=shlex.join(["tilp", *sys.argv[1:]]), watcher=_ProgressBars(bar))
    count, failed = len(done.results.done), done.results.failed
    for name, reason in failed.items():
        console.print_warning(f"{name}: {reason}")
    if done.missing_charts:
        charts = f"{len(done.missing_charts)} charts are missing from the report"
        console.print_warning(f'{charts}; to draw them: pip install "tilp[plot]"')
    and_failed = f"; {len(failed)} more failed" if failed else ""
    screen.print(f"{count} runs, {done.ran} of them now{and_failed}; {done.page} and {done.text}")
    if failed or not count:
        raise typer.Exit(1)


class _ProgressBars:
    """A bar over all runs, with the stage of the present one; and a line for each that ended."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._all = bar.add_task("runs", total=None)
        self._stage = bar.add_task("", total=1.0)
        self._began = time.perf_counter()

    def begins(self, job: Job) -> None:
        self._began = time.perf_counter()
        self._bar.update(self._all, description=job.name)

    def advances(self, stage: str, share: float) -> None:
        self._bar.update(self._stage, completed=share, description=f"  {stage}")

    def ends(self, job: Job, outcome: str, position: int, count: int) -> None:
        self._bar.update(self._all, total=count, completed=position)
        taken = f"{time.perf_counter() - self._began:.1f} s"
        self._began = time.perf_counter()
        console.say(f"{position}/{count} {job.name}: {outcome}, {taken}")
