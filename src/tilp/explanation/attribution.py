"""Terms of rules and of the prior."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp.explanation.ablation import ablation_effect
from tilp.explanation.types import (
    NOT_LOOKED_AT,
    Contrast,
    Contribution,
    ExplainedQuery,
    Explanation,
    Ground,
    Grounding,
    Reason,
)
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    HistoryFact,
    listed_candidates,
)
from tilp.features.describe import in_units, percent
from tilp.features.log_linear import RANDOM_WALKS
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.distributions import FittedDistributions, recurs
from tilp.features.paper.evidence import EVIDENCE_KINDS, UNDATED, Evidence, EvidenceTracer
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.graph import TemporalGraph
from tilp.rules import Notation, Rule, RuleSet, format_rule
from tilp.scoring import Query, RuleScorer, Scorer
from tilp.scoring.queries import query_table, read_queries
from tilp.scoring.rule_scorer import RuleContributions
from tilp.scoring.topk import CandidateRanks
from tilp.types import EvidenceKind
from tilp.walks import Grounder


def rule_terms(
    case: ExplainedQuery,
    scorer: RuleScorer,
    mined: RuleSet,
    grounder: Grounder,
    fired: RuleContributions,
    added: NDArray[np.float64],
) -> list[Contribution]:
    """A term for each rule that leads to the candidate.

    Args:
        case: what is asked.
        scorer: whose rules were applied.
        mined: the rules with their counts.
        grounder: finds their walks.
        fired: the rules.
        added: what each of them adds to the score.
    """
    settled = scorer.fill_dates(case.queries)

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
        terms.append(Contribution(("rule", number), reason, ground(rule)))
    return terms


def prior_term(case: ExplainedQuery, scorer: RuleScorer, score: float) -> Contribution:
    """The term of the prior: how often the candidate is an answer at all."""
    _, candidate = case.listed
    count, total = (
        int(one[0]) for one in scorer.prior.counts(case.queries.directed_relation, candidate)
    )
    end = "object" if case.head < len(case.graph.relations) else "subject"
    words = (
        f"asked for without any evidence: {count:,} of {total:,} {case.relation(case.head)} facts "
        f"have it as their {end}"
    )
    return Contribution(("prior",), Reason("prior", score, words))


_MANNER = "walks of any facts, longer than rules and likelier the nearer in time, lead to it"


def fact_terms(case: ExplainedQuery, scorer: LogLinearScorer) -> list[Contribution]:
    """A term for each fact of the candidate that weighs anything, by kind and relation."""
    edges = scorer.random_walks.edges
    n_relations = len(case.graph.relations)
    terms = []
    for spoken, weight in scorer.history_contributions(case.queries, case.candidate):
        if not weight.any():
            continue
        heaviest = [spoken.features[place] for place in np.argsort(-np.abs(weight), kind="stable")]
        said = heaviest[: np.count_nonzero(weight)]
        reason = Reason(
            kind=HISTORY_KINDS[spoken.kind],
            score=float(weight.sum()),
            words=_said_of(case, spoken, scorer.history, said),
            walks=1,
        )
        fact = case.walked([(int(edges.fact[spoken.edge]), spoken.relation >= n_relations)])
        terms.append(Contribution((reason.kind, spoken.relation), reason, _only(fact)))
    return terms


def walk_term(case: ExplainedQuery, scorer: LogLinearScorer, added: float) -> Contribution:
    """The term of soft walks, with the likeliest walk of each length."""
    walks = scorer.random_walks
    settled = scorer.rule_scorer.fill_dates(case.queries)
    size = len(case.graph.relations)

    def ground(n: int) -> tuple[Grounding, ...]:
        likeliest = walks.likeliest_walks(settled, 0, case.candidate)
        reached = float(walks.probabilities(listed_candidates(settled, *case.listed))[0])
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

    return Contribution((RANDOM_WALKS,), Reason(RANDOM_WALKS, added, _MANNER), ground)


def _only(fact: Grounding) -> Ground:
    return lambda _: (fact,)


def _said_of(
    case: ExplainedQuery, spoken: HistoryFact, facts: CandidateHistory, words: list[int]
) -> str:
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
    if HISTORY_KINDS[spoken.kind] != HISTORY_KINDS[0]:
        whom += f" {'to' if side == 'of' else 'of'} the subject"
    clauses = [facts.clause(word, case.graph.unit) for word in words]
    *first, last = clauses
    said = f"{', '.join(first)} and {last}" if first else last
    return f"{which} {relation} {whom} {said}"


_WHERE = {
    EvidenceKind.BETWEEN: "between candidate and subject",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_WHOM = {EvidenceKind.BETWEEN: "with the subject", EvidenceKind.OTHERS: "with another entity"}


def paper_terms(
    case: ExplainedQuery, scorer: PaperFeatureScorer, added: dict[str, float]
) -> list[Contribution]:
    """A term for each feature and piece of evidence.

    Args:
        case: what is asked.
        scorer: whose features are looked at.
        added: what each kind of feature adds, by name.
    """
    if not scorer.uses_features(case.queries, case.applied, case.candidate):
        words = "rules rank it too low for features to be looked at; it counts as without evidence"
        score = scorer.score_without_evidence(case.queries)
        return [Contribution((NOT_LOOKED_AT,), Reason(NOT_LOOKED_AT, score, words))]
    settled = scorer.rule_scorer.fill_dates(case.queries)
    features = scorer.features
    tracer = EvidenceTracer(
        features.graph, features.walked, features.max_length, settled, case.candidate
    )

    def ground(kind: int, relation: int, difference: int | None) -> Ground:
        return lambda _: (case.walked(tracer(kind, relation, difference)),)

    fitted = features.distributions
    evidence, dated, of_pieces = scorer.piece_contributions(case.queries, case.candidate)
    terms = []
    n_relations = len(case.graph.relations)
    asked = (case.head + n_relations) % (2 * n_relations)
    again = recurs(settled, evidence)[0]
    for kind, recurring in enumerate(again.tolist()):
        probability = float(fitted.recurrence.probability[kind, case.head])
        words = _recurs(case, kind, recurring, probability)
        reason = Reason(
            "recurrence", added[f"recurrence_{EVIDENCE_KINDS[kind]}"], words, walks=recurring
        )
        grounded = ground(kind, asked, _closest(evidence, kind, asked)) if recurring else None
        terms.append(Contribution(("recurrence", kind), reason, grounded))
    places = fitted.indices(dated.kind, dated.query_relation, dated.relation)
    for number, place in enumerate(places.tolist()):
        kind, relation = int(dated.kind[number]), int(dated.relation[number])
        apart = int(dated.difference[number])
        for feature, words in (
            ("order", _order(case, fitted, kind, relation, place, apart)),
            ("pair", _pair(case, fitted, kind, relation, place, apart)),
        ):
            reason = Reason(feature, float(of_pieces[feature][number]), words, walks=1)
            grounded = ground(kind, relation, apart)
            terms.append(Contribution((feature, kind, relation), reason, grounded))
    return terms


def _closest(evidence: Evidence, kind: int, relation: int) -> int | None:
    """The difference of the fact by which a relation recurs; None where it has no time."""
    (place,) = np.flatnonzero((evidence.kind == kind) & (evidence.relation == relation))
    difference = int(evidence.difference[place])
    return None if difference == UNDATED else difference


def _recurs(case: ExplainedQuery, kind: int, recurring: bool, probability: float) -> str:
    relation, whom = case.relation(case.head), _WHOM[EvidenceKind(EVIDENCE_KINDS[kind])]
    has = f"the candidate has {'another' if recurring else 'no other'} {relation} {whom}"
    return f"{has}; {percent(probability)} of answers have one"


def _order(
    case: ExplainedQuery,
    fitted: FittedDistributions,
    kind: int,
    relation: int,
    place: int,
    apart: int,
) -> str:
    later = float(fitted.order.probability[place])
    side, share = ("after", later) if apart > 0 else ("no later than", 1 - later)
    return f"{_named(case, kind, relation)} starts {side} the query; {percent(share)} do"


def _pair(
    case: ExplainedQuery,
    fitted: FittedDistributions,
    kind: int,
    relation: int,
    place: int,
    apart: int,
) -> str:
    usual = fitted.interval[place]
    length = (
        f"{usual.gaussian.mean:,.1f} ± {usual.gaussian.deviation:,.1f}"
        if usual.is_gaussian
        else f"{1 / usual.exponential.rate:,.1f} on average"
    )
    return f"{_named(case, kind, relation)} starts {_away(case, apart)} the query; usual {length}"


def _away(case: ExplainedQuery, apart: int) -> str:
    if not apart:
        return "with"
    size = in_units(f"{abs(apart):,}", case.graph.unit)
    if abs(apart) == 1:
        size = size.removesuffix("s")
    return f"{size} {'after' if apart > 0 else 'before'}"


def _named(case: ExplainedQuery, kind: int, relation: int) -> str:
    name = case.relation(relation)
    if relation % len(case.graph.relations) == case.head % len(case.graph.relations):
        name = f"another {name}"
    if EVIDENCE_KINDS[kind] == EvidenceKind.OTHERS:
        return f"{name} {'of' if relation < len(case.graph.relations) else 'to'} the candidate"
    return f"{name} {_WHERE[EvidenceKind(EVIDENCE_KINDS[kind])]}"


_LEAST = 1e-300  # so that nothing is divided by nothing


class Explainer:
    """Explains the scores of a scorer.

    Args:
        scorer: of any kind of model.
        rules: with their counts; those of the scorer are among them.
        graph: the facts as they were given, whose train split the scorer has as evidence.
    """

    def __init__(self, scorer: Scorer, rules: RuleSet, graph: TemporalGraph) -> None:
        self.scorer = scorer
        self._rules = rules
        self._graph = graph
        self._by_rules = scorer.rule_scorer

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
        applied = self._by_rules.apply_rules(table)
        scores = self.scorer.score(table, applied)
        standing = CandidateRanks.of(self._graph, table, scores)
        winner = standing.winner
        best: list[Contribution] | None = None
        found = []
        for candidate in candidates:
            number = winner if candidate is None else entities.find(candidate)
            case = ExplainedQuery(self._graph, table, applied, scores, number)
            terms = self._terms(case)
            lacks: list[tuple[Contribution, float, float]] = []
            if number != winner:
                best = best or self._terms(
                    ExplainedQuery(self._graph, table, applied, scores, winner)
                )
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
                    fall=ablation_effect(self.scorer, case, score, reasons) if fall else None,
                    winner=entities.label(winner),
                    lacks=tuple(
                        Contrast(one.grounded(groundings if place < shown else 0), *both)
                        for place, (one, *both) in enumerate(lacks)
                    ),
                    top=top,
                )
            )
        return found

    def _terms(self, case: ExplainedQuery) -> list[Contribution]:
        """All that a candidate's score is the sum of."""
        scorer = self.scorer
        if isinstance(scorer, LogLinearScorer) and case.candidate not in case.scores.candidate:
            words = "neither rules nor the prior lead to it, and nothing else was looked at"
            return [Contribution((NOT_LOOKED_AT,), Reason(NOT_LOOKED_AT, 0.0, words))]
        found = scorer.contributions(case.queries, *case.listed, case.applied)
        added = {name: float(term[0]) for name, term in found.items()}
        fired = self._by_rules.rule_contributions(case.queries, case.applied, case.candidate)
        of_rules = added["rules"] * fired.score / max(fired.score.sum(), _LEAST)
        if isinstance(scorer, LogLinearScorer):
            of_rules += scorer.rule_evidence(fired)
        terms = rule_terms(case, self._by_rules, self._rules, self._grounder, fired, of_rules)
        terms.append(prior_term(case, self._by_rules, added["prior"]))
        if isinstance(scorer, LogLinearScorer):
            terms += fact_terms(case, scorer)
            terms.append(walk_term(case, scorer, added[RANDOM_WALKS]))
        elif isinstance(scorer, PaperFeatureScorer):
            terms += paper_terms(case, scorer, added)
        return [one for one in terms if one.score]


def _lacks(
    winner: list[Contribution], candidate: list[Contribution]
) -> list[tuple[Contribution, float, float]]:
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
