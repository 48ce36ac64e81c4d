"""Sentences with names and dates: what a reason says, from its facts and its rule."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tilp._utils.text import percent
from tilp.explanation.types import Grounding, Member, WalkedFact
from tilp.graph import INVERSE_MARK
from tilp.rules import MinedRule, Phrasings
from tilp.scoring.scorer import Evidence, ReasonKind
from tilp.time import OPEN_END, Interval, format_time, known_ends, relation_words
from tilp.types import Unit

_MANY = 20  # cases of a rule: from here on their share is printed too
_GAVE = 0.8  # of the walks in such cases that lead to the answer: below, others are named too


@dataclass(frozen=True)
class Sentences:
    """Words the reasons for one candidate of a query."""

    phrasings: Phrasings
    interval: Interval  # of the query
    unit: Unit
    given: str  # name of the query's entity
    candidate: str
    latest: int = OPEN_END  # last time that anything is known of

    def claim(self, relation: str) -> str:
        """Return the fact that the candidate makes of a query for a directed relation."""
        name = relation.removesuffix(INVERSE_MARK)
        ends = (self.given, self.candidate)
        clause = self.phrasings.clause(name, *(ends if name == relation else ends[::-1]))
        return f"{clause} {self.interval.words(self.unit)}".rstrip()

    def of_member(self, text: str, rule: MinedRule | None) -> str:
        """Return the text of a contribution with names, or its rule in words."""
        if rule is not None:
            return self.phrasings.rule(rule.rule, self.unit)
        return text.replace("{given}", self.given).replace("{candidate}", self.candidate)

    def of_reason(
        self, evidence: Evidence, members: Sequence[Member], groundings: Sequence[Grounding], *,
        of_rival: bool,
    ) -> str:  # fmt: skip
        """Return what a reason says, as a few sentences."""
        text = self._statement(evidence, members, groundings)
        if sum(member.score for member in members) < 0:
            return f"Against {self.candidate}: {text}"
        return f"For {self.candidate}: {text}" if of_rival else text

    def _statement(
        self, evidence: Evidence, members: Sequence[Member], groundings: Sequence[Grounding]
    ) -> str:
        if evidence.kind is ReasonKind.PRIOR:
            return f"{'; '.join(dict.fromkeys(member.text for member in members))}."
        if evidence.kind is ReasonKind.CONNECTION:
            return self._connection(members[0].note, groundings)
        rule = members[0].rule
        if not groundings:
            if rule is None and evidence.kind is ReasonKind.CHAIN:
                chain = ", ".join(map(str, evidence.relations))
                return f"{self.given} leads to {self.candidate} by {chain}."
            return f"{members[0].text.rstrip('.')}."
        steps = groundings[0].steps
        sentence = f"{self.path(steps, _dated_steps(rule, len(steps)))}."
        if evidence.kind is ReasonKind.CANDIDATE:
            return f"Known of {self.candidate}: {sentence}"
        if len(steps) > 1 and rule is None:
            sentence = f"A path of {len(steps)} facts: {sentence}"
        walks = max(member.walks for member in members)
        if walks > 1:
            noun = "facts" if len(steps) == 1 else "paths"
            sentence += f" This is one of {walks:,} such {noun}."
        if members[0].note:
            return f"{sentence} {members[0].note}"
        return sentence + ("" if rule is None else _cases(rule))

    def _connection(self, said: str, groundings: Sequence[Grounding]) -> str:
        if said:
            return f"{said} {self.path(groundings[0].steps)}." if groundings else said
        when = self.interval.words(self.unit)
        near = when.partition(" ")[2] if self.interval.is_point else f"the time {when}"
        around = f" around {near}" if when else ""
        text = f"{self.given} and {self.candidate} are well connected{around}, over many facts."
        if not groundings:
            return text
        return f"{text} The shortest path: {self.path(groundings[0].steps)}."

    def _asked(self, lies: str) -> str:
        """Return the query's date that a fact lies before or after."""
        start, end = known_ends(*np.array([[self.interval.start], [self.interval.end]]))
        return format_time(int((start if lies.endswith("before") else end)[0]), self.unit)

    def path(self, steps: Sequence[WalkedFact], related: Collection[int] = ()) -> str:
        """Return the facts of a walk in words; the time of the related ones is compared."""
        clauses: list[str] = []
        spoken_of = ""  # the entity that the last clause began with
        for index, step in enumerate(steps):
            fact, before = step.fact, steps[index - 1].fact if index else None
            clause = self.phrasings.clause(
                fact.relation, fact.subject, fact.object, inverse=step.inverse
            )
            begins = clause.startswith(f"{fact.subject} ")
            if begins and before and (fact.subject, fact.relation) == (spoken_of, before.relation):
                clause = clause.removeprefix(f"{fact.subject} ")
            elif before is not None and (fact.relation, fact.object) == (
                before.relation, before.object,
            ):  # fmt: skip
                clause += " too"
            spoken_of = fact.subject if begins else ""
            dated, is_last = fact.interval.words(fact.unit), index == len(steps) - 1
            if step.hidden_end:
                dated = dated.replace("end unknown", "end not known then")
            lies = relation_words(fact.interval, self.interval, self.unit)
            if is_last and before and lies.endswith((" before", " after")):
                lies += f" {self._asked(lies)}"  # not before or after the fact that comes first
            when = (dated or "no date") + (f", {lies}" if index in related and lies else "")
            clauses.append(f"{clause} {when}" if is_last and dated else f"{clause} ({when})")
        return ", and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))


def _dated_steps(rule: MinedRule | None, n: int) -> set[int]:
    """Return the indices of facts that a rule compares with the query's time, and of the last."""
    constraints = () if rule is None else rule.rule.constraints
    query = f"I{n + 1}"
    return {n - 1, *(c.indices[0] - 1 for c in constraints if c.variables[-1] == query)}


def _cases(rule: MinedRule) -> str:
    """Say in how many cases of a rule it led to the answer."""
    if not rule.body_support:
        return ""
    about = "about " if rule.sampled else ""
    reached = rule.support / rule.body_support
    share = f" ({percent(reached)})" if rule.body_support >= _MANY else ""
    cases = f" In {about}{rule.support:,} of {rule.body_support:,} such cases{share}"
    if rule.confidence >= _GAVE * reached or not rule.confidence:
        return f"{cases} this gave the answer."
    others = max(round(reached / rule.confidence) - 1, 1)
    return (
        f"{cases} this led to the answer and, on average, to {others:,} other{'s'[: others - 1]}."
    )
