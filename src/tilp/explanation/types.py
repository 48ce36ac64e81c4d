"""The parts of an explanation: reasons with their facts, and what removing facts does."""

from dataclasses import dataclass, replace
from typing import Any, Self

from tilp.graph import Fact
from tilp.rules import Atom, MinedRule
from tilp.scoring import Query
from tilp.scoring.scorer import ReasonKind
from tilp.time import UNKNOWN, end_as_of

SHOWN = 3
"""Reasons that text and HTML show at once."""

_SAME = 0.01  # of the larger amount: a smaller difference decides nothing


@dataclass(frozen=True, slots=True)
class WalkedFact:
    """A fact of the evidence, as a walk reads it.

    Attributes:
        fact_id: Id of the fact in the graph.
        fact: The fact with its names and dates.
        inverse: True if it is read from object to subject.
        hidden_end: True if its end was not known at the time of the query, and was not used.
    """

    fact_id: int
    fact: Fact
    inverse: bool = False
    hidden_end: bool = False

    def as_of(self, latest: int) -> Self:
        """Return the fact as it was known at a time: without an end that was still to come."""
        times = self.fact.interval
        if end_as_of(times.start, times.end, latest) == times.end:
            return self
        fact = replace(self.fact, interval=replace(times, end=UNKNOWN))
        return replace(self, fact=fact, hidden_end=True)

    @property
    def source(self) -> str:
        """Entity that the walk comes from."""
        return self.fact.object if self.inverse else self.fact.subject

    @property
    def target(self) -> str:
        """Entity that the walk goes to."""
        return self.fact.subject if self.inverse else self.fact.object


@dataclass(frozen=True, slots=True)
class Grounding:
    """The dated facts of one walk, in order; or a single fact of the candidate.

    No walk uses a fact twice or comes back to an entity.

    Attributes:
        steps: The facts.
    """

    steps: tuple[WalkedFact, ...]

    @property
    def facts(self) -> frozenset[int]:
        """Ids of the facts."""
        return frozenset(step.fact_id for step in self.steps)


@dataclass(frozen=True, slots=True)
class Member:
    """One contribution to a score, of those that a reason sums up.

    Attributes:
        kind: Source of the contribution: `rule`, `prior`, `other facts`, `random walks` and so on.
        score: Summand of the score.
        text: Description as a sentence.
        walks: Number of its groundings.
        rule: The rule with its counts and weight, if there is one.
        note: A sentence about cases like this; empty if the rule's counts say it.
        picture: What was learned of them, as SVG; empty if there is none.
    """

    kind: str
    score: float
    text: str
    walks: int = 0
    rule: MinedRule | None = None
    note: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """All contributions of one piece of evidence: one chain of relations, or one of another kind.

    Attributes:
        kind: `chain`: facts that lead from the query's entity to the candidate; `candidate`: facts
            of the candidate alone; `prior`: how common the candidate is; `connection`: random
            walks that no chain stands for; `rest`: what cannot be attributed.
        relations: The chain, from the query's entity; of `candidate`, one relation, read from it,
            or none if it is about the candidate's kind.
        score: Summand of the candidate's score.
        rival: Summand of the rival's score from the same evidence.
        text: The reason as a sentence with names and dates.
        members: The contributions that make up `score`, largest first; if none, the rival's.
        groundings: Facts behind it, perhaps not all; facts of the rival likewise.
        of_rival: True if members and facts are those of the rival.
    """

    kind: ReasonKind
    relations: tuple[Atom, ...]
    score: float
    rival: float
    text: str
    members: tuple[Member, ...] = ()
    groundings: tuple[Grounding, ...] = ()
    of_rival: bool = False

    @property
    def margin(self) -> float:
        """The candidate's summand less the rival's."""
        return self.score - self.rival

    @property
    def same(self) -> bool:
        """True if it adds as much to the rival, within a hundredth, and so decides nothing."""
        return abs(self.margin) <= _SAME * max(abs(self.score), abs(self.rival))

    @property
    def walks(self) -> int:
        """Number of groundings of the member that has most."""
        return max((member.walks for member in self.members), default=0)


@dataclass(frozen=True, slots=True)
class Standing:
    """Rank, score and share of a candidate, and the name of the best candidate."""

    rank: int
    score: float
    share: float
    winner: str


@dataclass(frozen=True, slots=True)
class AblationEffect:
    """Effect of removing the facts of the first reason's first grounding from the evidence.

    Attributes:
        facts: The facts that are removed.
        share: Share of the score that the reason contributes; 0 if the score is not positive.
        score_without: The score, computed again without these facts.
        drop: The score minus `score_without`.
    """

    facts: tuple[WalkedFact, ...]
    share: float
    score_without: float
    drop: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the score and rank of a candidate, against another candidate, its rival.

    Attributes:
        query: The query as it was given, or with the date that a forecaster asked it at.
        claim: The fact that the candidate makes of the query, in words.
        candidate: Name of the candidate.
        rank: Rank among all entities; equal scores in the order of entities.
        score: Sum of the reasons' scores.
        share: Share of all candidates' scores, or of their softmax, as in predictions.
        known: True if the evidence has it as an answer at a time that touches the query's.
        winner: Name of the best candidate.
        rival: Name of the candidate that it is compared with; empty if there is no other.
        rival_rank: Rank of the rival.
        rival_score: Sum of the reasons' `rival`.
        reasons: Those that decide first. If the candidate is ahead of its rival: what adds clearly
            more to it, then what adds to both, then what speaks against it. If it is behind: what
            it lacks most. What is the same for both comes last.
        ablation: Effect of removing the facts of the first positive reason with facts, or None.
        removed: Facts that were left out of the evidence, if the explanation is one without facts.
        before: Rank, score and winner with these facts.
        max_reasons: Reasons up to this one have groundings; None for all.
    """

    query: Query
    claim: str
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    reasons: tuple[Reason, ...]
    winner: str = ""
    rival: str = ""
    rival_rank: int = 0
    rival_score: float = 0.0
    ablation: AblationEffect | None = None
    removed: tuple[WalkedFact, ...] = ()
    before: Standing | None = None
    max_reasons: int | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, max_reasons: int | None = SHOWN, *, formal: bool = False) -> str:
        """Return the explanation as text.

        Args:
            max_reasons: Show this many reasons (int, default 3; None for all), and sum up others.
            formal: Add the members of each reason, rules in formal notation (default False).
        """
        from tilp.explanation.render import explanation_text

        return explanation_text(self, max_reasons, formal=formal)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain values; `rest` sums up reasons past `max_reasons`."""
        from tilp.explanation.render import explanation_json

        return explanation_json(self)

    def html(self) -> str:
        """Return the explanation as an HTML element with its style and pictures."""
        from tilp.explanation.render import explanation_html
        from tilp.viz.html import fragment

        return fragment(*explanation_html(self))

    _repr_html_ = html
