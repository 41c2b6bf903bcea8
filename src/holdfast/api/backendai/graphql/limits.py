"""Bounds what a query may ask for, before it is answered: its words, its depth, and how many values it has at most."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
)
from strawberry.extensions import SchemaExtension

from holdfast.api.backendai.models.parts import DEFAULT_PAGE, LARGEST_PAGE
from holdfast.domain.sessions.policy import HIGHEST_MAX_RETRIES
from holdfast.errors import InvalidRequest, Problem

MOST_TOKENS = 1000
DEEPEST = 10
MOST_VALUES = 200_000
"""The most values that an answer may have, as estimated."""
_LISTS: Mapping[str, int] = {
    "retryChain": HIGHEST_MAX_RETRIES + 1,
    "entries": 10,
    "types": 50,
    "fields": 8,
    "inputFields": 8,
    "enumValues": 8,
}
"""How many items lists have, at most or on average."""
_CONNECTIONS = frozenset({"adminSessionsV2", "projectSessionsV2"})
_PAGE = frozenset({"first", "last", "limit"})
_WORK: Mapping[str, int] = {
    "adminSessionsV2": 1000,
    "projectSessionsV2": 1000,
    "sessionV2": 200,
    "enqueueSession": 2000,
    "terminateSessionsV2": 2000,
}
"""What it takes to find or to change something, in values."""
_INTROSPECTION = "__"
_BILLION = 10**9


class Limits(SchemaExtension):
    """Refuses queries that ask for too much."""

    def on_operation(self) -> Iterator[None]:
        """Bound the words."""
        self.execution_context.parse_options["max_tokens"] = MOST_TOKENS
        yield

    def on_validate(self) -> Iterator[None]:
        """Bound the depth and the values, before anything else is looked at.

        Raises:
            InvalidRequest: It asks for too much.
        """
        context = self.execution_context
        if context.graphql_document is not None:
            check(context.graphql_document, context.variables or {})
        yield


class _Extent(NamedTuple):
    """How much a selection asks for."""

    depth: int = 0
    values: int = 0


def check(document: DocumentNode, variables: Mapping[str, Any]) -> None:
    """Check that each operation of a document stays within the limits.

    Raises:
        InvalidRequest: It does not.
    """
    estimate = _Estimate(document, variables)
    for operation in document.definitions:
        if not isinstance(operation, OperationDefinitionNode):
            continue
        extent, problems = estimate.of(operation.selection_set), list[Problem]()
        if extent.depth > DEEPEST:
            problems.append(Problem("query", f"is {extent.depth} levels deep; at most {DEEPEST} are answered"))
        if extent.values > MOST_VALUES:
            message = f"may have {_written(extent.values)} values to answer; at most {MOST_VALUES} are answered"
            problems.append(Problem("query", message, hint="ask for a smaller page, or for fewer fields"))
        if problems:
            raise InvalidRequest(problems=problems)


def _written(number: int) -> str:
    return str(number) if number < _BILLION else "billions of"


class _Estimate:
    """Estimates what selections ask for; each fragment is looked at once."""

    def __init__(self, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._extents: dict[str, _Extent] = {}

    def of(self, selections: SelectionSetNode | None) -> _Extent:
        """Return what selections ask for together."""
        extents = [self._of(node) for node in selections.selections] if selections is not None else []
        return _Extent(max((extent.depth for extent in extents), default=0), sum(extent.values for extent in extents))

    def _of(self, node: SelectionNode) -> _Extent:
        if isinstance(node, InlineFragmentNode):
            return self.of(node.selection_set)
        if isinstance(node, FragmentSpreadNode):
            return self._of_fragment(node.name.value)
        return self._of_field(node) if isinstance(node, FieldNode) else _Extent()

    def _of_fragment(self, name: str) -> _Extent:
        if name not in self._extents:
            self._extents[name] = _Extent()  # for one that has itself, which is refused by validation
            if name in self._fragments:
                self._extents[name] = self.of(self._fragments[name].selection_set)
        return self._extents[name]

    def _of_field(self, node: FieldNode) -> _Extent:
        name, inner = node.name.value, self.of(node.selection_set)
        size = self._page(node) if name in _CONNECTIONS else _LISTS.get(name, 1)
        # Introspection has a limit of its own.
        depth = 0 if name.startswith(_INTROSPECTION) else inner.depth
        return _Extent(1 + depth, 1 + _WORK.get(name, 0) + size * inner.values)

    def _page(self, node: FieldNode) -> int:
        sizes = [self._integer(argument.value) for argument in node.arguments or () if argument.name.value in _PAGE]
        return max(1, min(LARGEST_PAGE, max(sizes, default=DEFAULT_PAGE)))

    def _integer(self, node: ValueNode) -> int:
        if isinstance(node, IntValueNode):
            digits = node.value
            return int(digits) if len(digits) <= len(str(LARGEST_PAGE)) else LARGEST_PAGE
        value = self._variables.get(node.name.value) if isinstance(node, VariableNode) else None
        return value if isinstance(value, int) else LARGEST_PAGE
