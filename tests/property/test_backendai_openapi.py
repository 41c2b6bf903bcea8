"""Whatever is sent to the calls of Backend.AI's door, it answers by their models, and never with a defect.

Property: for every call and every generated request, valid or not, the status is below 500, a refusal is a problem as
upstream words it, and an answer conforms to the model of its call.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from pydantic.json_schema import models_json_schema
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.responses import JSONResponse

from holdfast.api.backendai.routing import ROUTES
from holdfast.api.backendai.serving import BackendAiDoor, DoorSetup
from holdfast.api.budget import MemoryBudget
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.service.operations.backend import Backend
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel
    from starlette.types import Receive, Scope, Send

    from holdfast.api.backendai.routing import BackendAiRoute

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
OWNER = Principal("lab", roles=(Role.ADMIN,))
_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "error_code": {"type": "string", "pattern": "^[a-z-]+(_[a-z-]+){2}$"},
    },
    "required": ["type", "title", "error_code"],
}
_REFUSED = {"description": "Refused.", "content": {"application/problem+json": {"schema": _PROBLEM}}}


def answer_of(route: BackendAiRoute) -> type[BaseModel] | None:
    """Return the model of what a call answers, now or later; ``None`` if it answers nothing."""
    kind = get_type_hints(route.handler)["return"]
    kind = get_args(kind)[0] if get_origin(kind) is not None else kind
    return None if kind is type(None) else kind


def described() -> dict[str, Any]:
    """Describe the calls as an OpenAPI document."""
    routes = list(ROUTES)
    models = {(model, "validation") for route in routes for model in (route.body, route.query, route.parts) if model}
    answers = {(model, "serialization") for route in routes if (model := answer_of(route)) is not None}
    schemas, definitions = models_json_schema([*models, *answers], ref_template="#/components/schemas/{model}")  # type: ignore[list-item]  # pairs
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        answer = answer_of(route)
        content = {"application/json": {"schema": schemas[answer, "serialization"]}} if answer else {}
        operation: dict[str, Any] = {
            "parameters": [*_parameters(route.parts, "path"), *_parameters(route.query, "query")],
            "responses": {
                str(route.status if answer else 204): {"description": "Done.", "content": content},
                **dict.fromkeys(("400", "403", "404", "405", "409", "413", "415", "429"), _REFUSED),
            },
        }
        if route.body is not None:
            body = {"application/json": {"schema": schemas[route.body, "validation"]}}
            operation["requestBody"] = {"required": True, "content": body}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    components = {"schemas": {name: _shallow(schema) for name, schema in definitions.get("$defs", {}).items()}}
    return {"openapi": "3.1.0", "info": {"title": "door", "version": "1"}, "paths": paths, "components": components}


def _shallow(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema
    """Return a schema without filters in filters, and with short lists: to generate deep ones takes minutes."""
    if isinstance(schema, list):
        return [_shallow(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shallow = {name: _shallow(part) for name, part in schema.items() if name not in {"AND", "OR", "NOT"}}
    if "maxItems" in shallow:
        shallow["maxItems"] = min(shallow["maxItems"], 2)
    return shallow


def _parameters(model: type[BaseModel], place: str) -> Iterator[Mapping[str, Any]]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    for name, field in schema.get("properties", {}).items():
        required = place == "path" or name in schema.get("required", ())
        yield {"name": name, "in": place, "required": required, "schema": field}


async def _caller(_: Scope) -> Caller:
    return Caller(OWNER, 0.0, "", "")


def _api() -> schemathesis.BaseSchema:
    backend = Backend(MemoryStore(), VirtualClock(), Counting(), NoLogs(), OWNER)
    door = BackendAiDoor(DoorSetup(backend, _caller, ThreadPoolExecutor(2), MemoryBudget()))
    document = JSONResponse(described())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (document if scope["path"] == "/openapi.json" else door.answer)(scope, receive, send)

    api = schemathesis.openapi.from_asgi("/openapi.json", app)
    # Filters contain filters: all that there are to cover of them would be millions.
    api.config.phases.update(phases=["fuzzing"])
    return api


API = _api()


@pytest.mark.slow
@API.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_its_call_has(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=CHECKS)
