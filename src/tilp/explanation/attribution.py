"""`Explainer`: attribute the score of a candidate, and contrast it with the best one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilp.explanation.ablation import ablation_effect
from tilp.explanation.types import Contrast, Explanation, Grounding, Reason, WalkedFact
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import known_answers
from tilp.rules import RuleSet
from tilp.scoring import Query, Scorer, Scores
from tilp.scoring.queries import query_table, read_queries
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution


class Explainer:
    """Explains the scores of a scorer.

    Args:
        scorer: Of any model.
        rules: The mined rules with their counts; includes those of the scorer.
        graph: The facts as they were given, whose train split is the scorer's evidence.
    """

    def __init__(self, scorer: Scorer, rules: RuleSet, graph: TemporalGraph) -> None:
        self._scorer = scorer
        self._rules = rules
        self._graph = graph

    def explain(
        self,
        query: Query,
        candidate: str | None = None,
        *,
        groundings: int = 3,
        max_reasons: int | None = 20,
        ablation: bool = True,
    ) -> Explanation:
        """Explain the score and rank of a candidate.

        Args:
            query: For the subject or the object of a fact.
            candidate: Name of the candidate; the best one by default.
            groundings: Maximal number of groundings of each reason.
            max_reasons: Number of reasons, and of contrasts, with groundings, the largest first;
                None for all.
            ablation: Also score the candidate without the facts of the top grounding.

        Raises:
            TilpError: An unknown name, with the nearest known ones; a date that cannot be read.
        """
        (explanation,) = self.explain_each(
            query, [candidate], groundings=groundings, max_reasons=max_reasons, ablation=ablation
        )
        return explanation

    def explain_each(
        self,
        query: Query,
        candidates: Sequence[str | None],
        *,
        groundings: int = 3,
        max_reasons: int | None = 20,
        ablation: bool = True,
    ) -> list[Explanation]:
        """Explain several candidates of a query; for the arguments see `explain`."""
        (query,) = read_queries([query])
        table = query_table(self._graph, [query])
        entities = self._graph.entities
        applied = self._scorer.rule_scorer.apply_rules(table)
        ranks = _CandidateRanks(self._graph, table, self._scorer.score(table, applied))
        of_winner: list[Contribution] | None = None
        explanations = []
        for name in candidates:
            candidate = ranks.winner if name is None else entities.find(name)
            contributions = self._contributions(table, candidate, applied)
            contrasts: list[tuple[Contribution, float, float]] = []
            if candidate != ranks.winner:
                of_winner = of_winner or self._contributions(table, ranks.winner, applied)
                contrasts = _contrasts(of_winner, contributions)
            contributions.sort(key=lambda part: -abs(part.score))
            # Only what is shown has groundings.
            shown = len(contributions) + len(contrasts) if max_reasons is None else max_reasons
            reasons = tuple(
                self._reason(part, groundings if index < shown else 0)
                for index, part in enumerate(contributions)
            )
            score = float(ranks.score[candidate])
            effect = None
            if ablation:
                effect = ablation_effect(self._scorer, table, candidate, score, reasons)
            explanations.append(
                Explanation(
                    query=query,
                    candidate=entities.label(candidate),
                    rank=ranks.rank(candidate),
                    score=score,
                    share=float(ranks.share[candidate]),
                    known=candidate in ranks.known,
                    reasons=reasons,
                    ablation=effect,
                    winner=entities.label(ranks.winner),
                    contrasts=tuple(
                        Contrast(self._reason(part, groundings if index < shown else 0), *scores)
                        for index, (part, *scores) in enumerate(contrasts)
                    ),
                    max_reasons=max_reasons,
                )
            )
        return explanations

    def _contributions(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        contributions = self._scorer.attribute_score(query, candidate, applied)
        return [part for part in contributions if part.score or part.kind == NOT_SCORED]

    def _reason(self, part: Contribution, n: int) -> Reason:
        """Return a contribution as a reason with up to n groundings."""
        paths = part.find_facts(n) if part.find_facts is not None and n > 0 else ()
        groundings = tuple(
            Grounding(
                tuple(WalkedFact(fact, self._graph.fact(fact), inv) for fact, inv in path.steps),
                path.share,
            )
            for path in paths
        )
        rule = None if part.rule is None else self._rules[part.rule]
        walks = max(part.walks, len(groundings))
        return Reason(part.kind, part.score, part.text, groundings, walks, rule)


def _contrasts(
    winner: list[Contribution], candidate: list[Contribution]
) -> list[tuple[Contribution, float, float]]:
    """Return the contributions to either score, each with both of its values.

    Those that favour the winner most come first.
    """
    best = {part.key: part for part in winner}
    own = {part.key: part for part in candidate}
    both = [
        (part, best[key].score if key in best else 0.0, own[key].score if key in own else 0.0)
        for key, part in {**own, **best}.items()
    ]
    return sorted(both, key=lambda item: item[2] - item[1])


class _CandidateRanks:
    """Score, share and rank of every entity as a candidate of a single query."""

    def __init__(self, graph: TemporalGraph, query: QueryTable, scores: Scores) -> None:
        n = len(graph.entities)
        self.score = np.full(n, scores.defaults[0])
        self.score[scores.candidate] = scores.score
        self.share = scores.shares(np.zeros(n, np.int64), self.score, n)
        self.winner = int(np.argmax(self.score))
        _, known = known_answers(graph, query).at_the_time()
        self.known = frozenset(known.tolist())

    def rank(self, entity: int) -> int:
        """Return the rank, from 1; equal scores in the order of entities."""
        score = self.score[entity]
        return 1 + int((self.score > score).sum() + (self.score[:entity] == score).sum())
