"""Terms of rules and of the prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.explanation.parts import Grounding, Reason
from tilp.explanation.terms import Case, Ground, Term
from tilp.ranking.scoring import Fired, RuleScorer
from tilp.rules import Notation, Rule, RuleSet, format_rule
from tilp.walks import Grounder

__all__ = ["prior_term", "rule_terms"]


def rule_terms(
    case: Case,
    scorer: RuleScorer,
    mined: RuleSet,
    grounder: Grounder,
    fired: Fired,
    added: NDArray[np.float64],
) -> list[Term]:
    """A term for each rule that leads to the candidate.

    Args:
        case: what is asked.
        scorer: whose rules were applied.
        mined: the rules with their counts.
        grounder: finds their walks.
        fired: the rules.
        added: what each of them adds to the score.
    """
    settled = scorer.settled(case.queries)

    def ground(rule: Rule) -> Ground:
        def found(n: int) -> tuple[Grounding, ...]:
            walks = grounder(rule, settled, case.candidate, n).walks
            return tuple(
                case.walked((step.fact, step.inverse) for step in walk) for walk in walks[:n]
            )

        return found

    terms = []
    for place, number in enumerate(fired.rule.tolist()):
        rule = scorer.rules[number]
        reason = Reason(
            kind="rule",
            score=float(added[place]),
            words=format_rule(rule, Notation.SENTENCE),
            walks=int(fired.arriving[place]),
            rule=mined[rule],
        )
        terms.append(Term(("rule", number), reason, ground(rule)))
    return terms


def prior_term(case: Case, scorer: RuleScorer, score: float) -> Term:
    """The term of the prior: how often the candidate is an answer at all."""
    _, candidate = case.listed
    count, total = (int(one[0]) for one in scorer.prior.counts(case.queries.head, candidate))
    end = "object" if case.head < len(case.graph.relations) else "subject"
    words = (
        f"asked for without any evidence: {count:,} of {total:,} {case.relation(case.head)} facts "
        f"have it as their {end}"
    )
    return Term(("prior",), Reason("prior", score, words))
