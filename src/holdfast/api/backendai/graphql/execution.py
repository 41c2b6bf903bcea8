"""Answers queries and mutations; errors have upstream's codes."""

import logging
from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError
from strawberry.exceptions import MissingQueryError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError

from holdfast.api.backendai.graphql.schema import SCHEMA
from holdfast.api.backendai.problems import RefusedCall, refusal_of
from holdfast.api.backendai.routing import BackendAiCall
from holdfast.errors import HoldfastError, Internal, InvalidRequest, Problem

_MOST_ERRORS = 100
_log = logging.getLogger(__name__)


def execute(
    call: BackendAiCall, query: str, variables: Mapping[str, Any] | None, operation: str | None
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Answer a query or a mutation.

    Args:
        call: Who asks, and what to answer with.
        query: The document.
        variables: Its variables.
        operation: The name of the operation to answer, if the document has several.

    Returns:
        The data, and the errors.
    """
    try:
        result = SCHEMA.execute_sync(query, dict(variables or {}), call, operation_name=operation)
    except (MissingQueryError, CannotGetOperationTypeError, InvalidOperationTypeError):
        message = "has no such operation" if operation else "has no single operation; name one by operationName"
        refused = InvalidRequest(problems=[Problem("query", message)])
        return None, [_entry(GraphQLError(str(refused), original_error=refused))]
    return result.data, [_entry(error) for error in (result.errors or ())[:_MOST_ERRORS]]


def _entry(error: GraphQLError) -> dict[str, Any]:
    refusal = _refusal(error)
    extensions = {"code": refusal.code}
    if refusal.data is not None:
        extensions["errors"] = refusal.data
    return {**error.formatted, "message": refusal.message or refusal.title, "extensions": extensions}


def _refusal(error: GraphQLError) -> RefusedCall:
    original = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    if isinstance(original, RefusedCall):
        return original
    if original is None:
        original = InvalidRequest(problems=[Problem("query", error.message)])
    if not isinstance(original, HoldfastError):
        _log.error("a query failed", exc_info=original)
        original = Internal()
    return refusal_of(original)
