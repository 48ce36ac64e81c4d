"""`tilp demo`: every step once, on the synthetic world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilp.cli import options
from tilp.cli.console import output, print_table

if TYPE_CHECKING:
    from tilp.datasets import World
    from tilp.model import TILP

_SHOWN_FACTS = 5
_SHOWN_ANSWERS = 5
_SHOWN_REASONS = 3
_MAX_LENGTH = 3
_MINED_FACTS = 200
_MAX_RULES = 200
_QUERY_RELATION = "livesIn"


def demo_command(size: options.WorldSizeOption = 10_000, seed: options.SeedOption = 0) -> None:
    """Show what tilp does on a small synthetic world, from facts to explanations.

    In this world people are born, study, play for teams, win prizes, marry, move and die, by
    known rules, so that you can compare what is learned with the truth.
    """
    from tilp.cli.data import print_planted_rules
    from tilp.cli.fit import fit_with_progress
    from tilp.cli.inspect import print_inspection
    from tilp.data_quality import inspect
    from tilp.datasets import world
    from tilp.model import TILP

    console = output()
    console.rule("A world of dated facts")
    generated = world(seed, size)
    graph = generated.graph
    for row in range(0, len(graph), len(graph) // _SHOWN_FACTS):
        console.print(str(graph.fact(row)))
    console.print(f"… {len(graph):,} facts in all, seed {seed}.\n")
    print_planted_rules(generated)
    console.rule("What is in it, and what is wrong with it: tilp inspect")
    print_inspection(inspect(graph), f"world, seed {seed}")
    console.rule("Learned rules and their weights: tilp fit")
    model = TILP.from_options(
        max_length=_MAX_LENGTH, sample=_MINED_FACTS, max_rules=_MAX_RULES, random_state=seed
    )
    fit_with_progress(model, graph)
    _show_rules(generated, model)
    console.rule("How well they predict held-out facts: tilp evaluate")
    _show_evaluation(model)
    console.rule("A query, and the reasons for its answer: tilp predict, tilp explain")
    _show_prediction(model)


def _show_rules(world: World, model: TILP) -> None:
    """Show the best rule for each relation that has planted rules."""
    from tilp.cli.rules import print_rules
    from tilp.rules import FORMS
    from tilp.types import Grain

    form = FORMS[Grain.PAIRS]  # the form of the planted rules
    relations = list(dict.fromkeys(rule.relation for rule in world.rules))
    best = []
    for relation in relations:
        for mined in model.rules(relation).sort():
            if form.codes(mined.rule.length, mined.rule.constraints) is not None:
                best.append(mined)
                break
    title = f"the best for each of {len(relations)} relations, of {len(model.rules()):,} learned"
    print_rules(best, title)
    planted = {rule.text for rule in world.rules}
    count = sum(str(mined.rule) in planted for mined in best)
    output().print(f"{count} of these {len(best)} were planted.\n")


def _show_evaluation(model: TILP) -> None:
    """Show the main metrics, beside those of a popularity baseline."""
    from tilp.evaluation import evaluate, popularity
    from tilp.scoring.scores import ScoreFunction

    scorers: dict[str, ScoreFunction] = {
        "this model": model.scorer(),
        "popularity baseline": popularity(model.graph),
    }
    rows = []
    for name, scorer in scorers.items():
        metrics = evaluate(scorer, model.graph, protocols=["enumerate"]).metrics()
        figures = (metrics.mrr, metrics.hits_at_1, metrics.hits_at_10)
        rows.append((name, *(f"{figure:.3f}" for figure in figures)))
    titles = ("MRR", "hits@1", "hits@10")
    print_table("test split, protocol enumerate, average ties", ("", *titles), rows, right=titles)


def _show_prediction(model: TILP) -> None:
    """Predict the object of a test fact, and explain the best answer."""
    from tilp.cli.explain import print_explanation
    from tilp.cli.predict import print_predictions
    from tilp.scoring import Query

    graph = model.graph
    rows = graph.rows("test")
    row = next(row for row in rows if graph.fact(row).relation == _QUERY_RELATION)
    fact = graph.fact(row)
    dates = graph.frame("test").row(row - rows.start, named=True)
    query = Query(fact.relation, fact.subject, None, dates["start"], dates["end"])
    print_predictions(model.predict(query, k=_SHOWN_ANSWERS))
    output().print(f"The fact that was held out: {fact}\n")
    print_explanation(model.explain(query, groundings=1, max_reasons=_SHOWN_REASONS))
    output().print("\nThe same in the browser, for a model that tilp fit wrote: tilp serve MODEL")
