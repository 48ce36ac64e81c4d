"""`tilp mine` and `tilp rules`: mine rules, show those of a model."""

from __future__ import annotations

from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, print_warning, task_bar
from tilp.errors import TilpError
from tilp.types import MAX_RULES, Backend, Grain

if TYPE_CHECKING:
    from tilp.rules import MinedRule

_SHOWN = 10  # rules or rows


def mine_command(
    data: options.DataArgument,
    out: Annotated[Path, Option(help="The file for the rules, as JSON lines.")],
    max_length: Annotated[int, Option(min=1, max=5, help="Greatest length of rules.")] = 3,
    relation: Annotated[list[str] | None, Option(show_default="all")] = None,
    grain: options.GrainOption = None,
    min_support: options.MinSupportOption = 2,
    top: options.TopOption = MAX_RULES,
    sample: options.SampleOption = None,
    limit: options.LimitOption = 1_000_000,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
    read: options.ReadOptions = options.READ,
) -> None:
    """Mine temporal rules from the training facts of DATA, in both directions of each relation.

    Each rule has a support (training facts whose answer it reaches), a body support (training
    facts where its body holds) and a confidence (mean share of its walks that arrive at the
    answer). The file appears when all is finished; after Ctrl-C the same command resumes.

    Args:
        relation: Mine rules for this; repeatable.
    """
    from tilp._utils.files import locked
    from tilp.parallel import Workers, thread_count
    from tilp.walks import MiningSettings
    from tilp.walks.mining import MiningCheckpoint

    graph = read.read(data).canonical()
    grains = tuple(grain or (Grain.PAIRS, Grain.GAP))
    settings = MiningSettings(
        grains, max_length, min_support, top, sample=sample, limit=limit, seed=seed
    )
    with locked(out, beside=True):
        run = MiningCheckpoint(graph, relation or list(graph.relations), settings, out)
        if run.done:
            print_warning(f"going on where {run.notes} stopped: {len(run.done)} relations are done")
        with (
            task_bar("mine") as advance,
            Workers(thread_count(threads), backend, address) as workers,
        ):
            try:
                rules = run.finish(workers=workers, progress=advance)
            except KeyboardInterrupt:
                raise TilpError(
                    f"stopped; {run.partial} holds the rules of {len(run.done)} of "
                    f"{len(run.relations)} relations. The same command goes on from there."
                ) from None
    output().print(f"{out}: {rules}")
    best = sorted(rules, key=lambda mined: (-mined.measure, str(mined.rule)))[:_SHOWN]
    print_rules(best, "the best of them")


def rules_command(
    model: options.ModelArgument,
    relation: options.RelationFilterOption = None,
    top: Annotated[int, Option(min=1, help="Number of rules for each relation.")] = 10,
    sentences: Annotated[bool, Option("--sentences")] = False,
    svg: Annotated[Path | None, Option()] = None,
    out: Annotated[Path | None, Option()] = None,
    phrasings: options.PhrasingsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show the rules of a model, those with the largest gain first.

    Gain: how much the mean log-likelihood of held-out queries falls without the rule, in nats per
    query; models without gains show and sort by the weight, what the rule adds to scores.
    Support: training facts whose answer it reaches. Body support: training facts where its body
    holds. Confidence: the mean share of its walks that arrive at the answer. Lift: confidence
    over that of a guess by popularity.

    Args:
        sentences: Print each rule as an English sentence.
        svg: Draw the rules into this folder, numbered as shown.
        out: Write all rules, of --relation or of the model, to this file: as text, one rule a line,
            if it ends in .txt, otherwise as JSON lines.
    """
    from tilp._utils.files import write_text
    from tilp.rules.picture import draw_rule
    from tilp.viz import standalone

    fitted = options.load_model(model, phrasings=phrasings)
    rules, unit = fitted.rules(relation), fitted.graph.unit

    def sentence(mined: MinedRule) -> str:
        return fitted.phrasings.rule(mined.rule, unit)

    by_head = groupby(rules, lambda mined: mined.rule.head)
    shown = [mined for _, group in by_head for mined in islice(group, top)]
    if svg is not None:
        svg.mkdir(parents=True, exist_ok=True)
        for index, mined in enumerate(shown, start=1):
            picture = standalone(draw_rule(mined.rule, fitted.phrasings))
            write_text(svg / f"{index}.svg", picture)
    if out is not None:
        rules.write(out)
    if not json:
        if out is not None:
            output().print(f"{out}: {rules}")
        texts = list(map(sentence, shown)) if sentences else None
        print_rules(shown, f"{len(shown):,} of {len(rules):,} rules", texts)
        return
    rows = []
    for mined in shown:
        old_name = {"fired": mined.body_support}  # that of body_support in 0.1
        text = {"rule": str(mined.rule), "sentence": sentence(mined)}
        rows.append({**text, **mined.statistics, **old_name})
    print_json(rows)


def print_rules(rules: list[MinedRule], title: str, texts: list[str] | None = None) -> None:
    """Print rules with their statistics, by formula unless other texts are given."""
    from tilp.rules.ruleset import figure_columns

    columns = figure_columns(rules)
    texts = texts or [str(mined.rule) for mined in rules]
    rows = zip(*columns.values(), texts, strict=True)
    print_table(title, (*columns, "rule"), list(rows), right=tuple(columns))
