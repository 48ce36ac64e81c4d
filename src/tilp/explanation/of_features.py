"""Terms of the features that `full` has: the candidate's own facts, and soft walks."""

from __future__ import annotations

import numpy as np

from tilp.explanation.parts import Grounding, Reason
from tilp.explanation.terms import Case, Ground, Term
from tilp.features.joint import SOFT_WALKS
from tilp.features.own_facts import KINDS, OwnFacts, SpokenOf, asked_at
from tilp.ranking import JointScorer

__all__ = ["fact_terms", "walk_term"]

_MANNER = "walks of any facts, longer than rules and likelier the nearer in time, lead to it"


def fact_terms(case: Case, scorer: JointScorer) -> list[Term]:
    """A term for each fact of the candidate that weighs anything, by kind and relation."""
    edges = scorer.walks.edges
    n_relations = len(case.graph.relations)
    terms = []
    for spoken, weight in scorer.facts_of(case.queries, case.candidate):
        if not weight.any():
            continue
        heaviest = [spoken.words[place] for place in np.argsort(-np.abs(weight), kind="stable")]
        said = heaviest[: np.count_nonzero(weight)]
        reason = Reason(
            kind=KINDS[spoken.kind],
            score=float(weight.sum()),
            words=_said_of(case, spoken, scorer.facts, said),
            walks=1,
        )
        fact = case.walked([(int(edges.fact[spoken.edge]), spoken.relation >= n_relations)])
        terms.append(Term((reason.kind, spoken.relation), reason, _only(fact)))
    return terms


def walk_term(case: Case, scorer: JointScorer, added: float) -> Term:
    """The term of soft walks, with the likeliest walk of each length."""
    walks = scorer.walks
    settled = scorer.rules.settled(case.queries)
    size = len(case.graph.relations)

    def ground(n: int) -> tuple[Grounding, ...]:
        likeliest = walks.strongest(settled, 0, case.candidate)
        reached = float(walks.chances(asked_at(settled, *case.listed))[0])
        return tuple(
            case.walked(
                (
                    (int(walks.edges.fact[edge]), bool(walks.edges.relation[edge] >= size))
                    for edge in walk
                ),
                share=chance / reached,
            )
            for walk, chance in likeliest[:n]
        )

    return Term((SOFT_WALKS,), Reason(SOFT_WALKS, added, _MANNER), ground)


def _only(fact: Grounding) -> Ground:
    return lambda _: (fact,)


def _said_of(case: Case, spoken: SpokenOf, facts: OwnFacts, words: list[int]) -> str:
    """A fact of the candidate and what is said of it: `another playsFor of the candidate ends …`.

    The candidate is the subject of a fact `of` it, and the object of one `to` it.
    """
    n_relations = len(case.graph.relations)
    relation = case.relation(spoken.relation)
    asked_from_candidate = (case.head + n_relations) % (2 * n_relations)
    article = "an" if relation[:1].lower() in "aeiou" else "a"
    which = "another" if spoken.relation == asked_from_candidate else article
    side = "of" if spoken.relation < n_relations else "to"
    whom = f"{side} the candidate"
    if KINDS[spoken.kind] != KINDS[0]:
        whom += f" {'to' if side == 'of' else 'of'} the subject"
    clauses = [facts.clause(word, case.graph.unit) for word in words]
    *first, last = clauses
    said = f"{', '.join(first)} and {last}" if first else last
    return f"{which} {relation} {whom} {said}"
