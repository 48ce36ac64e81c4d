"""`Explainer`: finds the reasons behind one candidate of a query, which add up to its score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tilp.explanation.falling import fall_without
from tilp.explanation.of_features import fact_terms, walk_term
from tilp.explanation.of_paper import paper_terms
from tilp.explanation.of_rules import prior_term, rule_terms
from tilp.explanation.parts import Explanation, Lack, Reason
from tilp.explanation.terms import NOT_LOOKED_AT, Case, Term
from tilp.features.joint import SOFT_WALKS
from tilp.graph import TemporalGraph
from tilp.ranking import JointScorer, ModelScorer, PaperScorer, Query, rules_of
from tilp.ranking.queries import query_table, read_queries
from tilp.ranking.standing import Standing
from tilp.rules import RuleSet
from tilp.walks import Grounder

__all__ = ["Explainer"]

_LEAST = 1e-300  # so that nothing is divided by nothing


class Explainer:
    """Explains the scores of a scorer.

    Args:
        scorer: of any kind of model.
        rules: with their counts; those of the scorer are among them.
        graph: the facts as they were given, whose train split the scorer has as evidence.
    """

    def __init__(self, scorer: ModelScorer, rules: RuleSet, graph: TemporalGraph) -> None:
        self.scorer = scorer
        self._rules = rules
        self._graph = graph
        self._by_rules = rules_of(scorer)

    @cached_property
    def _grounder(self) -> Grounder:
        return Grounder(self._by_rules.walker)

    def explain(
        self,
        query: Query,
        candidate: str | None = None,
        *,
        groundings: int = 3,
        top: int | None = 20,
        fall: bool = True,
    ) -> Explanation:
        """Why a candidate is where it is among the answers of a query.

        Args:
            query: for the subject or the object of a fact.
            candidate: the name of the other end; the best one by default.
            groundings: how many of each reason at the most.
            top: of how many reasons, and of how many lacks, groundings are looked for, the
                largest first; None for all.
            fall: whether the score is computed again without the facts of the top grounding.

        Raises:
            TilpError: an unknown name, with the nearest known ones; a date that cannot be read.
        """
        (found,) = self.explain_each(query, [candidate], groundings=groundings, top=top, fall=fall)
        return found

    def explain_each(
        self,
        query: Query,
        candidates: Sequence[str | None],
        *,
        groundings: int = 3,
        top: int | None = 20,
        fall: bool = True,
    ) -> list[Explanation]:
        """Why each of some candidates is where it is; the arguments are those of `explain`."""
        (asked,) = read_queries([query])
        table = query_table(self._graph, [asked])
        entities = self._graph.entities
        applied = self._by_rules.apply(table)
        scores = self.scorer.score(table, applied)
        standing = Standing.of(self._graph, table, scores)
        winner = standing.winner
        best: list[Term] | None = None
        found = []
        for candidate in candidates:
            number = winner if candidate is None else entities.find(candidate)
            case = Case(self._graph, table, applied, scores, number)
            terms = self._terms(case)
            lacks: list[tuple[Term, float, float]] = []
            if number != winner:
                best = best or self._terms(Case(self._graph, table, applied, scores, winner))
                lacks = _lacks(best, terms)
            shown = len(terms) + len(lacks) if top is None else top
            score = float(standing.score[number])
            reasons = tuple(
                one.grounded(groundings if place < shown else 0)
                for place, one in enumerate(sorted(terms, key=lambda one: -abs(one.score)))
            )
            found.append(
                Explanation(
                    query=asked,
                    candidate=entities.label(number),
                    rank=standing.rank(number),
                    score=score,
                    share=float(standing.share[number]),
                    known=number in standing.known,
                    reasons=reasons,
                    fall=fall_without(self.scorer, case, score, reasons) if fall else None,
                    winner=entities.label(winner),
                    lacks=tuple(
                        Lack(one.grounded(groundings if place < shown else 0), *both)
                        for place, (one, *both) in enumerate(lacks)
                    ),
                    top=top,
                )
            )
        return found

    def _terms(self, case: Case) -> list[Term]:
        """All that a candidate's score is the sum of."""
        scorer = self.scorer
        if isinstance(scorer, JointScorer) and case.candidate not in case.scores.candidate:
            words = "neither rules nor the prior lead to it, and nothing else was looked at"
            return [Term((NOT_LOOKED_AT,), Reason(NOT_LOOKED_AT, 0.0, words))]
        found = scorer.terms(case.queries, *case.listed, case.applied)
        added = {name: float(term[0]) for name, term in found.items()}
        fired = self._by_rules.fired(case.queries, case.applied, case.candidate)
        of_rules = added["rules"] * fired.score / max(fired.score.sum(), _LEAST)
        if isinstance(scorer, JointScorer):
            of_rules += scorer.evidence_of(fired)
        terms = rule_terms(case, self._by_rules, self._rules, self._grounder, fired, of_rules)
        terms.append(prior_term(case, self._by_rules, added["prior"]))
        if isinstance(scorer, JointScorer):
            terms += fact_terms(case, scorer)
            terms.append(walk_term(case, scorer, added[SOFT_WALKS]))
        elif isinstance(scorer, PaperScorer):
            terms += paper_terms(case, scorer, added)
        return [one for one in terms if one.score]


def _lacks(winner: list[Term], candidate: list[Term]) -> list[tuple[Term, float, float]]:
    """The terms of either, with what each adds to both, where the winner gains most first."""
    best = {one.key: one for one in winner}
    own = {one.key: one for one in candidate}
    both = [
        (
            term,
            best[key].score if key in best else 0.0,
            own[key].score if key in own else 0.0,
        )
        for key, term in {**own, **best}.items()
    ]
    return sorted(both, key=lambda one: one[2] - one[1])
