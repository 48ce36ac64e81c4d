"""The paths under `/api/v1`: thin, over the views of a model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from starlette.responses import StreamingResponse

from tilp.errors import TilpError
from tilp.rules.picture import draw_rule
from tilp.scoring import Predictions
from tilp.scoring import Query as Question
from tilp.types import RuleOrder
from tilp.web import schemas
from tilp.web.errors import Code, ServiceError, error_of
from tilp.web.served import Served
from tilp.web.views import RuleChoice, draw_facts, rule_json

__all__ = ["BATCH", "PREFIX", "api_router"]

PREFIX = "/api/v1"
BATCH = "/predict/batch"

_NAME = 1_000
_SVG = "image/svg+xml"
Limit = Annotated[int, Query(ge=1, le=500, description="How many.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="How many are left out before them.")]
Text = Annotated[str, Query(max_length=_NAME)]


def api_router(served: Served) -> APIRouter:
    """All that is asked of a model."""
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": schemas.Error, "description": words}
        for status, words in (
            (404, "A name that is not known, with near ones."),
            (422, "A part of the request that is missing, or not as described here."),
            (503, "Not warm yet, too busy, or too slow; `Retry-After` says when to ask again."),
        )
    }
    bodies: dict[int | str, dict[str, Any]] = {
        status: {"model": schemas.Error, "description": words}
        for status, words in (
            (
                400,
                "A body that is not JSON, or dates that cannot be read or contradict each other.",
            ),
            (408, "A body that did not arrive in time."),
            (413, "A body that is too large."),
            (415, "A body that is not sent as JSON."),
        )
    }
    router = APIRouter(prefix=PREFIX, responses=errors)

    @router.get("/model", response_model=schemas.ModelSummary, tags=["model"])
    async def model() -> Any:
        """What is served, and a query to begin with."""
        return served.views.summary

    @router.get("/relations", response_model=list[schemas.Relation], tags=["data"])
    async def relations() -> Any:
        """All relations, with how many facts and rules they have."""
        direct, inverse = served.views.rules.counts()
        return [
            {"name": name, "facts": facts, "rules": rules, "inverse_rules": others}
            for (name, facts), rules, others in zip(
                served.views.data.relations(), direct, inverse, strict=True
            )
        ]

    @router.get("/entities", response_model=list[schemas.Entity], tags=["data"])
    async def entities(text: Text = "", limit: Limit = 10) -> Any:
        """Entities whose names begin with a text, then those that have it inside.

        Of each kind those with most facts come first; capital letters do not matter.
        """
        views = served.views
        with served.desk.place():
            return await served.desk.compute(views.data.entities, text, limit)

    @router.get("/rules", response_model=schemas.RulePage, tags=["rules"])
    async def rules(
        relation: Annotated[str, Query(max_length=_NAME, description="That is predicted.")] = "",
        inverse: Annotated[
            bool, Query(description="Rules that ask for its subject, not its object.")
        ] = False,
        sort: Annotated[RuleOrder, Query(description="By what.")] = RuleOrder.WEIGHT,
        order: Annotated[Literal["desc", "asc"], Query(description="Greatest first?")] = "desc",
        min_confidence: Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)] = 0.0,
        min_support: Annotated[int, Query(ge=0, le=10**9)] = 0,
        length: Annotated[int | None, Query(ge=1, le=9, description="Of the body.")] = None,
        body: Annotated[
            str, Query(max_length=_NAME, description="A relation in the body, either direction.")
        ] = "",
        temporal: Annotated[
            str, Query(max_length=_NAME, description="A word for two intervals, as `before`.")
        ] = "",
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> Any:
        """Rules that meet all conditions, sorted, page by page."""
        views = served.views
        choice = RuleChoice(
            relation=relation or None,
            inverse=inverse,
            body=body or None,
            temporal=temporal or None,
            length=length,
            min_confidence=min_confidence,
            min_support=min_support,
            sort=sort,
            descending=order == "desc",
        )

        def page() -> dict[str, Any]:
            found = views.rules.choose(choice)
            shown = found[offset : offset + limit].tolist()
            listed = [
                {"number": number, **rule_json(views.rules.rules[number])} for number in shown
            ]
            return {"total": len(found), "rules": listed}

        with served.desk.place():
            return await served.desk.compute(page)

    @router.get(
        "/rules/{number}/picture.svg",
        response_class=Response,
        responses=_picture("The rule as a chain, and one way in which its intervals can lie."),
        tags=["rules"],
    )
    async def rule_picture(
        number: Annotated[int, Path(ge=0, le=10**9, description="As `/rules` gives it.")],
    ) -> Response:
        """A picture of a rule."""
        rules = served.views.rules.rules
        if number >= len(rules):
            raise ServiceError(
                Code.NOT_FOUND, f"there are {len(rules):,} rules, numbered from 0; none is {number}"
            )
        with served.desk.place():
            drawn = await served.desk.compute(draw_rule, rules[number].rule)
        return Response(drawn, media_type=_SVG)

    @router.post("/predict", response_model=schemas.Prediction, responses=bodies, tags=["ask"])
    async def predict(request: schemas.PredictRequest) -> Any:
        """The best candidates for the missing end of a fact."""
        views = served.views
        with served.desk.place():
            found = await served.desk.compute(views.asker.ask, request.query, request.k)
        return {"query": asdict(found.query), "answers": [asdict(answer) for answer in found]}

    @router.post(
        BATCH,
        response_class=StreamingResponse,
        responses={
            **bodies,
            200: {
                "description": "One JSON object a line, in the order of the queries.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            },
        },
        tags=["ask"],
    )
    async def predict_batch(request: schemas.BatchRequest) -> StreamingResponse:
        """The best candidates of many queries, sent as they are found.

        Each line is an object with the `number` of the query, the `query`, and `answers` as in
        `/predict`, or the `error` of this query alone.
        """
        queries = [one.query for one in request.queries]
        lines = _lines(served, queries, request.k)
        first = await anext(lines)  # what is refused at once has a status of its own
        return StreamingResponse(_all(first, lines), media_type="application/x-ndjson")

    @router.post("/explain", response_model=schemas.Explained, responses=bodies, tags=["ask"])
    async def explain(request: schemas.ExplainRequest) -> Any:
        """Why a candidate is where it is: the rules, facts and features behind its score.

        The scores of `reasons` and of the `rest` that is not shown add up to the candidate's.
        For one that is not the winner, `lacks` tells what the winner has more or less of.
        """
        views = served.views
        with served.desk.place():
            return await served.desk.compute(
                views.asker.explain,
                request.query,
                request.candidate,
                groundings=request.groundings,
                reasons=request.reasons,
                pictures=request.pictures,
            )

    @router.post(
        "/picture",
        response_class=Response,
        responses={**bodies, **_picture("The facts as a chain, and when they held.")},
        tags=["ask"],
    )
    async def picture(request: schemas.PictureRequest) -> Response:
        """A picture of one grounding that `/explain` told."""
        graph = served.views.data.graph
        steps = [(one.number, one.inverse) for one in request.facts]
        with served.desk.place():
            drawn = await served.desk.compute(
                draw_facts, graph, request.query, request.candidate, steps
            )
        return Response(drawn, media_type=_SVG)

    @router.get("/data", response_model=schemas.DataSummary, tags=["data"])
    async def data() -> Any:
        """What is in the facts and what is wrong with them, and how many start when."""
        return served.views.data.summary

    @router.get("/facts", response_model=schemas.EntityFacts, tags=["data"])
    async def facts(
        entity: Annotated[str, Query(min_length=1, max_length=_NAME, description="Name or id.")],
        offset: Offset = 0,
        limit: Limit = 100,
    ) -> Any:
        """The facts of one entity, in all splits, by their start; undated ones last."""
        views = served.views
        with served.desk.place():
            return await served.desk.compute(views.data.facts, entity, offset, limit)

    return router


def _picture(description: str) -> dict[int | str, dict[str, Any]]:
    """How an answer that is a picture is documented."""
    content = {_SVG: {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": content}}


async def _lines(served: Served, queries: Sequence[Question], k: int) -> AsyncIterator[bytes]:
    """The answers of a batch, chunk by chunk; between two of them others have their turn."""
    asker, size = served.views.asker, served.limits.chunk

    def chunk(begin: int) -> bytes:
        part = queries[begin : begin + size]
        found = asker.ask_each(part, k)
        return b"".join(
            _line(begin + place, query, one)
            for place, (query, one) in enumerate(zip(part, found, strict=True))
        )

    with served.desk.place():
        for begin in range(0, len(queries), size):
            try:
                yield await served.desk.compute(chunk, begin)
            except ServiceError as failure:
                if not begin:
                    raise
                part = enumerate(queries[begin : begin + size], start=begin)
                yield b"".join(_line(number, query, failure) for number, query in part)


def _line(number: int, query: Question, found: Predictions | TilpError | ServiceError) -> bytes:
    line: dict[str, Any] = {"number": number, "query": asdict(query)}
    if isinstance(found, Predictions):
        line["answers"] = [asdict(one) for one in found]
    else:
        error = found if isinstance(found, ServiceError) else error_of(found)
        line["error"] = error.to_json()
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


async def _all(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for one in others:
        yield one
