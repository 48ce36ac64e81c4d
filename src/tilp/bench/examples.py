"""Rules to show: the heaviest of some relations, each with dated facts that it was right by."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tilp.evaluation import Evaluation
from tilp.evaluation.evaluate import unique_labels
from tilp.explanation import Grounding, WalkedFact
from tilp.explanation.render import draw_grounding, grounding_text
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query, RuleScorer
from tilp.walks import Grounder, Step

__all__ = ["Examples", "rule_examples"]

_TRIED = 200  # rules of a relation that groundings are looked for
_ASKED = 300  # facts of a relation that are asked for each of them


@dataclass(frozen=True)
class Examples:
    """Which rules are shown.

    Attributes:
        relations: by name; none: those whose answers rank best.
        best: how many of the latter.
        rules: how many of each relation.
    """

    relations: tuple[str, ...] = ()
    best: int = 4
    rules: int = 2

    @property
    def key(self) -> str:
        """As the files of runs have it."""
        return json.dumps(asdict(self), ensure_ascii=False)


def rule_examples(
    model: TILP, graph: TemporalGraph, found: Evaluation, wanted: Examples
) -> list[dict[str, Any]]:
    """The heaviest rules of relations, no two of the same body, with a grounding each.

    A grounding is one of a fact that was asked, where the rule leads to the answer.

    Args:
        model: whose rules.
        graph: the evidence.
        found: how the facts of a split were answered.
        wanted: which rules.
    """
    scorer = model.scorer(graph)
    rules = scorer.rule_scorer
    shower = _Shower(graph, found.split, rules)
    told = []
    for number in _wanted(graph, found, wanted):
        shown: list[tuple[str, ...]] = []
        for mined in list(model.rules(str(graph.relations.ids[number])))[:_TRIED]:
            body = tuple(str(atom) for atom in mined.rule.body)
            if body in shown:
                continue
            example = shower.show(mined, number)
            if example is not None:
                told.append(example)
                shown.append(body)
            if len(shown) == wanted.rules:
                break
    return told


def _wanted(graph: TemporalGraph, found: Evaluation, wanted: Examples) -> list[int]:
    """The relations that are named, as far as there are any, or those whose objects rank best."""
    names = graph.relations
    if wanted.relations:
        known = {*names.ids, *names.keys, *names.labels}
        return [names.find(name) for name in wanted.relations if name in known]
    table = found.by_relation().filter(pl.col("direction") == "object")
    best = table.sort("mrr", "relation", descending=[True, False])["relation"][: wanted.best]
    shown = unique_labels(names).to_list()
    return [shown.index(name) for name in best]


class _Shower:
    """Finds facts that rules were right by.

    Args:
        graph: the evidence, and the facts that are asked.
        split: of the latter.
        scorer: by whose walks.
    """

    def __init__(self, graph: TemporalGraph, split: str, scorer: RuleScorer) -> None:
        self._graph, self._scorer = graph, scorer
        self._rows = np.asarray(graph.rows(split), np.int64)
        self._grounder = Grounder(scorer.walker)

    def show(self, mined: MinedRule, relation: int) -> dict[str, Any] | None:
        """A rule with its counts, in words, and a grounding; None where it reached no answer."""
        graph = self._graph
        rows = self._rows[graph.relation[self._rows] == relation][:_ASKED]
        queries = self._scorer.fill_dates(QueryTable.of_facts(graph, rows, walked=False))
        for place, row in enumerate(rows.tolist()):
            query = queries[np.array([place])]
            walks = self._grounder(mined.rule, query, int(graph.object[row]), 1).walks
            if walks:
                return self._told(mined, row, walks[0])
        return None

    def _told(self, mined: MinedRule, row: int, walk: tuple[Step, ...]) -> dict[str, Any]:
        graph = self._graph
        steps = (WalkedFact(one.fact, graph.fact(one.fact), one.inverse) for one in walk)
        grounding = Grounding(tuple(steps))
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
