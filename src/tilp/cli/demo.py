"""`tilp demo`: everything that works, once, on the bundled world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output

if TYPE_CHECKING:
    from tilp.datasets import World
    from tilp.model import TILP

__all__ = ["demo", "print_planted_rules"]

_SHOWN_FACTS = 5
_SHOWN_ANSWERS = 5
_SHOWN_REASONS = 3
_MAX_LENGTH = 3
_MINED_FACTS = 200
_KEPT_RULES = 200
_ASKED_RELATION = "livesIn"


def demo(
    size: Annotated[int, typer.Option("--size", help="About how many facts.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another world.")] = 0,
) -> None:
    """Show on a small made-up world what tilp does, from facts onwards.

    People are born, study, play for teams, win prizes, marry, move and die in it, by rules that
    are known, so that what is learned can be checked against the truth.
    """
    from tilp.cli.console import print_inspection
    from tilp.cli.fit import fit_with_progress
    from tilp.data_quality import inspect
    from tilp.datasets import world
    from tilp.model import TILP

    console = output()
    console.rule("A world of dated facts")
    made = world(seed, size)
    for row in range(0, len(made.graph), len(made.graph) // _SHOWN_FACTS):
        console.print(str(made.graph.fact(row)))
    console.print(f"… {len(made.graph):,} facts in all, seed {seed}.\n")
    print_planted_rules(made)
    console.rule("What is in it, and what is wrong with it: tilp inspect")
    print_inspection(inspect(made.graph), f"world, seed {seed}")
    console.rule("Rules found and weighted: tilp fit")
    model = TILP.from_options(
        max_length=_MAX_LENGTH, sample=_MINED_FACTS, max_rules=_KEPT_RULES, random_state=seed
    )
    fit_with_progress(model, made.graph)
    _show_rules(made, model)
    console.rule("How well they predict held-out facts: tilp evaluate")
    _show_evaluation(model)
    console.rule("One question, and why: tilp predict, tilp explain")
    _show_prediction(model)


def _show_rules(made: World, model: TILP) -> None:
    """The best rule for each relation that rules were planted for."""
    from tilp.cli.rules import rule_table
    from tilp.rules import FORMS
    from tilp.types import Grain

    form = FORMS[Grain.PAIRS]  # what the planted ones are written in
    heads = list(dict.fromkeys(rule.relation for rule in made.rules))
    best = []
    for head in heads:
        rules = model.rules(head).sort()
        best += [
            one for one in rules if form.codes(one.rule.length, one.rule.constraints) is not None
        ][:1]
    planted = {rule.text for rule in made.rules}
    title = f"the best for each of {len(heads)} relations, of {len(model.rules()):,} found"
    output().print(rule_table(best, title))
    found = sum(str(one.rule) in planted for one in best)
    output().print(f"{found} of these {len(best)} were planted.\n")


def _show_evaluation(model: TILP) -> None:
    """The headline figures, beside those of a floor."""
    from rich.table import Table

    from tilp.evaluation import evaluate, popularity
    from tilp.scoring.scores import ScoreFunction

    table = Table(title="test split, protocol enumerate, average ties", title_justify="left")
    for column in ("", "MRR", "hits@1", "hits@10"):
        table.add_column(column, justify="left" if not column else "right")
    scorers: dict[str, ScoreFunction] = {
        "these rules": model.scorer(),
        "how often it is an answer": popularity(model.graph),
    }
    for name, scorer in scorers.items():
        figures = evaluate(scorer, model.graph, protocols=["enumerate"]).metrics()
        numbers = (figures.mrr, figures.hits_at_1, figures.hits_at_10)
        table.add_row(name, *(f"{number:.3f}" for number in numbers))
    output().print(table)


def _show_prediction(model: TILP) -> None:
    """Ask for the object of a test fact, and for the reasons of the best answer."""
    from tilp.cli.explain import print_explanation
    from tilp.cli.predict import print_predictions
    from tilp.scoring import Query

    graph = model.graph
    asked = next(
        row
        for row in graph.rows("test")
        if graph.relations.label(int(graph.relation[row])) == _ASKED_RELATION
    )
    fact = graph.fact(asked)
    dates = graph.frame("test").row(asked - graph.rows("test").start, named=True)
    query = Query(fact.relation, fact.subject, None, dates["start"], dates["end"])
    print_predictions(model.predict(query, k=_SHOWN_ANSWERS))
    output().print(f"The fact that was held out: {fact}\n")
    print_explanation(model.explain(query, groundings=1, max_reasons=_SHOWN_REASONS))
    output().print("\nThe same in the browser, for a model that tilp fit wrote: tilp serve MODEL")


def print_planted_rules(made: World) -> None:
    """The rules that the world was made by, and how often each holds."""
    from rich.table import Table

    table = Table(title="rules planted in this world", title_justify="left")
    table.add_column("confidence", justify="right")
    table.add_column("rule", overflow="fold")
    for rule in made.rules:
        table.add_row(f"{rule.confidence:.2f}", rule.text)
    output().print(table)
