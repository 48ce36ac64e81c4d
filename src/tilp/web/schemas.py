"""Requests and responses of the API, as `/openapi.json` documents them."""

import tomllib
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tilp.scoring import Query
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


class TimeRequest(_Request):
    """A fact whose start and end, or one of them, are predicted."""

    subject: Name = about("Name or id.")
    relation: Name = about("Name or id.")
    object: Name = about("Name or id.")
    start: Date = about("If it is known, the end is predicted.", None)
    end: Date = about("If it is known, the start is predicted.", None)
    at: Date = about("Return also the probability that it holds at this date.", None)
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


def _schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of a type as `responses.toml` writes it."""
    if "|" in kind:
        return {"anyOf": [_schema(part) for part in kind.split("|")]}
    if kind.startswith("["):
        return {"type": "array", "items": _schema(kind[1:-1])}
    return {"$ref": f"#/components/schemas/{kind}"} if kind[0].isupper() else {"type": kind}


def _response_schema(about: str, **fields: str | list[str]) -> dict[str, Any]:
    properties = {}
    for name, field in fields.items():
        kind, *text = [field] if isinstance(field, str) else field
        properties[name] = _schema(kind) | ({"description": text[0]} if text else {})
    return {"type": "object", "description": about, "properties": properties, "required": [*fields]}


_TEXT = files("tilp.web").joinpath("responses.toml").read_text("utf-8")
RESPONSES = {name: _response_schema(**table) for name, table in tomllib.loads(_TEXT).items()}
"""Schemas of what the API returns, by name."""


def returns(kind: str, description: str = "Successful Response") -> dict[str, Any]:
    """Return the description of a response, as FastAPI takes it."""
    content = {"application/json": {"schema": _schema(kind)}}
    return {"description": description, "content": content}
