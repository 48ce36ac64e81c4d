"""`/openapi.json`: the schema of the paths, with examples that the served model answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tilp.web.served import Served

__all__ = ["documented"]


def documented(app: FastAPI, served: Served) -> Callable[[], dict[str, Any]]:
    """What makes an app's schema; examples are there once the model is warm."""
    made: dict[bool, dict[str, Any]] = {}

    def openapi() -> dict[str, Any]:
        if served.ready not in made:
            made[served.ready] = schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
            )
            if served.ready:
                _add_examples(schema, served.views.summary["example"])
        return made[served.ready]

    return openapi


def _add_examples(schema: dict[str, Any], example: dict[str, Any]) -> None:
    query = {name: value for name, value in example.items() if value is not None}
    bodies = {
        "predict": {**query, "k": 10},
        "predict/batch": {"queries": [query, {**query, "start": None, "end": None}], "k": 3},
        "explain": {**query, "groundings": 3, "reasons": 20},
        "picture": {**query, "candidate": query["subject"], "facts": [{"number": 0}]},
    }
    names = {"text": query["subject"][:3], "entity": query["subject"]}
    names |= {"relation": query["relation"], "body": query["relation"]}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["example"] = bodies[path.removeprefix("/api/v1/")]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in names:
                    parameter["example"] = names[parameter["name"]]
