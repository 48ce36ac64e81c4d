"""Requests and responses of the API, as `/openapi.json` documents them."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tilp.scoring import Query
from tilp.scoring.scorer import ReasonKind
from tilp.types import RuleOrder

_MAX_TIME = 10**17  # sums of larger times would not fit into 64 bits


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("give a whole number")
    return value


def _check_date(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    time = _check_number(value)
    if not -_MAX_TIME <= time <= _MAX_TIME or time != int(time):
        raise ValueError("a date is text, as 1952-05-17, or a whole number in the data's unit")
    return int(time)


Name = Annotated[str, Field(min_length=1, max_length=1_000)]
Whole = BeforeValidator(_check_number)
DateText = Annotated[str, Field(max_length=64)]
Time = Annotated[int, Field(ge=-_MAX_TIME, le=_MAX_TIME, strict=True)]
Date = Annotated[DateText | Time | None, BeforeValidator(_check_date)]
K = Annotated[int, Field(ge=1, le=1_000, description="Number of candidates."), Whole]
FilterName = Annotated[str, Field(max_length=1_000)]
Limit = Annotated[int, Field(ge=1, le=500, description="Greatest number of results.")]
Offset = Annotated[int, Field(ge=0, le=10**9, description="Results to skip.")]
FactId = Annotated[int, Field(ge=0, le=_MAX_TIME, description="As in explanations."), Whole]


class _Request(BaseModel):
    """Body without unknown fields; the error names only the first of them."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, data: Any) -> Any:
        for field in data if isinstance(data, dict) else ():
            if field not in cls.model_fields:
                name, known = field.encode("utf-8", "replace").decode()[:50], cls.model_fields
                raise ValueError(f"no field is named {name!r}; there are {', '.join(known)}")
        return data


_SUBJECT_OR_OBJECT: dict[str, Any] = {
    "oneOf": [
        {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}
        for given, other in (("subject", "object"), ("object", "subject"))
    ]
}


class QueryRequest(_Request):
    """Query for the object of a fact, if its subject is given, or for its subject."""

    model_config = ConfigDict(json_schema_extra=_SUBJECT_OR_OBJECT)

    relation: Name = Field(description="Name or id.")
    subject: Name | None = Field(None, description="Name or id; predicts the object.")
    object: Name | None = Field(None, description="Name or id; predicts the subject.")
    start: Date = Field(
        None,
        description="A date as people write it (1952, 1952-05, 1952-05-17, with # for unknown "
        "digits), or a number in the unit of the data; null if unknown.",
    )
    end: Date = Field(None, description="Likewise; `present` if it has not ended.")

    @model_validator(mode="after")
    def _check_subject_or_object(self) -> Self:
        if (self.subject is None) == (self.object is None):
            raise ValueError("give the subject or the object, not both: the other is predicted")
        return self

    @property
    def query(self) -> Query:
        """The query itself."""
        return Query(self.relation, self.subject, self.object, self.start, self.end)


class PredictRequest(QueryRequest):
    """One query."""

    k: K = 10


class TimeRequest(_Request):
    """A fact whose start and end, or one of them, are predicted."""

    subject: Name = Field(description="Name or id.")
    relation: Name = Field(description="Name or id.")
    object: Name = Field(description="Name or id.")
    start: Date = Field(None, description="If it is known, the end is predicted.")
    end: Date = Field(None, description="If it is known, the start is predicted.")
    at: Date = Field(None, description="Return also the probability that it holds at this date.")
    k: K = 10


class BatchRequest(_Request):
    """Many queries."""

    queries: list[QueryRequest] = Field(min_length=1, max_length=10_000)
    k: K = 10


class ExplainRequest(QueryRequest):
    """A query and one of its candidates."""

    candidate: Name | None = Field(None, description="Name or id; by default the best candidate.")
    against: Name | None = Field(
        None,
        description="Name or id of the candidate to compare it with; by default the best one, or "
        "the second for the best itself.",
    )
    without: list[FactId] = Field(
        [], max_length=100, description="Facts to leave out of the evidence, by their `id`."
    )
    groundings: Annotated[
        int, Field(ge=0, le=20, description="Most groundings per reason."), Whole
    ] = 3
    reasons: Annotated[
        int, Field(ge=1, le=200, description="Most reasons, those that decide first."), Whole
    ] = 20
    pictures: bool = Field(
        False,
        description="Draw the groundings of reasons; this takes longer than the explanation "
        "itself, and `/picture` draws one at a time.",
    )


