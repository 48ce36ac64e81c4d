"""Commands that fit models, measure them and show their rules."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import (
    goes_on_from,
    output,
    print_json,
    print_warning,
    progress_bar,
    stage_bars,
)
from tilp.cli.costs import STAGES, show_cost
from tilp.cli.evaluate import report
from tilp.cli.options import (
    AddressOption,
    BackendOption,
    Columns,
    Data,
    EvaluationFolder,
    Header,
    JsonOption,
    Limit,
    MinSupport,
    Model,
    OnErrorOption,
    Protocols,
    Sample,
    ThreadsOption,
    Top,
    UnitOption,
    load_model,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import (
    MAX_RULES,
    Backend,
    Features,
    Grain,
    Missing,
    OnError,
    Part,
    Preset,
    Weights,
)

if TYPE_CHECKING:
    from tilp.model import TILP


def fit_command(
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", show_default=False, help="A folder for the model."),
    ] = None,
    preset: Annotated[
        Preset,
        typer.Option(
            "--preset",
            help="Choices that go together, for all that is not said. paper: the system of the "
            "paper (length 5, pairs, attention, its features, missing dates by duration).",
        ),
    ] = Preset.DEFAULT,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", min=1, max=5, help="Of rules.", show_default="3; paper: 5"),
    ] = None,
    features: Annotated[
        Features | None,
        typer.Option(
            "--features",
            show_default="full",
            help="Temporal features that join the rules. paper: recurrence, order and time between "
            "relations; full: the candidate's facts against the query's dates, evidence of rules "
            "together, and soft walks.",
        ),
    ] = None,
    without: Annotated[
        list[Part] | None,
        typer.Option("--without", hidden=True),
    ] = None,
    soft_length: Annotated[
        int | None, typer.Option("--soft-length", min=1, max=5, hidden=True)
    ] = None,
    weights: Annotated[
        Weights | None,
        typer.Option(
            "--weights",
            show_default="free; paper: attention",
            help="What the weight of a rule is made of. free: a number of its own, drawn to the "
            "rule's confidence; attention: as in the paper, shared between rules.",
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            "--missing",
            show_default="point; paper: duration",
            help="What an unknown start or end is taken for, in facts and in queries. point: the "
            "known one; duration: as in the paper, a draw from how long the relation's facts "
            "last; open: since ever, or still going on; unknown: nothing, so that a rule counts "
            "if it may hold.",
        ),
    ] = None,
    grain: Annotated[
        list[Grain] | None,
        typer.Option(
            "--grain",
            show_default="pairs, gap and allen; paper: pairs",
            help="How finely rules speak of time; repeatable. See tilp mine --help.",
        ),
    ] = None,
    min_support: MinSupport = 2,
    top: Top = MAX_RULES,
    share: Annotated[
        float,
        typer.Option(
            "--share",
            min=0.0,
            max=1.0,
            help="Of the training facts that are learned from; all of them are walked on.",
        ),
    ] = 1.0,
    sample: Sample = None,
    limit: Limit = 1_000_000,
    threads: ThreadsOption = None,
    backend: BackendOption = Backend.THREADS,
    address: AddressOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For everything drawn.")] = 0,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only estimate the time and memory of each stage, from fits of small samples. "
            "Writes nothing; needs no --out.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
) -> None:
    """Find rules in the training facts of DATA, and learn how much they and features are worth.

    The valid split decides when to stop; where there is none, a tenth of train. Stopped or killed,
    the same command goes on from where it was, to the same model.
    """
    from tilp.model import TILP

    if json and not dry_run:
        raise TilpError("--json is what --dry-run prints; a fit writes a model to --out")
    for option, value in (("--without", without), ("--soft-length", soft_length)):
        if value:
            print_warning(
                f"{option} is deprecated and will be removed; TILP(...) of Python has it for "
                "experiments"
            )
    model = TILP.from_options(
        preset,
        max_length=max_length,
        temporal_detail=grain or None,
        rule_weights=weights,
        features=features,
        without=without or None,
        walk_length=soft_length,
        missing=missing,
        min_support=min_support,
        max_rules=top,
        share=share,
        sample=sample,
        walk_limit=limit,
        random_state=seed,
        n_jobs=threads,
        backend=backend,
        address=address,
    )
    if dry_run:
        show_cost(model, lambda: read_data(data, unit, on_error, columns, header), json=json)
        return
    if out is None:
        raise TilpError("give a folder for the model, --out; or see what it takes, --dry-run")
    out = out.resolve()
    work = out.with_name(f"{out.name}.unfinished")
    if out.exists() and any(out.iterdir()):
        if not work.exists():
            raise TilpError(f"{out} is not empty: choose another folder or remove it")
        shutil.rmtree(work)  # all that a fit left to do when it was killed
        output().print(f"{out} is finished")
        return
    graph = read_data(data, unit, on_error, columns, header)
    if work.exists():
        print_warning(f"going on where {work} stopped")
    with goes_on_from(work):
        fit_with_progress(model, graph, work)
    model.save(out)
    shutil.rmtree(work)
    console = output()
    console.print(f"{out}: {model!r}")
    taken = ", ".join(f"{STAGES[name]} {taken:.1f} s" for name, taken in model.seconds.items())
    console.print(f"{taken}; {len(model.curve.train)} gradients")


def fit_with_progress(model: TILP, graph: object, work: Path | None = None) -> None:
    """Fit, with a bar for each stage."""
    with stage_bars(STAGES) as advance:
        model.fit(graph, folder=work, progress=advance)  # type: ignore[arg-type]


def evaluate_command(
    model: Model,
    split: Annotated[str, typer.Option("--split", help="Whose facts are asked.")] = "test",
    known: Annotated[
        Path | None,
        typer.Option(
            "--known",
            metavar="DATA",
            show_default="the model's own",
            help="Whose split is asked, and whose facts tell the other true answers. For a model "
            "of reduced data (tilp split --graph reduced) the data with all facts.",
        ),
    ] = None,
    protocol: Protocols = None,
    out: EvaluationFolder = None,
    json: JsonOption = False,
    threads: ThreadsOption = None,
    backend: BackendOption = Backend.THREADS,
    address: AddressOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For intervals.")] = 0,
) -> None:
    """Measure a model: MRR, hits and mean rank, under every protocol and tie rule.

    Every fact of the split is asked in both directions, every entity is a candidate, and train
    alone is evidence. Saved with --out, two evaluations can be compared: tilp compare A B.
    """
    fitted = load_model(model, threads, backend, address)
    facts = None
    if known is not None:
        facts = read_data(known, fitted.graph.unit, OnError.REPAIR, None, None)
    with progress_bar() as bar:
        task = bar.add_task("rank", total=1.0)
        evaluation = fitted.evaluate(
            split,
            known=facts,
            protocols=protocol or None,
            progress=lambda share: bar.update(task, completed=share),
        )
    report(evaluation, str(model), out, json=json, seed=seed)


def rules_command(
    model: Model,
    relation: Annotated[
        str | None,
        typer.Option(
            "--relation", show_default="all", help="The relation they predict; name^-1: inverse."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many of each relation.")] = 10,
    sentences: Annotated[
        bool, typer.Option("--sentences", help="Each rule as an English sentence.")
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="A folder for pictures of the rules, numbered as shown."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the rules of a model, the heaviest first.

    Weight: what the rule counts in scores. Confidence: the mean share of its walks that arrive at
    the answer. Support and fired: training facts whose answer it reaches, and where it applies.
    """
    from itertools import groupby, islice

    from tilp.cli.rules import rule_table
    from tilp.rules import Notation, format_rule
    from tilp.rules.picture import draw_rule
    from tilp.viz import standalone

    fitted = load_model(model, None)
    shown = [
        one
        for _, group in groupby(fitted.rules(relation), lambda one: one.rule.head)
        for one in islice(group, top)
    ]
    if svg is not None:
        svg.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(shown, start=1):
            picture = standalone(draw_rule(one.rule))
            (svg / f"{number}.svg").write_text(picture, encoding="utf-8", newline="\n")
    if json:
        print_json(
            [
                {
                    "rule": str(one.rule),
                    "sentence": format_rule(one.rule, Notation.SENTENCE),
                    "weight": one.weight,
                    "confidence": one.confidence,
                    "support": one.support,
                    "fired": one.body_support,
                    "facts": one.facts,
                    "sampled": one.sampled,
                }
                for one in shown
            ]
        )
        return
    title = f"{len(shown):,} of {len(fitted.rules(relation)):,} rules"
    output().print(rule_table(shown, title, sentences=sentences))
