"""The address of GraphQL; the library is imported by the first request."""

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from holdfast.api.backendai.models.parts import AnswerModel, RequestModel
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.errors import Unavailable

PATH = "/admin/gql/strawberry"
LEGACY_PATH = "/admin/gql"
"""Where clients ask unless they are told to use version 2; it is answered the same."""
_LONGEST_QUERY = 65_536
_LONGEST_NAME = 256


class GraphQLRequest(RequestModel):
    """A query or a mutation."""

    query: str = Field(max_length=_LONGEST_QUERY)
    variables: dict[str, Any] | None = None
    operation_name: str | None = Field(default=None, alias="operationName", max_length=_LONGEST_NAME)
    extensions: dict[str, Any] | None = None
    """Ignored."""


class GraphQLAnswer(AnswerModel):
    """What was asked for, as far as there are no errors."""

    data: dict[str, Any] | None
    errors: list[dict[str, Any]] = Field(default_factory=list)

    @model_serializer(mode="wrap")
    def _without_empty_errors(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name != "errors" or value}


@ROUTES.add("POST", PATH, "graphql_read")
@ROUTES.add("POST", LEGACY_PATH, "graphql_read")
def answer(call: BackendAiCall, body: GraphQLRequest) -> GraphQLAnswer:
    """Answer a query or a mutation.

    Raises:
        Unavailable: The library is not installed.
    """
    try:
        from holdfast.api.backendai.graphql.execution import execute  # noqa: PLC0415 - only who asks needs it
    except ModuleNotFoundError as error:
        msg = "GraphQL needs a library that is not installed"
        raise Unavailable(msg, hint="pip install 'holdfast-scheduler[backendai]'") from error
    data, errors = execute(call, body.query, body.variables, body.operation_name)
    return GraphQLAnswer(data=data, errors=errors)
