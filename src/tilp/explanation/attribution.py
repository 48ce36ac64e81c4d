"""`Explainer`: attribute the score of a candidate to evidence, against another candidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from tilp._utils.arrays import Floats, Ints
from tilp.errors import TilpError
from tilp.explanation import types
from tilp.explanation.sentences import Sentences
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import known_answers
from tilp.rules import Phrasings, RuleSet
from tilp.scoring import Query, Scorer
from tilp.scoring.queries import plain_dates, query_table, read_queries, with_dates
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution, Evidence, FactPath
from tilp.time import Interval

_SOURCES = 2  # contributions of a reason whose facts are looked up
_MANY = 100  # walks to look at for one without a circle, if the nearest all have one
_DECISIVE = 1.25  # times the rival's amount: less is what both have
_SUBSTANTIAL = 0.1  # of the largest margin: less is no reason to come first
_NEGLIGIBLE = 1e-3  # of the largest amount

Amounts = tuple[float, float]
"""Contributions of the same evidence to the scores of candidate and rival."""


class Explainer:
    """Explains the scores of a scorer with a graph as evidence, by rules with their counts."""

    def __init__(
        self, scorer: Scorer, rules: RuleSet, graph: TemporalGraph, phrasings: Phrasings
    ) -> None:
        self._scorer, self._rules = scorer, rules
        self._graph, self._phrasings = graph, phrasings
        self._ids: Ints | None = None  # of facts, before some were removed

    def _without(self, facts: Sequence[int]) -> Explainer:
        """Return the explainer on evidence without some facts; the others keep their ids."""
        n = len(self._graph.rows("train"))
        for fact in facts:
            if not 0 <= fact < n:
                raise TilpError(
                    f"no fact of the evidence has the id {fact}; ids stand beside the facts of an "
                    f"explanation, from 0 to {n - 1}"
                )
        graph = self._graph.without(facts)
        other = Explainer(self._scorer.without(facts), self._rules, graph, self._phrasings)
        other._ids = np.flatnonzero(self._graph.rows_after_removal(np.array(facts)) >= 0)
        return other

    def explain(
        self, query: Query, candidates: Sequence[str | None], *, against: str | None = None,
        without: Iterable[int] = (), groundings: int = 3, max_reasons: int | None = 20,
        ablation: bool = True,
    ) -> list[types.Explanation]:  # fmt: skip
        """Explain each of some candidates (None: the best); the arguments are of `TILP.explain`."""
        (query,) = (plain_dates(query, self._graph) for query in read_queries([query]))
        removed = sorted(set(without))
        asked = self._scorer.rule_scorer.resolve_dates(query_table(self._graph, [query]))
        before = _Scored(self._scorer, self._graph, asked)
        here, scored = self, before
        if removed:
            here = self._without(removed)
            scored = _Scored(here._scorer, here._graph, before.table)
        entities, label = self._graph.entities, self._graph.entities.label
        relation = self._graph.relations.label(int(scored.table.directed_relation[0]))
        _, known = known_answers(here._graph, scored.table).at_query_time()
        explanations = []
        for name in candidates:
            candidate = scored.order[0] if name is None else entities.find(name)
            rival = scored.rival(candidate) if against is None else entities.find(against)
            if rival == candidate:
                raise TilpError(f"{label(candidate)!r} is explained itself; compare it with others")
            reasons = here._reasons(scored, candidate, rival, groundings, max_reasons)
            other = None if rival is None else scored.standing(rival)
            explanations.append(
                types.Explanation(
                    query=with_dates(query, asked, self._graph.unit),
                    claim=here._sentences(scored, candidate).claim(relation),
                    candidate=label(candidate),
                    **asdict(scored.standing(candidate)),
                    known=bool(np.isin(candidate, known)),
                    reasons=reasons,
                    rival="" if rival is None else label(rival),
                    rival_rank=0 if other is None else other.rank,
                    rival_score=0.0 if other is None else other.score,
                    ablation=here._ablate(scored, candidate, reasons) if ablation else None,
                    removed=tuple(types.WalkedFact(row, self._graph.fact(row)) for row in removed),
                    before=before.standing(candidate) if removed else None,
                    max_reasons=max_reasons,
                )
            )
        return explanations

    def _reasons(
        self, scored: _Scored, candidate: int, rival: int | None, n: int, max_reasons: int | None
    ) -> tuple[types.Reason, ...]:  # fmt: skip
        both = [candidate] if rival is None else [candidate, rival]
        attributed = self._scorer.attribute_scores(scored.table, both, scored.applied)
        own, *others = (_by_evidence(contributions) for contributions in attributed)
        other = others[0] if others else {}
        amounts = {
            evidence: (_amount(own.get(evidence, ())), _amount(other.get(evidence, ())))
            for evidence in own | other
        }
        ahead = rival is None or scored.rank(candidate) < scored.rank(rival)
        words = [self._sentences(scored, entity) for entity in both]
        reasons = []
        for index, evidence in enumerate(_ordered(amounts, ahead=ahead)):
            shown = n if max_reasons is None or index < max_reasons else 0
            of_rival = evidence not in own
            parts = other[evidence] if of_rival else own[evidence]
            members, groundings = self._facts(parts, words[of_rival], shown)
            text = words[of_rival].of_reason(evidence, members, groundings, of_rival=of_rival)
            about = evidence.kind, evidence.relations, *amounts[evidence], text
            reasons.append(types.Reason(*about, members, groundings, of_rival))
        return tuple(reasons)

    def _sentences(self, scored: _Scored, candidate: int) -> Sentences:
        unit, label = self._graph.unit, self._graph.entities.label
        subject = int(scored.table.subject[0])
        time = Interval(*(int(date[0]) for date in scored.table.given_dates()))
        names, latest = (label(subject), label(candidate)), int(scored.table.latest[0])
        return Sentences(self._phrasings, time, unit, *names, latest)

    def _facts(
        self, parts: list[Contribution], words: Sentences, n: int
    ) -> tuple[tuple[types.Member, ...], tuple[types.Grounding, ...]]:
        """Return contributions of the same evidence, the largest first, and n groundings."""
        sign = 1.0 if _amount(parts) >= 0 else -1.0
        parts = sorted(parts, key=lambda part: -sign * part.score)
        paths: dict[FactPath, None] = {}
        with_facts = [part for part in parts if part.find_facts is not None]
        for part in with_facts[: max(_SOURCES, n - 1)] if n > 0 else ():
            if part.find_facts and len(paths) < n:
                found = list(filter(self._has_no_circle, part.find_facts(n)))
                found = found or list(filter(self._has_no_circle, part.find_facts(_MANY)))
                paths |= dict.fromkeys(found)
        members = []
        for part in parts:
            rule = None if part.rule is None else self._rules[part.rule]
            text = words.of_member(part.text, rule)
            picture = part.draw() if part.draw is not None else ""
            note = words.of_member(part.note, None)
            about = part.kind, part.score, text, part.walks, rule, note, picture
            members.append(types.Member(*about))
        groundings = (self._grounding(path, words.latest) for path in list(paths)[:n])
        return tuple(members), tuple(groundings)

    def _grounding(self, path: FactPath, latest: int) -> types.Grounding:
        steps = []
        for row, inverse in path:
            fact_id = row if self._ids is None else int(self._ids[row])
            step = types.WalkedFact(fact_id, self._graph.fact(row), inverse)
            steps.append(step.as_of(latest))
        return types.Grounding(tuple(steps))

    def _has_no_circle(self, path: FactPath) -> bool:
        ends = (self._graph.subject, self._graph.object)
        visited = [int(ends[inverse][row]) for row, inverse in path[:1]]
        visited += [int(ends[not inverse][row]) for row, inverse in path]
        return len(set(visited)) == len(visited) > 0

    def _ablate(
        self, scored: _Scored, candidate: int, reasons: Iterable[types.Reason]
    ) -> types.AblationEffect | None:
        """Score again without the facts shown for the first reason in favour of a candidate."""
        with_facts = (one for one in reasons if one.groundings and not one.of_rival)
        first = next((one for one in with_facts if one.score > 0), None)
        if first is None:
            return None
        steps = first.groundings[0].steps
        rows = np.array([step.fact_id for step in steps])
        rows = rows if self._ids is None else np.searchsorted(self._ids, rows)
        parts = self._scorer.without(rows.tolist()).contributions(
            scored.table, np.array([0, 1]), np.array([candidate], np.int32)
        )
        left = sum(float(part[0]) for part in parts.values())
        score = float(scored.scores[candidate])
        share = first.score / score if score > 0 else 0.0
        return types.AblationEffect(steps, share, left, score - left)


@dataclass(frozen=True)
class _Scored:
    """Scores of all entities for a single query."""

    scorer: Scorer
    graph: TemporalGraph
    table: QueryTable

    @cached_property
    def applied(self) -> AppliedRules:
        return self.scorer.rule_scorer.apply_rules(self.table)

    @cached_property
    def _scores_and_shares(self) -> tuple[Floats, Floats]:
        n = len(self.graph.entities)
        listed = self.scorer.score(self.table, self.applied)
        scores = np.full(n, listed.defaults[0])
        scores[listed.candidate] = listed.score
        return scores, listed.shares(np.zeros(n, np.int64), scores, n)

    @property
    def scores(self) -> Floats:
        return self._scores_and_shares[0]

    @cached_property
    def order(self) -> list[int]:
        """The best candidate, and the second if there is one."""
        winner = int(np.argmax(self.scores))
        rest = np.delete(np.arange(len(self.scores)), winner)
        return [winner, int(rest[np.argmax(self.scores[rest])])] if len(rest) else [winner]

    def rival(self, candidate: int) -> int | None:
        """Return the winner, or for the winner itself the second."""
        return next((entity for entity in self.order if entity != candidate), None)

    def rank(self, candidate: int) -> int:
        score = self.scores[candidate]
        return 1 + int((self.scores > score).sum() + (self.scores[:candidate] == score).sum())

    def standing(self, candidate: int) -> types.Standing:
        scores, shares = self._scores_and_shares
        winner = self.graph.entities.label(self.order[0])
        score, share = float(scores[candidate]), float(shares[candidate])
        return types.Standing(self.rank(candidate), score, share, winner)


def _ordered(amounts: dict[Evidence, Amounts], *, ahead: bool) -> list[Evidence]:
    """Return evidence in the order of what decides, given what it adds to candidate and rival.

    Ahead of the rival, first comes what adds clearly more to the candidate, by the difference;
    then what adds to both, by the amount; then what speaks against it. Behind the rival, what the
    candidate lacks most comes first. What adds the same to both, or next to nothing, is last.
    """
    margin = {evidence: mine - theirs for evidence, (mine, theirs) in amounts.items()}
    largest = max((abs(amount) for both in amounts.values() for amount in both), default=0.0)
    last = {
        evidence
        for evidence, both in amounts.items()
        if max(map(abs, both)) < _NEGLIGIBLE * largest
        or types.Reason(evidence.kind, (), *both, "").same
    }
    if not ahead:
        return sorted(amounts, key=lambda evidence: (evidence in last, margin[evidence]))
    least = _SUBSTANTIAL * max(map(abs, margin.values()), default=0.0)
    in_favour = {evidence: both for evidence, both in amounts.items() if both[0] > 0.0}
    decisive = [
        evidence
        for evidence, (mine, theirs) in in_favour.items()
        if mine >= _DECISIVE * theirs and margin[evidence] >= least
    ] or sorted(in_favour, key=lambda evidence: -margin[evidence])[:1]

    def order(evidence: Evidence) -> tuple[int, float]:
        mine, _ = amounts[evidence]
        if evidence in decisive:
            return 0, -margin[evidence]
        if evidence in last:
            return 3, -abs(mine)
        return (1, -mine) if mine > 0.0 else (2, margin[evidence])

    return sorted(amounts, key=order)


def _by_evidence(contributions: Iterable[Contribution]) -> dict[Evidence, list[Contribution]]:
    grouped: dict[Evidence, list[Contribution]] = {}
    for part in contributions:
        if part.score or part.kind == NOT_SCORED:
            grouped.setdefault(part.evidence, []).append(part)
    return grouped


def _amount(parts: Iterable[Contribution]) -> float:
    return float(sum(part.score for part in parts))
