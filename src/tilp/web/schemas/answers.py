"""What answers hold."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

__all__ = [
    "DataSummary",
    "Entity",
    "EntityFacts",
    "Error",
    "Health",
    "ModelSummary",
    "Prediction",
    "QueryShown",
    "Relation",
    "RulePage",
]


class Health(BaseModel):
    """How the service is."""

    status: str


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: Annotated[str, Field(description="For programs.", examples=["unknown_name"])]
    message: Annotated[str, Field(description="What is wrong, and the remedy.")]
    near: Annotated[list[str], Field(description="Names that may have been meant.")]


class Error(BaseModel):
    """The answer to a request that failed."""

    error: ErrorDetail


class QueryShown(BaseModel):
    """A query as it was asked."""

    relation: str
    subject: str | None
    object: str | None
    start: str | int | None
    end: str | int | None


class SplitCounts(BaseModel):
    """Facts of each split."""

    train: int
    valid: int
    test: int


class ModelSummary(BaseModel):
    """What the service serves."""

    name: str
    version: Annotated[str, Field(description="Of the package.")]
    unit: Annotated[str, Field(description="What times count: year, month, day or integer.")]
    features: str
    max_length: Annotated[int, Field(description="Of rules.")]
    entities: int
    relations: int
    rules: int
    words: Annotated[list[str], Field(description="What rules say of two intervals.")]
    facts: SplitCounts
    example: Annotated[QueryShown, Field(description="A query that is answered well.")]


class Relation(BaseModel):
    """A relation."""

    name: str
    facts: int
    rules: Annotated[int, Field(description="Rules that ask for its objects.")]
    inverse_rules: Annotated[int, Field(description="Rules that ask for its subjects.")]


class Entity(BaseModel):
    """An entity."""

    name: str
    id: Annotated[str, Field(description="Unique, where names are not.")]
    facts: int


class RuleShown(BaseModel):
    """A rule with its statistics."""

    number: Annotated[int, Field(description="By which its picture is asked for.")]
    text: str
    sentence: str
    head: str
    body: list[str]
    weight: float | None
    confidence: Annotated[
        float, Field(description="Mean share of its walks that arrive at the answer.")
    ]
    support: Annotated[int, Field(description="Training facts whose answer it reaches.")]
    fired: Annotated[int, Field(description="Training facts where it applies.")]
    facts: Annotated[int, Field(description="Training facts that were asked.")]
    length: int
    sampled: Annotated[bool, Field(description="Whether a count is an estimate.")]


class RulePage(BaseModel):
    """Some of the rules that were asked for."""

    total: int
    rules: list[RuleShown]


class AnswerShown(BaseModel):
    """One candidate."""

    rank: int
    candidate: str
    id: str
    score: float
    share: Annotated[float, Field(description="Of all candidates; they sum to 1.")]
    known: Annotated[
        bool, Field(description="Whether train has it as an answer at a touching time.")
    ]


class Prediction(BaseModel):
    """The best candidates of a query, the best first."""

    query: QueryShown
    answers: list[AnswerShown]


class FactsOverTime(BaseModel):
    """How many facts start when."""

    bins: Annotated[list[int], Field(description="Where bars begin, and where the last ends.")]
    texts: Annotated[list[str], Field(description="The same as dates.")]
    splits: Annotated[dict[str, list[int]], Field(description="Facts of each bar.")]
    unknown: Annotated[int, Field(description="Facts without a start.")]
    outside: Annotated[int, Field(description="Facts whose start is in no bar.")]


class DataSummary(BaseModel):
    """What the model was learned from."""

    inspection: Annotated[dict[str, Any], Field(description="What `tilp inspect --json` prints.")]
    over_time: FactsOverTime


class FactShown(BaseModel):
    """A fact."""

    subject: str
    relation: str
    object: str
    start: Annotated[str, Field(description="As it was written; empty: not known.")]
    end: str
    from_: Annotated[
        int | None, Field(alias="from", description="A number, if it is known and not open.")
    ]
    to: int | None
    split: str


class EntityFacts(BaseModel):
    """Some facts of an entity, by their start."""

    entity: str
    id: str
    total: int
    facts: list[FactShown]
