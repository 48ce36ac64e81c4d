"""Terms of the features that `full` has: the candidate's own facts, and soft walks."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilp.explanation.parts import Grounding, Reason
from tilp.explanation.terms import Case, Ground, Term
from tilp.features.joint import COLUMNS
from tilp.features.own_facts import KINDS, OwnFacts, SpokenOf, asked_at
from tilp.ranking import JointScorer

__all__ = ["fact_terms", "walk_terms"]

_NEAR, _FAR = COLUMNS[1:]
_MANNER = {
    _NEAR: "walks of any facts, as long as rules and likelier the nearer in time, lead to it",
    _FAR: "longer walks of any facts, likelier the nearer in time, lead to it",
}


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


def walk_terms(case: Case, scorer: JointScorer, added: dict[str, float]) -> list[Term]:
    """The terms of near and of soft walks, by name, with the likeliest walk of each length."""
    walks = scorer.walks
    settled = scorer.rules.settled(case.queries)
    size = len(case.graph.relations)

    @cache
    def likeliest() -> list[tuple[NDArray[np.int64], float]]:
        return walks.strongest(settled, 0, case.candidate)

    @cache
    def chances() -> NDArray[np.float64]:
        return walks.chances(asked_at(settled, *case.listed))

    def ground(near: bool) -> Ground:
        def found(n: int) -> tuple[Grounding, ...]:
            of_kind = [one for one in likeliest() if (len(one[0]) <= walks.near) == near]
            reached = chances()[0, 0 if near else 1]
            return tuple(
                case.walked(
                    (
                        (int(walks.edges.fact[edge]), bool(walks.edges.relation[edge] >= size))
                        for edge in walk
                    ),
                    share=chance / float(reached),
                )
                for walk, chance in of_kind[:n]
            )

        return found

    return [
        Term((kind,), Reason(kind, score, _MANNER[kind]), ground(kind == _NEAR))
        for kind, score in added.items()
        if score
    ]


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