class Step(_Request):
    """A fact as a walk reads it."""

    id: FactId
    inverse: bool = Field(False, strict=True, description="Read from object to subject.")


class PictureRequest(QueryRequest):
    """A grounding of a candidate, as in an explanation."""

    candidate: Name = Field(description="Name or id.")
    facts: list[Step] = Field(min_length=1, max_length=16)


class RulesRequest(BaseModel):
    """Conditions on rules, and which page of them to list."""

    relation: FilterName = Field("", description="The relation that they predict.")
    inverse: bool = Field(False, description="Rules that predict its subject, not its object.")
    sort: RuleOrder = Field(
        RuleOrder.GAIN, description="What to sort by; gain: by weight where it is unknown."
    )
    order: Literal["desc", "asc"] = Field("desc", description="Largest or smallest first.")
    min_confidence: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    min_support: int = Field(0, ge=0, le=10**9)
    length: int | None = Field(None, ge=1, le=9, description="Length of the body.")
    body: FilterName = Field("", description="A relation in the body, either direction.")
    temporal: FilterName = Field("", description="A temporal relation, such as `before`.")
    offset: Offset = 0
    limit: Limit = 50


class Health(BaseModel):
    """State of the service."""

    status: str


class ErrorDetail(BaseModel):
    """Code and message of an error."""

    code: str = Field(description="For programs.", examples=["unknown_name"])
    message: str = Field(description="What is wrong, and the remedy.")
    near: list[str] = Field(description="Similar names.")


class Error(BaseModel):
    """Response to a request that failed."""

    error: ErrorDetail


class QueryOut(BaseModel):
    """A query as it was sent."""

    relation: str
    subject: str | None
    object: str | None
    start: str | int | None
    end: str | int | None


class SplitCounts(BaseModel):
    """Number of facts in each split."""

    train: int
    valid: int
    test: int


class ModelSummary(BaseModel):
    """The model that is served."""

    name: str
    version: str = Field(description="Version of tilp.")
    unit: str = Field(description="Unit of time: year, month, day or integer.")
    task: str = Field(description="`complete` missing facts, or `forecast` what comes next.")
    evidence: str = Field(description="Which facts answers rest on.")
    features: str
    max_length: int = Field(description="Greatest length of rules.")
    entities: int
    relations: int
    rules: int
    words: list[str] = Field(description="Temporal relations in rules.")
    facts: SplitCounts
    example: QueryOut = Field(description="A query with a good answer.")


class Relation(BaseModel):
    """A relation."""

    name: str
    facts: int
    rules: int = Field(description="Rules that predict its objects.")
    inverse_rules: int = Field(description="Rules that predict its subjects.")


class Entity(BaseModel):
    """An entity."""

    name: str
    id: str = Field(description="Unique, where names are not.")
    facts: int


class RuleOut(BaseModel):
    """A rule with its statistics."""

    number: int = Field(description="Its number in the path of its picture.")
    text: str
    sentence: str
    head: str
    body: list[str]
    gain: float | None = Field(
        description="Fall of the mean held-out log-likelihood without it, in nats per query."
    )
    weight: float | None
    support: int = Field(description="Training facts whose answer it reaches.")
    body_support: int = Field(description="Training facts where its body holds.")
    fired: int = Field(description="The same, under its old name.")
    confidence: float = Field(description="Mean share of its walks that arrive at the answer.")
    lift: float | None = Field(description="Confidence over that of a guess by popularity.")
    facts: int = Field(description="Training facts it was counted on.")
    length: int
    sampled: bool = Field(description="Whether the counts are estimates.")


class RulePage(BaseModel):
    """Some of the rules that meet the conditions."""

    total: int
    rules: list[RuleOut]


class AnswerOut(BaseModel):
    """One candidate."""

    rank: int
    candidate: str
    id: str
    score: float
    share: float = Field(description="Share of all candidates; shares sum to 1.")
    known: bool = Field(description="Whether train has it as an answer at an overlapping time.")
    source: str | None = Field(description="File and line of the first fact that makes it known.")


class KnownFactOut(BaseModel):
    """A training fact that answers a query at the time asked for."""

    id: int = Field(description="Row of the fact in the data.")
    subject: str
    relation: str
    object: str
    start: str = Field(description="As it was written; empty if unknown.")
    end: str
    source: str = Field(description="File and line it was read from, or `unknown`.")


