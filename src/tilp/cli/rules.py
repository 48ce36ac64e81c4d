"""`tilp mine`, `tilp rules` and `tilp features`: mine rules, show what a model learned."""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, print_warning, task_bar
from tilp.errors import TilpError
from tilp.types import MAX_RULES, Backend, EvidenceKind, Grain

if TYPE_CHECKING:
    import polars as pl

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


_PAIR = ["evidence", "query", "other"]
_RECURRENCE = {"between": "again with the same", "others": "again with another"}


def features_command(
    model: options.ModelArgument,
    relation: options.RelationFilterOption = None,
    other: Annotated[str | None, Option(show_default="all")] = None,
    evidence: Annotated[EvidenceKind | None, Option(show_default="all")] = None,
    min_seen: Annotated[int, Option(min=1, help="Least number of observations.")] = 1,
    top: Annotated[int | None, Option(min=1, show_default="10; JSON: all")] = None,
    learned: Annotated[bool, Option("--learned")] = False,
    plot: Annotated[Path | None, Option()] = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
) -> None:
    """Show temporal features: recurrence, order, time between relations, durations.

    They are fitted to the training facts of any model, and sorted by the number of observations.
    The two relations of a pair are read from the entity that has both: graduatedFrom starts 22
    years after bornIn.

    Args:
        other: The other relation of pairs.
        evidence: Where both relations were observed. between: in facts between the same two
            entities; others: in other facts of one entity; walks: on walks to the answer.
        top: Number of rows in each table.
        learned: Show the learned weights instead: of candidate history, rules and random walks, in
            full for one --relation, in short for all.
        plot: Draw the observations and the fitted distributions; .png, .svg, .pdf.
    """
    from tilp.model.feature_tables import select_features

    fitted = options.load_model(model, threads)
    if learned:
        if other or evidence or plot or min_seen > 1:
            goes_with = "--relation, --top and --json"
            raise TilpError(f"--learned shows weights, not pairs; it goes with {goes_with}")
        weights = fitted.feature_weights(relation)
        if json:
            print_json(_top_rows(weights, top, "query", "part"))
        elif weights["query"].is_null().all():
            cells = ((f"{row['weight']:.3g}", row["sentence"]) for row in weights.to_dicts())
            print_table("weight of each part (γ)", ("weight", "part"), cells, right=("weight",))
        elif relation is not None:
            _print_weights_of_relation(weights, top or _SHOWN)
        else:
            _print_weights_in_short(weights)
        return
    with task_bar("fit distributions") as advance:
        distributions = fitted.distributions(progress=advance)
    select = partial(select_features, distributions.frame(), fitted.graph, min_seen=min_seen)
    rows = select(relation=relation, other=other, evidence=evidence)
    if plot is not None:
        from tilp.figures import plot_features

        with task_bar("draw") as advance:
            plot_features(distributions, rows, plot, progress=advance)
    if json:
        print_json(_top_rows(rows, top, "feature"))
        return
    _print_distributions(rows, top or _SHOWN)
    if plot is not None:
        output().print(f"{plot}: drawn")


def _top_rows(rows: pl.DataFrame, top: int | None, *by: str) -> list[dict[str, object]]:
    """Return all rows, or the first of each group, for JSON."""
    if top is not None:
        rows = rows.group_by(*by, maintain_order=True).head(top)
    return rows.to_dicts()


def _print_distributions(rows: pl.DataFrame, top: int) -> None:
    from tilp._utils.text import percent

    if rows.is_empty():
        output().print("nothing of the kind was seen in the training facts")
        return
    notes = []
    pairs, recurrence, durations = (
        rows.filter(feature=feature) for feature in ("pair", "recurrence", "duration")
    )
    if len(pairs):
        order = rows.filter(feature="order").select(*_PAIR, after="probability")
        shown = pairs.join(order, on=_PAIR, how="left", maintain_order="left").head(top)
        cells: list[tuple[str, ...]] = []
        for row in shown.iter_rows(named=True):
            gaussian = row["distribution"] == "Gaussian"
            pattern = "N({mean:.1f}, {deviation:.1f})" if gaussian else "Exp({rate:.3g})"
            after = percent(row["after"])
            cells.append((row["evidence"], row["sentence"], after, pattern.format(**row)))
        title = _title("time between relations (RelationPairInterval, TemporalOrder)", pairs, top)
        print_table(title, ("evidence", "in words", "after", "fitted"), cells, right=("after",))
        notes.append(
            "±: standard deviation. After: how often the relation named first starts later. "
            "Fitted: Gaussian N(μ, σ), or exponential Exp(λ)."
        )
    if len(recurrence):
        index = ["query", "relation", "seen"]
        by_relation = recurrence.pivot("evidence", index=index, values="probability")
        kinds = [kind for kind in _RECURRENCE if kind in by_relation.columns]
        cells = [
            (row["relation"], *(percent(row[kind]) for kind in kinds), f"{row['seen']:,}")
            for row in by_relation.head(top).iter_rows(named=True)
        ]
        figures = (*(_RECURRENCE[kind] for kind in kinds), "facts")
        title = _title("does it happen again (Recurrence)", by_relation, top)
        print_table(title, ("relation", *figures), cells, right=figures)
    if len(durations):
        cells = [
            (row["sentence"], f"N({row['mu']:.1f}, {row['sigma']:.1f})")
            for row in durations.head(top).iter_rows(named=True)
        ]
        title = _title("how long facts last (Duration)", durations, top)
        print_table(title, ("in words", "fitted"), cells)
        notes.append("Durations: N(μ, σ) truncated to [0, ∞).")
    notes.append("More: --relation R --other R2, --evidence, --top N, --json. See it: --plot FILE.")
    output().print("\n".join(notes), style="dim")


def _print_weights_of_relation(weights: pl.DataFrame, top: int) -> None:
    output().print(f"(s, {weights['query'][0]}, ?)")
    single = weights.filter(weights["of"].is_null() | (weights["part"] == "factor"))
    for sentence in single["sentence"]:
        output().print(f"  {sentence}")
    for title, rows in (
        ("candidate history", weights.drop_nulls("words")),
        ("evidence of rules", weights.filter(part="rule evidence")),
    ):
        if len(rows):
            cells = (
                (f"{row['weight']:+.2f}", row["sentence"].rpartition(": ")[0])
                for row in rows.head(top).iter_rows(named=True)
            )
            columns = ("weight", "what it is added for")
            print_table(_title(title, rows, top), columns, cells, right=("weight",))
    output().print("The strongest first. More: --top N, --json.", style="dim")


def _print_weights_in_short(weights: pl.DataFrame) -> None:
    """Print a row for each relation: its single weights, and its strongest history feature."""
    history = weights.drop_nulls("words").unique("query", keep="first")
    strongest = dict(history.select("query", "sentence").iter_rows())
    single = weights.filter(weights["of"].is_null())
    by_relation = single.pivot("part", index="query", values="weight").fill_null(0.0)
    parts = [part for part in ("rules", "random walks") if part in by_relation.columns]
    cells = (
        (row["query"], *(f"{row[part]:.2f}" for part in parts), strongest.get(row["query"], ""))
        for row in by_relation.iter_rows(named=True)
    )
    columns = ("relation of the query", *parts, "strongest feature of candidate history")
    print_table("learned weights", columns, cells, right=parts)
    output().print("All weights of one relation: --relation R.", style="dim")


def _title(name: str, rows: pl.DataFrame, top: int) -> str:
    return f"{name}: {min(top, len(rows)):,} of {len(rows):,}"
