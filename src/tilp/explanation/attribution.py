"""`Explainer`: attribute the score of a candidate, and contrast it with the best one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from tilp.explanation import types
from tilp.explanation.types import Contrast, Explanation, Grounding, Reason
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import known_answers
from tilp.rules import RuleSet
from tilp.scoring import Query, Scorer
from tilp.scoring.queries import query_table, read_queries
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution

_Contrasted = tuple[Contribution, float, float]  # with its scores of winner and candidate


class Explainer:
    """Explains the scores of a scorer; the rules include its rules, train is its evidence."""

    def __init__(self, scorer: Scorer, rules: RuleSet, graph: TemporalGraph) -> None:
        self._scorer, self._rules, self._graph = scorer, rules, graph

    def explain(
        self,
        query: Query,
        candidate: str | None = None,
        *,
        groundings: int = 3,
        max_reasons: int | None = 20,
        ablation: bool = True,
    ) -> Explanation:
        """Explain the score and rank of a candidate; the best one by default.

        The first `max_reasons` reasons and contrasts have up to `groundings` groundings.
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
        entities, n_entities = self._graph.entities, len(self._graph.entities)
        applied = self._scorer.rule_scorer.apply_rules(table)
        listed = self._scorer.score(table, applied)
        scores = np.full(n_entities, listed.defaults[0])
        scores[listed.candidate] = listed.score
        shares = listed.shares(np.zeros(n_entities, np.int64), scores, n_entities)
        winner = int(np.argmax(scores))
        _, known = known_answers(self._graph, table).at_query_time()
        of_winner: list[Contribution] | None = None
        explanations = []
        for name in candidates:
            candidate = winner if name is None else entities.find(name)
            contributions = self._contributions(table, candidate, applied)
            contrasts: list[_Contrasted] = []
            if candidate != winner:
                of_winner = of_winner or self._contributions(table, winner, applied)
                contrasts = _contrasts(of_winner, contributions)
            contributions.sort(key=lambda part: -abs(part.score))
            # Only what is shown has groundings.
            shown = len(contributions) + len(contrasts) if max_reasons is None else max_reasons
            reasons = tuple(
                self._reason(part, groundings if index < shown else 0)
                for index, part in enumerate(contributions)
            )
            score = float(scores[candidate])
            before = (scores > score).sum() + (scores[:candidate] == score).sum()
            explanations.append(
                Explanation(
                    query=query,
                    candidate=entities.label(candidate),
                    rank=1 + int(before),
                    score=score,
                    share=float(shares[candidate]),
                    known=bool(np.isin(candidate, known)),
                    reasons=reasons,
                    ablation=self._ablate(table, candidate, score, reasons) if ablation else None,
                    winner=entities.label(winner),
                    contrasts=tuple(
                        Contrast(self._reason(part, groundings if index < shown else 0), *both)
                        for index, (part, *both) in enumerate(contrasts)
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
        groundings = []
        for path in part.find_facts(n) if part.find_facts is not None and n > 0 else ():
            facts = (types.WalkedFact(row, self._graph.fact(row), inv) for row, inv in path.steps)
            groundings.append(Grounding(tuple(facts), path.share))
        rule = None if part.rule is None else self._rules[part.rule]
        walks = max(part.walks, len(groundings))
        return Reason(part.kind, part.score, part.text, tuple(groundings), walks, rule)

    def _ablate(
        self, query: QueryTable, candidate: int, score: float, reasons: Iterable[Reason]
    ) -> types.AblationEffect | None:
        """Score a candidate again, all on the evidence without the facts of its top grounding."""
        top = top_grounding(reasons)
        if top is None:
            return None
        grounding, attributed = top
        parts = self._scorer.without(grounding.facts).contributions(
            query, np.array([0, 1]), np.array([candidate], np.int32)
        )
        left = sum(float(part[0]) for part in parts.values())
        share = attributed / score if score > 0 else 0.0
        return types.AblationEffect(grounding, share, left, score - left)


def top_grounding(reasons: Iterable[Reason]) -> tuple[Grounding, float] | None:
    """Return the grounding to whose facts most of a score is attributed, and how much that is.

    A walk has an equal share of its reason's score, or a share in proportion to its probability
    where walks have one. Shares of groundings with the same facts are added up, in whichever
    order and for whichever reason the facts are walked; of equal sums the first wins. Walks that
    a reason does not list count nothing. None if no grounding has a positive sum.
    """
    attributed: dict[frozenset[int], float] = defaultdict(float)
    first: dict[frozenset[int], Grounding] = {}
    for reason in reasons:
        for grounding in reason.groundings:
            attributed[grounding.facts] += reason.score * grounding.share_of(reason.walks)
            first.setdefault(grounding.facts, grounding)
    facts = max(attributed, key=attributed.__getitem__, default=frozenset())
    return (first[facts], attributed[facts]) if attributed[facts] > 0 else None


def _contrasts(winner: list[Contribution], candidate: list[Contribution]) -> list[_Contrasted]:
    """Return the contributions to either score, those that favour the winner most first."""
    best = {part.key: part for part in winner}
    own = {part.key: part for part in candidate}
    both = [
        (part, best[key].score if key in best else 0.0, own[key].score if key in own else 0.0)
        for key, part in {**own, **best}.items()
    ]
    return sorted(both, key=lambda item: item[2] - item[1])
