"""What requests hold."""

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

from tilp.ranking import Query

__all__ = ["Asked", "BatchRequest", "ExplainRequest", "PictureRequest", "PredictRequest"]

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
