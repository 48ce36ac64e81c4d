"""What requests and answers hold, as `/openapi.json` documents it."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tilp.scoring import Query

MOST_ANSWERS = 1_000
MOST_QUERIES = 10_000
MOST_STEPS = 16
_FAR = 10**17
"""Times past it are no times: sums of them would not fit into 64 bits."""


def _whole(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("give a whole number")
    return value


def _date(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    number = _whole(value)
    if not -_FAR <= number <= _FAR or number != int(number):
        raise ValueError("a date is text, as 1952-05-17, or a whole number in the data's unit")
    return int(number)


Name = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Whole = BeforeValidator(_whole)
DateText = Annotated[str, StringConstraints(max_length=64)]
Time = Annotated[int, Field(ge=-_FAR, le=_FAR, strict=True)]
Date = Annotated[DateText | Time | None, BeforeValidator(_date)]


class _Request(BaseModel):
    """A body whose fields are all known; the first that is not is named, and no other looked at."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        if isinstance(data, dict):
            strange = next((name for name in data if name not in cls.model_fields), None)
            if strange is not None:
                shown = strange.encode("utf-8", "replace").decode()[:50]
                raise ValueError(
                    f"no field is named {shown!r}; there are {', '.join(cls.model_fields)}"
                )
        return data


_ONE_END: dict[str, Any] = {
    "oneOf": [
        {
            "required": [given],
            "properties": {given: {"type": "string"}, other: {"type": "null"}},
        }
        for given, other in (("subject", "object"), ("object", "subject"))
    ]
}


class Asked(_Request):
    """A question for the object of a fact, if its subject is given, or for its subject."""

    model_config = ConfigDict(json_schema_extra=_ONE_END)

    relation: Annotated[Name, Field(description="Its name or id.")]
    subject: Annotated[
        Name | None, Field(description="Name or id, where the object is asked for.")
    ] = None
    object: Annotated[
        Name | None, Field(description="Name or id, where the subject is asked for.")
    ] = None
    start: Annotated[
        Date,
        Field(
            description="A date as people write it (1952, 1952-05, 1952-05-17, with # for unknown "
            "digits), or a number in the unit of the data; nothing: not known."
        ),
    ] = None
    end: Annotated[Date, Field(description="Likewise; `present` for one still to come.")] = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.subject is None) == (self.object is None):
            raise ValueError("give the subject or the object, not both: the other is asked for")
        return self

    @property
    def query(self) -> Query:
        """The question itself."""
        return Query(self.relation, self.subject, self.object, self.start, self.end)


K = Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="How many candidates."), Whole]


class PredictRequest(Asked):
    """One query."""

    k: K = 10


class BatchRequest(_Request):
    """Many queries."""

    queries: Annotated[list[Asked], Field(min_length=1, max_length=MOST_QUERIES)]
    k: K = 10


class ExplainRequest(Asked):
    """A query and one of its candidates."""

    candidate: Annotated[
        Name | None, Field(description="Name or id; the best candidate where there is none.")
    ] = None
    groundings: Annotated[
        int, Field(ge=0, le=20, description="Groundings shown of each reason, at most."), Whole
    ] = 3
    reasons: Annotated[int, Field(ge=1, le=200, description="Reasons shown, at most."), Whole] = 20
    pictures: Annotated[
        bool,
        Field(
            description="Whether groundings of reasons come with a picture; this takes longer than "
            "the explanation itself, and `/picture` draws one at a time."
        ),
    ] = False


class Step(_Request):
    """A fact as a walk reads it."""

    number: Annotated[int, Field(ge=0, le=_FAR, description="As explanations tell it."), Whole]
    inverse: Annotated[bool, Field(strict=True, description="Read from object to subject?")] = False


class PictureRequest(Asked):
    """A grounding of a candidate, as an explanation told it."""

    candidate: Annotated[Name, Field(description="Name or id.")]
    facts: Annotated[list[Step], Field(min_length=1, max_length=MOST_STEPS)]


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

    kind: Annotated[str, Field(description="rule, prior, other facts, random walks and so on.")]
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
