"""`tilp mine` and `tilp rules`: mine rules, and show those of a model."""

from __future__ import annotations

from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, print_warning, task_bar
from tilp.errors import TilpError
from tilp.types import MAX_RULES, Backend, Grain, OnError

if TYPE_CHECKING:
    from tilp.rules import MinedRule

_SHOWN_RULES = 10
_DEFAULT_GRAINS = (Grain.PAIRS, Grain.GAP)


def mine_command(
    data: options.DataArgument,
    out: Annotated[Path, typer.Option("--out", help="The file for the rules, as JSON lines.")],
    max_length: Annotated[
        int, typer.Option("--max-length", min=1, max=5, help="Greatest length of rules.")
    ] = 3,
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", show_default="all", help="Mine rules for this; repeatable."),
    ] = None,
    grain: options.GrainOption = None,
    min_support: options.MinSupportOption = 2,
    top: options.TopOption = MAX_RULES,
    sample: options.SampleOption = None,
    limit: options.LimitOption = 1_000_000,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Mine temporal rules from the training facts of DATA, in both directions of each relation.

    Each rule has a support (training facts whose answer it reaches), a body support (training
    facts where its body holds) and a confidence (mean share of its walks that arrive at the
    answer). After Ctrl-C the file holds what is finished, and the same command resumes.
    """
    from tilp.parallel import Workers, thread_count
    from tilp.walks import MiningSettings
    from tilp.walks.mining import MiningCheckpoint

    graph = options.read_data(data, unit, on_error, columns, header)
    settings = MiningSettings(
        grains=tuple(grain or _DEFAULT_GRAINS),
        max_length=max_length,
        min_support=min_support,
        top=top,
        sample=sample,
        limit=limit,
        seed=seed,
    )
    run = MiningCheckpoint(graph, relation or list(graph.relations), settings, out)
    if run.done:
        print_warning(f"going on where {run.notes} stopped: {len(run.done)} relations are done")
    with task_bar("mine") as advance, Workers(thread_count(threads), backend, address) as workers:
        try:
            rules = run.finish(workers=workers, progress=advance)
        except KeyboardInterrupt:
            raise TilpError(
                f"stopped; {out} holds the rules of {len(run.done)} of {len(run.relations)} "
                "relations. The same command goes on from there."
            ) from None
    output().print(f"{out}: {rules}")
    best = sorted(rules, key=lambda mined: (-mined.measure, str(mined.rule)))[:_SHOWN_RULES]
    print_rules(best, "the best of them")


def rules_command(
    model: options.ModelArgument,
    relation: options.RelationFilterOption = None,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Number of rules for each relation.")
    ] = 10,
    sentences: Annotated[
        bool, typer.Option("--sentences", help="Print each rule as an English sentence.")
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="Draw the rules into this folder, numbered as shown."),
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Show the rules of a model, those with the largest weight first.

    Weight: what the rule adds to scores. Confidence: the mean share of its walks that arrive at
    the answer. Support: training facts whose answer it reaches. Body support: training facts
    where its body holds.
    """
    from tilp.rules import Notation, format_rule
    from tilp.rules.picture import draw_rule
    from tilp.viz import standalone

    rules = options.load_model(model).rules(relation)
    shown = [
        mined
        for _, group in groupby(rules, lambda mined: mined.rule.head)
        for mined in islice(group, top)
    ]
    if svg is not None:
        svg.mkdir(parents=True, exist_ok=True)
        for index, mined in enumerate(shown, start=1):
            picture = standalone(draw_rule(mined.rule))
            (svg / f"{index}.svg").write_text(picture, encoding="utf-8", newline="\n")
    if not json:
        print_rules(shown, f"{len(shown):,} of {len(rules):,} rules", sentences=sentences)
        return
    print_json(
        [
            {
                "rule": str(mined.rule),
                "sentence": format_rule(mined.rule, Notation.SENTENCE),
                "weight": mined.weight,
                "confidence": mined.confidence,
                "support": mined.support,
                "body_support": mined.body_support,
                "fired": mined.body_support,  # its name in 0.1
                "facts": mined.facts,
                "sampled": mined.sampled,
            }
            for mined in shown
        ]
    )


def print_rules(rules: list[MinedRule], title: str, *, sentences: bool = False) -> None:
    """Print rules with their statistics, and their weights if these are learned."""
    from tilp.rules import Notation, format_rule

    weighted = any(mined.weight is not None for mined in rules)
    figures = (*(["weight"] if weighted else []), "confidence", "support", "body support")
    rows = (
        (
            *([f"{mined.weight or 0.0:.3g}"] if weighted else []),
            f"{mined.confidence:.2f}{'~' if mined.sampled else ''}",
            f"{mined.support:,}",
            f"{mined.body_support:,}",
            format_rule(mined.rule, Notation.SENTENCE if sentences else Notation.SIGNS),
        )
        for mined in rules
    )
    print_table(title, (*figures, "rule"), rows, right=figures)
