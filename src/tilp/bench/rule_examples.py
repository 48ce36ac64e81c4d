"""Rules to read: the heaviest of some relations, each with dated facts that it was right by."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tilp.bench.schema import Count
from tilp.evaluation import Evaluation
from tilp.evaluation.evaluate import unique_labels
from tilp.explanation import Grounding, WalkedFact
from tilp.explanation.render import draw_grounding, grounding_text
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query, RuleScorer
from tilp.walks import Grounder, Step

_MOST_RULES = 200  # of a relation, that groundings are looked for
_MOST_FACTS = 300  # of a relation, that are tried for each rule


@dataclass(frozen=True)
class Examples:
    """Which rules to show.

    Attributes:
        relations: Names of relations; none for those whose answers rank best.
        best: Count of the latter.
        rules: Count of rules of each relation.
    """

    relations: tuple[str, ...] = ()
    best: Count = 4
    rules: Count = 2

    @property
    def key(self) -> str:
        """The key in the files of runs."""
        return json.dumps(asdict(self), ensure_ascii=False)


def rule_examples(
    model: TILP, graph: TemporalGraph, evaluation: Evaluation, wanted: Examples
) -> list[dict[str, Any]]:
    """Return the heaviest rules of relations, each with a grounding that leads to an answer.

    No two rules of a relation have the same body. Groundings are of facts of the evaluated split.
    """
    finder = _GroundingFinder(graph, evaluation.split, model.scorer(graph).rule_scorer)
    examples = []
    for relation in _wanted_relations(graph, evaluation, wanted):
        shown: list[tuple[str, ...]] = []
        for mined in list(model.rules(str(graph.relations.ids[relation])))[:_MOST_RULES]:
            body = tuple(str(atom) for atom in mined.rule.body)
            if body in shown:
                continue
            example = finder.example(mined, relation)
            if example is not None:
                examples.append(example)
                shown.append(body)
            if len(shown) == wanted.rules:
                break
    return examples


def _wanted_relations(graph: TemporalGraph, evaluation: Evaluation, wanted: Examples) -> list[int]:
    """Return the ids of the named relations that exist, or of those whose objects rank best."""
    names = graph.relations
    if wanted.relations:
        known = {*names.ids, *names.keys, *names.labels}
        return [names.find(name) for name in wanted.relations if name in known]
    table = evaluation.by_relation().filter(pl.col("direction") == "object")
    best = table.sort("mrr", "relation", descending=[True, False])["relation"][: wanted.best]
    shown = unique_labels(names).to_list()
    return [shown.index(name) for name in best]


class _GroundingFinder:
    """Finds facts of a split that rules were right by."""

    def __init__(self, graph: TemporalGraph, split: str, scorer: RuleScorer) -> None:
        self._graph, self._scorer = graph, scorer
        self._rows = np.asarray(graph.rows(split), np.int64)
        self._grounder = Grounder(scorer.walker)

    def example(self, mined: MinedRule, relation: int) -> dict[str, Any] | None:
        """Return a rule with a grounding, or None if it reached no answer."""
        graph = self._graph
        rows = self._rows[graph.relation[self._rows] == relation][:_MOST_FACTS]
        queries = self._scorer.fill_dates(QueryTable.of_facts(graph, rows, walked=False))
        for index, row in enumerate(rows.tolist()):
            query = queries[np.array([index])]
            walks = self._grounder(mined.rule, query, int(graph.object[row]), 1).walks
            if walks:
                return self._described(mined, row, walks[0])
        return None

    def _described(self, mined: MinedRule, row: int, walk: tuple[Step, ...]) -> dict[str, Any]:
        graph = self._graph
        facts = (WalkedFact(step.fact, graph.fact(step.fact), step.inverse) for step in walk)
        grounding = Grounding(tuple(facts))
        fact = graph.fact(row)
        dates = [graph.date_text(end)[row] for end in ("start", "end")]
        query = Query(fact.relation, fact.subject, None, *dates)
        return {
            "relation": fact.relation,
            "rule": str(mined.rule),
            "sentence": format_rule(mined.rule, Notation.SENTENCE),
            "weight": mined.weight,
            "confidence": mined.confidence,
            "support": mined.support,
            "facts": mined.facts,
            "asked": str(replace(fact, object="?")),
            "answer": fact.object,
            "grounding": grounding_text(grounding),
            "picture": draw_grounding(grounding, query, fact.object),
        }