class Prediction(BaseModel):
    """The candidates of a query, the best first, and facts that answer it already."""

    query: QueryOut
    known: list[KnownFactOut] = Field(description="No more than `answers`, the earliest first.")
    known_total: int = Field(description="How many known facts there are.")
    answers: list[AnswerOut]


class FactsOverTime(BaseModel):
    """Histogram of the starts of facts."""

    bins: list[int] = Field(description="Starts of the bins, and the end of the last.")
    texts: list[str] = Field(description="The same as dates.")
    splits: dict[str, list[int]] = Field(description="Facts in each bin.")
    unknown: int = Field(description="Facts without a start.")
    outside: int = Field(description="Facts whose start is in no bin.")


class DataSummary(BaseModel):
    """The data of the model."""

    inspection: dict[str, Any] = Field(description="As `tilp inspect --json` prints.")
    over_time: FactsOverTime


class FactOut(KnownFactOut):
    """A fact of an entity."""

    from_: int | None = Field(
        alias="from", description="The start as a number, if known and bounded."
    )
    to: int | None
    split: str


class EntityFacts(BaseModel):
    """Some facts of an entity, by their start."""

    entity: str
    id: str
    total: int
    facts: list[FactOut]


class WalkedFactOut(BaseModel):
    """A fact as a walk reads it."""

    id: int = Field(description="Row of the fact in the data; what `without` takes.")
    subject: str
    relation: str
    object: str
    start: str | None
    end: str | None
    inverse: bool = Field(description="Whether it is read from object to subject.")


class GroundingOut(BaseModel):
    """The dated facts of one walk, in order; or one fact of the candidate."""

    facts: list[WalkedFactOut]
    svg: str | None = Field(None, description="A picture, if requested.")


class MemberOut(BaseModel):
    """One contribution to a score, of those that a reason sums up."""

    kind: str = Field(description="Its source, such as `rule`, `prior` or `random walks`.")
    score: float
    text: str
    walks: int = Field(description="Number of its groundings.")
    rule: dict[str, Any] | None = Field(
        description="Its formula, `text`, and statistics as in `/rules`."
    )
    picture: str | None = Field(None, description="How soon the rule's head follows, as SVG.")


class ReasonOut(BaseModel):
    """All contributions of one piece of evidence."""

    kind: ReasonKind = Field(
        description="`chain`: facts that lead from the query's entity to the candidate; "
        "`candidate`: facts of the candidate alone; `prior`: how common it is; `connection`: "
        "random walks that no chain stands for; `rest`: what cannot be attributed."
    )
    relations: list[str] = Field(
        description="The chain of relations, with ⁻¹ where one is read from object to subject."
    )
    sentence: str
    score: float = Field(description="Its contribution to the candidate's score.")
    rival: float = Field(description="The contribution of the same evidence to the rival's.")
    margin: float = Field(description="The first less the second.")
    same: bool = Field(description="Whether the two are the same, within a hundredth.")
    of_rival: bool = Field(
        description="Whether the candidate has no such evidence; the facts are then the rival's."
    )
    walks: int = Field(description="Number of groundings of the member that has most.")
    groundings: list[GroundingOut] = Field(description="The sentence is on the first of them.")
    members: list[MemberOut] = Field(description="Their scores add up to that of the reason.")


class ReasonsRest(BaseModel):
    """The reasons that are not listed."""

    count: int
    score: float
    rival: float


class StandingOut(BaseModel):
    """Rank and score of the candidate, and the best candidate, on other evidence."""

    rank: int
    score: float
    share: float
    winner: str


class AblationOut(BaseModel):
    """The effect of leaving out the facts of the first reason in favour."""

    facts: list[WalkedFactOut]
    share: float = Field(description="Share of the score that the reason contributes.")
    score: float = Field(description="The score without them.")
    drop: float = Field(description="How much less that is.")


class ExplanationOut(BaseModel):
    """Why a candidate has its rank, against another one, its rival."""

    query: QueryOut
    claim: str = Field(description="The fact that the candidate makes of the query, in words.")
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    winner: str = Field(description="The best candidate.")
    rival: str = Field(description="The candidate it is compared with; empty if there is none.")
    rival_rank: int
    rival_score: float
    reasons: list[ReasonOut] = Field(description="Those that decide first.")
    rest: ReasonsRest
    ablation: AblationOut | None
    known_facts: list[KnownFactOut] = Field(description="Facts that answer the query already.")
    removed: list[WalkedFactOut] = Field(description="Facts left out, as the request asked.")
    before: StandingOut | None = Field(description="Rank and score with them.")
