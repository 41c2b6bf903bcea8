"""Writes answers, and says in the OpenAPI document which refusals an endpoint knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import Response

from holdfast.wire.problems import PROBLEM_MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

MEDIA_TYPES = {
    "manifest": ("application/json", "application/yaml"),
    "manifests": ("application/json", "application/yaml", "application/x-ndjson"),
}
_MEANING = {
    401: "No token, or a wrong one.",
    403: "A limit or a policy forbids it.",
    404: "Not found.",
    405: "The method is not allowed.",
    409: "The current state does not allow it.",
    413: "The body is too large.",
    415: "The body's media type is not supported.",
    422: "The request is not valid; `errors` lists every problem.",
    500: "A defect of Holdfast.",
    503: "Not available right now; try again.",
}
PROBLEM_SCHEMA = "#/components/schemas/ProblemDetails"
_ALWAYS = (401, 405, 422, 500, 503)


def answer(model: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Write a model once, without the framework's second validation: lists may be long."""
    text = model.model_dump_json(by_alias=True)
    return Response(text, status_code=status, media_type="application/json", headers=dict(headers or {}))


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the refusals of an endpoint: those given, and those every endpoint has."""
    return {
        status: {
            "description": _MEANING[status],
            "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": PROBLEM_SCHEMA}}},
        }
        for status in sorted({*_ALWAYS, *statuses})
    }


def takes(kind: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Document a body that is read as text of one of several types."""
    content = {media_type: {"schema": dict(schema)} for media_type in MEDIA_TYPES[kind]}
    return {"requestBody": {"required": True, "description": description, "content": content}}
