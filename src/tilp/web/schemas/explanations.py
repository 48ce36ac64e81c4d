"""What explanations hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from tilp.web.schemas.answers import QueryShown

__all__ = ["Explained"]


class WalkedFactShown(BaseModel):
    """A fact as a walk reads it."""

    number: Annotated[int, Field(description="Of the fact in the data.")]
    subject: str
    relation: str
    object: str
    start: str | None
    end: str | None
    inverse: Annotated[bool, Field(description="Whether it is read from object to subject.")]


class GroundingShown(BaseModel):
    """The dated facts of one walk, in order; or one fact of the candidate."""

    facts: list[WalkedFactShown]
    svg: Annotated[str | None, Field(description="A picture, where it was asked for.")] = None


class RuleBehind(BaseModel):
    """The rule of a reason."""

    text: str
    sentence: str
    confidence: float
    support: int
    fired: int
    facts: int
    weight: float | None


class ReasonShown(BaseModel):
    """One term of a score."""

    kind: Annotated[str, Field(description="rule, prior, other facts, soft walks and so on.")]
    score: Annotated[float, Field(description="What it adds.")]
    words: str
    walks: Annotated[int, Field(description="How many groundings there are in all.")]
    rule: RuleBehind | None
    groundings: Annotated[list[GroundingShown], Field(description="Nearest in time first.")]


class RestOfReasons(BaseModel):
    """The reasons that are not shown."""

    count: int
    score: float


class RestOfLacks(BaseModel):
    """The lacks that are not shown."""

    count: int
    winner: float
    candidate: float


class FallShown(BaseModel):
    """How far the score falls without the facts of the top grounding, computed anew."""

    grounding: GroundingShown
    share: Annotated[float, Field(description="What hangs on it by plain shares of walks.")]
    score: Annotated[float, Field(description="What the score becomes.")]
    fall: Annotated[float, Field(description="How much less that is.")]


class LackShown(BaseModel):
    """What speaks more for the winner, or less."""

    reason: ReasonShown
    winner: Annotated[float, Field(description="What it adds to the winner's score.")]
    candidate: Annotated[float, Field(description="What it adds to the candidate's.")]


class Explained(BaseModel):
    """Why a candidate is where it is."""

    query: QueryShown
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    winner: Annotated[str, Field(description="The best candidate.")]
    reasons: Annotated[list[ReasonShown], Field(description="The largest first.")]
    rest: RestOfReasons
    fall: FallShown | None
    lacks: Annotated[list[LackShown], Field(description="Largest difference first.")]
    lacks_rest: RestOfLacks
