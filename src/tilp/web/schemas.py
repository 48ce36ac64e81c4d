"""Requests and responses of the API, as `/openapi.json` documents them."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tilp.scoring import Query
from tilp.scoring.scorer import ReasonKind
from tilp.types import RuleOrder


def about(description: str, *default: Any, **checks: Any) -> Any:
    """Return a field with its description, and perhaps a default and checks."""
    return Field(*default, description=description, **checks)


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
K = Annotated[int, about("Number of candidates.", ge=1, le=1_000), Whole]
FilterName = Annotated[str, Field(max_length=1_000)]
Limit = Annotated[int, about("Greatest number of results.", ge=1, le=500)]
Offset = Annotated[int, about("Results to skip.", ge=0, le=10**9)]
FactId = Annotated[int, about("As in explanations.", ge=0, le=_MAX_TIME), Whole]


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

    relation: Name = about("Name or id.")
    subject: Name | None = about("Name or id; predicts the object.", None)
    object: Name | None = about("Name or id; predicts the subject.", None)
    start: Date = about(
        "A date as people write it (1952, 1952-05, 1952-05-17, with # for unknown digits), or a "
        "number in the unit of the data; null if unknown.",
        None,
    )
    end: Date = about("Likewise; `present` if it has not ended.", None)

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


class BatchRequest(_Request):
    """Many queries."""

    queries: list[QueryRequest] = Field(min_length=1, max_length=10_000)
    k: K = 10


class ExplainRequest(QueryRequest):
    """A query and one of its candidates."""

    candidate: Name | None = about("Name or id; by default the best candidate.", None)
    against: Name | None = about("Name or id of the rival; by default the best other one.", None)
    without: list[FactId] = about("Ids of facts to leave out of the evidence.", [], max_length=100)
    groundings: Annotated[int, about("Most groundings per reason.", ge=0, le=20), Whole] = 3
    reasons: Annotated[
        int, about("Most reasons, those that decide first.", ge=1, le=200), Whole
    ] = 20
    pictures: bool = about("Draw all groundings, slowly; `/picture` draws one at a time.", False)


class Step(_Request):
    """A fact as a walk reads it."""

    id: FactId
    inverse: bool = about("Read from object to subject.", False, strict=True)


class PictureRequest(QueryRequest):
    """A grounding of a candidate, as in an explanation."""

    candidate: Name = about("Name or id.")
    facts: list[Step] = Field(min_length=1, max_length=16)


class RulesRequest(BaseModel):
    """Conditions on rules, and which page of them to list."""

    relation: FilterName = about("The relation that they predict.", "")
    inverse: bool = about("Rules that predict its subject, not its object.", False)
    sort: RuleOrder = about("What to sort by; gain: by weight where it is unknown.", RuleOrder.GAIN)
    order: Literal["desc", "asc"] = about("Largest or smallest first.", "desc")
    min_confidence: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    min_support: int = Field(0, ge=0, le=10**9)
    length: int | None = about("Length of the body.", None, ge=1, le=9)
    body: FilterName = about("A relation in the body, either direction.", "")
    temporal: FilterName = about("A temporal relation, such as `before`.", "")
    offset: Offset = 0
    limit: Limit = 50


class Health(BaseModel):
    """State of the service."""

    status: str


class ErrorDetail(BaseModel):
    """Code and message of an error."""

    code: str = about("For programs.", examples=["unknown_name"])
    message: str = about("What is wrong, and the remedy.")
    near: list[str] = about("Similar names.")


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
    version: str = about("Version of tilp.")
    unit: str = about("Unit of time: year, month, day or integer.")
    task: str = about("`complete` missing facts, or `forecast` what comes next.")
    evidence: str = about("Which facts answers rest on.")
    features: str
    max_length: int = about("Greatest length of rules.")
    entities: int
    relations: int
    rules: int
    words: list[str] = about("Temporal relations in rules.")
    facts: SplitCounts
    example: QueryOut = about("A query with a good answer.")


class Relation(BaseModel):
    """A relation."""

    name: str
    facts: int
    rules: int = about("Rules that predict its objects.")
    inverse_rules: int = about("Rules that predict its subjects.")


class Entity(BaseModel):
    """An entity."""

    name: str
    id: str = about("Unique, where names are not.")
    facts: int


class RuleOut(BaseModel):
    """A rule with its statistics."""

    number: int = about("Its number in the path of its picture.")
    text: str
    sentence: str
    head: str
    body: list[str]
    gain: float | None = about("Fall of the held-out log-likelihood without it, in nats per query.")
    weight: float | None
    support: int = about("Training facts whose answer it reaches.")
    body_support: int = about("Training facts where its body holds.")
    fired: int = about("The same, under its old name.")
    confidence: float = about("Mean share of its walks that arrive at the answer.")
    lift: float | None = about("Confidence over that of a guess by popularity.")
    facts: int = about("Training facts it was counted on.")
    length: int
    sampled: bool = about("Whether the counts are estimates.")


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
    share: float = about("Share of all candidates; shares sum to 1.")
    known: bool = about("Whether train has it as an answer at an overlapping time.")
    source: str | None = about("File and line of the first fact that makes it known.")


class KnownFactOut(BaseModel):
    """A training fact that answers a query at the time asked for."""

    id: int = about("Row of the fact in the data.")
    subject: str
    relation: str
    object: str
    start: str = about("As it was written; empty if unknown.")
    end: str
    source: str = about("File and line it was read from, or `unknown`.")


class Prediction(BaseModel):
    """The candidates of a query, the best first, and facts that answer it already."""

    query: QueryOut
    known: list[KnownFactOut] = about("No more than `answers`, the earliest first.")
    known_total: int = about("How many known facts there are.")
    answers: list[AnswerOut]


class FactsOverTime(BaseModel):
    """Histogram of the starts of facts."""

    bins: list[int] = about("Starts of the bins, and the end of the last.")
    texts: list[str] = about("The same as dates.")
    splits: dict[str, list[int]] = about("Facts in each bin.")
    unknown: int = about("Facts without a start.")
    outside: int = about("Facts whose start is in no bin.")


class DataSummary(BaseModel):
    """The data of the model."""

    inspection: dict[str, Any] = about("As `tilp inspect --json` prints.")
    over_time: FactsOverTime


class FactOut(KnownFactOut):
    """A fact of an entity."""

    from_: int | None = about("The start as a number, if known and bounded.", alias="from")
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

    id: int = about("Row of the fact in the data; what `without` takes.")
    subject: str
    relation: str
    object: str
    start: str | None
    end: str | None
    inverse: bool = about("Whether it is read from object to subject.")


class GroundingOut(BaseModel):
    """The dated facts of one walk, in order; or one fact of the candidate."""

    facts: list[WalkedFactOut]
    svg: str | None = about("A picture, if requested.", None)


class MemberOut(BaseModel):
    """One contribution to a score, of those that a reason sums up."""

    kind: str = about("Its source, such as `rule`, `prior` or `random walks`.")
    score: float
    text: str
    walks: int = about("Number of its groundings.")
    rule: dict[str, Any] | None = about("Its formula, `text`, and statistics as in `/rules`.")
    picture: str | None = about("How soon the rule's head follows, as SVG.", None)


class ReasonOut(BaseModel):
    """All contributions of one piece of evidence."""

    kind: ReasonKind = about(
        "`chain`: facts that lead from the query's entity to the candidate; `candidate`: facts of "
        "the candidate alone; `prior`: how common it is; `connection`: random walks that no chain "
        "stands for; `rest`: what cannot be attributed."
    )
    relations: list[str] = about("The chain of relations; ⁻¹ where read from object to subject.")
    sentence: str
    score: float = about("Its contribution to the candidate's score.")
    rival: float = about("The contribution of the same evidence to the rival's.")
    margin: float = about("The first less the second.")
    same: bool = about("Whether the two are the same, within a hundredth.")
    of_rival: bool = about("Whether only the rival has such evidence; the facts are its own.")
    walks: int = about("Number of groundings of the member that has most.")
    groundings: list[GroundingOut] = about("The sentence is on the first of them.")
    members: list[MemberOut] = about("Their scores add up to that of the reason.")


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
    share: float = about("Share of the score that the reason contributes.")
    score: float = about("The score without them.")
    drop: float = about("How much less that is.")


class ExplanationOut(BaseModel):
    """Why a candidate has its rank, against another one, its rival."""

    query: QueryOut
    claim: str = about("The fact that the candidate makes of the query, in words.")
    candidate: str
    rank: int
    score: float
    share: float
    known: bool
    winner: str = about("The best candidate.")
    rival: str = about("The candidate it is compared with; empty if there is none.")
    rival_rank: int
    rival_score: float
    reasons: list[ReasonOut] = about("Those that decide first.")
    rest: ReasonsRest
    ablation: AblationOut | None
    known_facts: list[KnownFactOut] = about("Facts that answer the query already.")
    removed: list[WalkedFactOut] = about("Facts left out, as the request asked.")
    before: StandingOut | None = about("Rank and score with them.")
