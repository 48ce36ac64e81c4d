"""Paths under `/api/v1`."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Response
from starlette.responses import StreamingResponse

from tilp import scoring
from tilp.errors import TilpError
from tilp.web import schemas
from tilp.web.errors import Code, ServiceError, from_tilp_error
from tilp.web.state import ServiceState

PREFIX = "/api/v1"
BATCH = "/predict/batch"

_SVG, _LINES = "image/svg+xml", "application/x-ndjson"
_ERRORS = {
    404: "An unknown name, with similar ones.",
    422: "A part of the request is missing, or not as described here.",
    503: "Not warm yet, too busy, or too slow; `Retry-After` says when to try again.",
}
_BODY_ERRORS = {
    400: "The body is not JSON, or dates cannot be read or contradict each other.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
}
Responses = dict[int | str, dict[str, Any]]
NameQuery = partial(Query, max_length=1_000)


def api_router(state: ServiceState) -> APIRouter:
    """Return the paths that read a model."""
    body_errors = _error_responses(_BODY_ERRORS)
    router = APIRouter(prefix=PREFIX, responses=_error_responses(_ERRORS))
    ask = partial(router.post, tags=["ask"])

    @router.get("/model", responses={200: schemas.returns("ModelSummary")}, tags=["model"])
    async def model() -> Any:
        """Describe the model, with an example of a query."""
        return state.views.summary

    @router.get("/relations", responses={200: schemas.returns("[Relation]")}, tags=["data"])
    async def relations() -> Any:
        """List all relations with their numbers of facts and rules."""
        graph, rules = state.views.data.graph, state.views.rules.counts()
        facts = np.bincount(graph.relation, minlength=len(graph.relations)).tolist()
        counted = zip(graph.relations, facts, strict=True)
        directions = {"rules": False, "inverse_rules": True}
        return [
            {"name": name, "facts": count}
            | {key: rules.get((name, inverse), 0) for key, inverse in directions.items()}
            for name, count in counted
        ]

    @router.get("/entities", responses={200: schemas.returns("[Entity]")}, tags=["data"])
    async def entities(text: Annotated[str, NameQuery()] = "", limit: schemas.Limit = 10) -> Any:
        """List entities whose names start with a text, then those that contain it.

        Among equals, those with most facts come first. Case does not matter.
        """
        return await state.queue.run(state.views.data.entities, text, limit)

    @router.get("/rules", responses={200: schemas.returns("RulePage")}, tags=["rules"])
    async def rules(wanted: Annotated[schemas.RulesRequest, Query()]) -> Any:
        """List the rules that meet all conditions, sorted, page by page."""
        view = state.views.rules

        def page() -> dict[str, Any]:
            conditions = wanted.model_dump(exclude={"order", "offset", "limit"})
            found = view.select(**conditions, descending=wanted.order == "desc")
            shown = found[wanted.offset : wanted.offset + wanted.limit].tolist()
            rules = [{"number": index, **view.json(index)} for index in shown]
            return {"total": len(found), "rules": rules}

        return await state.queue.run(page)

    @router.get(
        "/rules/{number}/picture.svg",
        response_class=Response,
        responses=_text_response(_SVG, "The rule as a chain, and one order of its intervals."),
        tags=["rules"],
    )
    async def rule_picture(
        number: Annotated[int, Path(ge=0, le=10**9, description="The `number` in `/rules`.")],
    ) -> Response:
        """Draw a rule."""
        view = state.views.rules
        if number >= len(view.rules):
            message = f"there are {len(view.rules):,} rules, numbered from 0; none is {number}"
            raise ServiceError(Code.NOT_FOUND, message)
        return Response(await state.queue.run(view.picture, number), media_type=_SVG)

    @ask("/predict", responses=body_errors | {200: schemas.returns("Prediction")})
    async def predict(request: schemas.PredictRequest) -> Any:
        """Return the best candidates for the missing subject or object of a fact."""
        answers = await state.queue.run(state.views.model.predict, request.query, request.k)
        return {"query": asdict(answers.query), **_prediction_json(answers)}

    lines_of_json = _text_response(_LINES, "One JSON object a line, in the order of the queries.")

    @ask(BATCH, response_class=StreamingResponse, responses=body_errors | lines_of_json)
    async def predict_batch(request: schemas.BatchRequest) -> StreamingResponse:
        """Return the best candidates of many queries, sent as they are computed.

        Each line is an object with the `number` of the query, the `query`, and `answers` as in
        `/predict`, or the `error` of this query alone.
        """
        chunks = _batch_lines(state, [query.query for query in request.queries], request.k)
        first = await anext(chunks)  # before the response starts, an error still has a status

        async def lines() -> AsyncIterator[bytes]:
            yield first
            async for chunk in chunks:
                yield chunk

        return StreamingResponse(lines(), media_type=_LINES)

    @ask("/when", responses=body_errors)
    async def when(request: schemas.TimeRequest) -> dict[str, Any]:
        """Predict when a fact starts and ends: intervals, distributions, reasons.

        The contributions of a side's reasons add up from the logit of the chosen date in `prior`
        to that of the answer. `holds` is the probability that the fact holds `at` a date.
        """
        return await state.queue.run(state.views.model.when, **request.model_dump())

    @ask("/explain", responses=body_errors | {200: schemas.returns("ExplanationOut")})
    async def explain(request: schemas.ExplainRequest) -> Any:
        """Explain the rank of a candidate: the facts behind its score, against a rival's.

        The scores of `reasons` and `rest` add up to the candidate's score, and what they give the
        `rival` to its score.
        """
        answer = partial(state.views.model.explain, request.query, request.candidate)
        compared = {"against": request.against, "without": request.without}
        counts = {"groundings": request.groundings, "reasons": request.reasons}
        return await state.queue.run(answer, **compared, **counts, pictures=request.pictures)

    drawing = _text_response(_SVG, "The facts as a chain, and their times.")

    @ask("/picture", response_class=Response, responses=body_errors | drawing)
    async def picture(request: schemas.PictureRequest) -> Response:
        """Draw one grounding of an explanation."""
        steps = [(step.id, step.inverse) for step in request.facts]
        draw = partial(state.views.model.draw_facts, request.query, request.candidate)
        svg = await state.queue.run(draw, steps)
        return Response(svg, media_type=_SVG)

    @router.get("/data", responses={200: schemas.returns("DataSummary")}, tags=["data"])
    async def data() -> Any:
        """Summarise the facts and their defects, and count facts over time."""
        return state.views.data.summary

    @router.get("/facts", responses={200: schemas.returns("EntityFacts")}, tags=["data"])
    async def facts(
        entity: Annotated[str, NameQuery(min_length=1, description="Name or id.")],
        offset: schemas.Offset = 0,
        limit: schemas.Limit = 100,
    ) -> Any:
        """List the facts of an entity, in all splits, by their start; undated ones last."""
        return await state.queue.run(state.views.data.facts, entity, offset, limit)

    return router


def _error_responses(descriptions: dict[int, str]) -> Responses:
    return {status: schemas.returns("Error", text) for status, text in descriptions.items()}


def _text_response(media_type: str, description: str) -> Responses:
    content = {media_type: {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": content}}


async def _batch_lines(
    state: ServiceState, queries: Sequence[scoring.Query], k: int
) -> AsyncIterator[bytes]:
    """Yield the lines of a batch, chunk by chunk; other requests get a turn in between."""
    model, size = state.views.model, state.limits.chunk

    def answer(begin: int) -> bytes:
        chunk = queries[begin : begin + size]
        results = model.predict_each(chunk, k)
        return b"".join(
            _line(number, query, result)
            for number, (query, result) in enumerate(zip(chunk, results, strict=True), begin)
        )

    with state.queue.slot():
        for begin in range(0, len(queries), size):
            try:
                yield await state.queue.compute(answer, begin)
            except ServiceError as error:
                if not begin:
                    raise
                chunk = enumerate(queries[begin : begin + size], begin)
                yield b"".join(_line(number, query, error) for number, query in chunk)


def _prediction_json(result: scoring.Predictions) -> dict[str, Any]:
    known = [asdict(fact) for fact in result.known[: len(result)]]
    answers = [asdict(answer) for answer in result]
    return {"known": known, "known_total": len(result.known), "answers": answers}


def _line(
    number: int, query: scoring.Query, result: scoring.Predictions | TilpError | ServiceError
) -> bytes:
    line: dict[str, Any] = {"number": number, "query": asdict(query)}
    if isinstance(result, scoring.Predictions):
        line |= _prediction_json(result)
    else:
        error = result if isinstance(result, ServiceError) else from_tilp_error(result)
        line["error"] = error.to_json()
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"
