"""The parts of an explanation: facts as walks read them, groundings, reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.graph import Fact, QueryTable, TemporalGraph
from tilp.rules import MinedRule
from tilp.scoring import Query, Scores
from tilp.scoring.rule_scorer import AppliedRules


@dataclass(frozen=True, slots=True)
class WalkedFact:
    """A fact of the evidence, as a walk reads it.

    Attributes:
        number: of the fact in the graph.
        fact: with its names and dates.
        inverse: whether it is read from object to subject.
    """

    number: int
    fact: Fact
    inverse: bool = False

    @property
    def source(self) -> str:
        """Where the walk comes from."""
        return self.fact.object if self.inverse else self.fact.subject

    @property
    def target(self) -> str:
        """Where it goes to."""
        return self.fact.subject if self.inverse else self.fact.object


@dataclass(frozen=True, slots=True)
class Grounding:
    """The dated facts of one walk, in order; or the one fact of a candidate that is spoken of.

    Attributes:
        steps: these.
        share: of all walks of its reason, where they are weighed; None where they are counted, and
            each is one of them.
    """

    steps: tuple[WalkedFact, ...]
    share: float | None = None

    def share_of(self, walks: int) -> float:
        """Its share of so many walks."""
        return 1 / walks if self.share is None else self.share

    @property
    def facts(self) -> frozenset[int]:
        """The numbers of the facts."""
        return frozenset(step.number for step in self.steps)


@dataclass(frozen=True, slots=True)
class Reason:
    """One named term of a candidate's score.

    Attributes:
        kind: what it comes from: `rule`, `prior`, `other facts`, `random walks` and so on.
        score: what it adds to the score.
        words: it as a sentence.
        groundings: the facts behind it, those nearest to the query's time first; perhaps not all.
        walks: how many groundings there are in all.
        rule: the rule that fired, where it is one, with its counts and weight.
    """

    kind: str
    score: float
    words: str
    groundings: tuple[Grounding, ...] = ()
    walks: int = 0
    rule: MinedRule | None = None


@dataclass(frozen=True, slots=True)
class AblationEffect:
    """How far a score falls when the facts of one grounding are taken out of the evidence.

    Attributes:
        grounding: whose facts.
        share: of the score that hangs on it by plain shares, as if each walk added its share of
            what its reason adds; 0 where the score is not above 0.
        score: what the score becomes, computed anew without these facts.
        fall: how much less that is.
    """

    grounding: Grounding
    share: float
    score: float
    fall: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """What speaks more for the winner than for a candidate.

    Attributes:
        reason: of the winner; where only the candidate has it, of the candidate.
        winner: what it adds to the winner's score; 0 if the winner has no such reason.
        candidate: likewise.
    """

    reason: Reason
    winner: float
    candidate: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a candidate is where it is among the answers of a query.

    Attributes:
        query: as it was asked.
        candidate: its name.
        rank: among all entities; equal scores in the order of entities.
        score: the sum of the reasons' scores.
        share: of all candidates' scores, or of their softmax, as in predictions.
        known: whether the evidence already has it as an answer at a touching time.
        reasons: the largest first.
        fall: how far the score falls without the facts of the top grounding; None if it has none.
        winner: the best candidate of the query.
        lacks: what the winner has that the candidate lacks, the largest difference first; empty
            for the winner itself. The differences add up to that of the scores.
        top: how many reasons and lacks are shown, and have groundings; None for all.
    """

    query: Query
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    reasons: tuple[Reason, ...]
    fall: AblationEffect | None = None
    winner: str = ""
    lacks: tuple[Contrast, ...] = ()
    top: int | None = None

    @property
    def shown(self) -> tuple[Reason, ...]:
        """The reasons that are shown."""
        return self.reasons[: self.top]

    @property
    def shown_lacks(self) -> tuple[Contrast, ...]:
        """The lacks that are shown."""
        return self.lacks[: self.top]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """As people read it: the reasons with their scores and facts, and what it lacks."""
        from tilp.explanation.render import explanation_text

        return explanation_text(self)

    def to_json(self) -> dict[str, Any]:
        """As programs read it; what is not shown is told in `rest`."""
        from tilp.explanation.render import explanation_json

        return explanation_json(self)

    def html(self) -> str:
        """As browsers show it: an element with its style and pictures, for any page."""
        from tilp.explanation.render import explanation_html

        return explanation_html(self)

    def _repr_html_(self) -> str:
        return self.html()


NOT_LOOKED_AT = "not looked at"
"""The kind of what stands for all that was not looked at."""

Key = tuple[str | int, ...]
Ground = Callable[[int], tuple[Grounding, ...]]


@dataclass(frozen=True, eq=False)
class ExplainedQuery:
    """A single query and one of its candidates.

    Attributes:
        graph: the facts as they were given, whose train split is the evidence.
        queries: the query.
        applied: the rules, applied to it.
        scores: of the candidates that are listed.
        candidate: the entity.
    """

    graph: TemporalGraph
    queries: QueryTable
    applied: AppliedRules
    scores: Scores
    candidate: int

    @property
    def head(self) -> int:
        """The directed relation that is asked for."""
        return int(self.queries.directed_relation[0])

    @property
    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidate as a list of candidates: where it begins and ends, and itself."""
        return np.array([0, 1]), np.array([self.candidate], np.int32)

    def walked(self, steps: Iterable[tuple[int, bool]], share: float | None = None) -> Grounding:
        """Facts, each with whether it is read from object to subject, as people read them."""
        return Grounding(
            tuple(WalkedFact(fact, self.graph.fact(fact), inverse) for fact, inverse in steps),
            share,
        )

    def relation(self, directed: int) -> str:
        """The name of a relation, whichever way it is read."""
        return self.graph.relations.label(directed % len(self.graph.relations))


@dataclass(frozen=True, eq=False)
class Contribution:
    """A part of a score, and the reason that it is, whose groundings are found when wanted.

    Attributes:
        key: by which the same reason of two candidates is known.
        reason: without groundings.
        ground: gives the groundings, up to a number; None where a reason has none.
    """

    key: Key
    reason: Reason
    ground: Ground | None = None

    @property
    def score(self) -> float:
        """What it adds."""
        return self.reason.score

    def grounded(self, n: int) -> Reason:
        """The reason with up to n groundings."""
        if self.ground is None or n < 1:
            return self.reason
        found = self.ground(n)
        return replace(self.reason, groundings=found, walks=max(self.reason.walks, len(found)))
