"""The parts of an explanation: reasons with their groundings, ablation effect and contrasts."""

from dataclasses import dataclass
from typing import Any

from tilp._deprecated import RenamedAttribute
from tilp.graph import Fact
from tilp.rules import MinedRule
from tilp.scoring import Query


@dataclass(frozen=True, slots=True)
class WalkedFact:
    """A fact of the evidence, as a walk reads it.

    Attributes:
        fact_id: Id of the fact in the graph.
        fact: The fact with its names and dates.
        inverse: True if it is read from object to subject.
    """

    fact_id: int
    fact: Fact
    inverse: bool = False

    number = RenamedAttribute("fact_id")

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

    Attributes:
        steps: The facts.
        share: Share of its reason's score; None if all walks of the reason have the same share.
    """

    steps: tuple[WalkedFact, ...]
    share: float | None = None

    def share_of(self, walks: int) -> float:
        """Return its share of the score of a reason with a number of walks."""
        return 1 / walks if self.share is None else self.share

    @property
    def facts(self) -> frozenset[int]:
        """Ids of the facts."""
        return frozenset(step.fact_id for step in self.steps)


@dataclass(frozen=True, slots=True)
class Reason:
    """One contribution to a candidate's score.

    Attributes:
        kind: Source of the contribution: `rule`, `prior`, `other facts`, `random walks` and so on.
        score: Summand of the score.
        text: Description as a sentence.
        groundings: Facts behind it, those nearest to the query's time first; perhaps not all.
        walks: Number of groundings in all.
        rule: The rule with its counts and weight, if there is one.
    """

    kind: str
    score: float
    text: str
    groundings: tuple[Grounding, ...] = ()
    walks: int = 0
    rule: MinedRule | None = None

    words = RenamedAttribute("text")


@dataclass(frozen=True, slots=True)
class AblationEffect:
    """Effect on a score of removing the facts of one grounding from the evidence.

    Attributes:
        grounding: The grounding whose facts are removed.
        share: Share of the score that is attributed to it, if each walk has its share of its
            reason's score; 0 if the score is not positive.
        score_without: The score, computed again without these facts.
        drop: The score minus `score_without`.
    """

    grounding: Grounding
    share: float
    score_without: float
    drop: float

    score = RenamedAttribute("score_without")
    fall = RenamedAttribute("drop")


@dataclass(frozen=True, slots=True)
class Contrast:
    """One contribution to the scores of a candidate and of the best one, the winner.

    Attributes:
        reason: Of the winner; of the candidate if the winner has no such reason.
        winner: Summand of the winner's score; 0 if it has no such reason.
        candidate: Summand of the candidate's score, likewise.
    """

    reason: Reason
    winner: float
    candidate: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the score and rank of a candidate.

    Attributes:
        query: The query as it was given.
        candidate: Name of the candidate.
        rank: Rank among all entities; equal scores in the order of entities.
        score: Sum of the reasons' scores.
        share: Share of all candidates' scores, or of their softmax, as in predictions.
        known: True if the evidence has it as an answer at a time that touches the query's.
        reasons: The largest first.
        ablation: Effect of removing the facts of the top grounding; None if there is none.
        winner: Name of the best candidate.
        contrasts: Contributions to the scores of winner and candidate, the largest difference
            first; they add up to the difference of the scores. Empty for the winner itself.
        max_reasons: Number of reasons and of contrasts that are shown, and have groundings; None
            for all.
    """

    query: Query
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    reasons: tuple[Reason, ...]
    ablation: AblationEffect | None = None
    winner: str = ""
    contrasts: tuple[Contrast, ...] = ()
    max_reasons: int | None = None

    top = RenamedAttribute("max_reasons")
    fall = RenamedAttribute("ablation")
    lacks = RenamedAttribute("contrasts")
    shown_lacks = RenamedAttribute("shown_contrasts")

    @property
    def shown(self) -> tuple[Reason, ...]:
        """The reasons that are shown."""
        return self.reasons[: self.max_reasons]

    @property
    def shown_contrasts(self) -> tuple[Contrast, ...]:
        """The contrasts that are shown."""
        return self.contrasts[: self.max_reasons]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return the explanation as text: reasons with scores and facts, and contrasts."""
        from tilp.explanation.render import explanation_text

        return explanation_text(self)

    def to_json(self) -> dict[str, Any]:
        """Return what is shown as plain values; `rest` and `lacks_rest` sum up the others."""
        from tilp.explanation.render import explanation_json

        return explanation_json(self)

    def html(self) -> str:
        """Return the explanation as an HTML element with its style and pictures."""
        from tilp.explanation.render import explanation_html
        from tilp.viz.html import fragment

        return fragment(*explanation_html(self))

    def _repr_html_(self) -> str:
        return self.html()
