"""GraphQL types made from the models of REST's requests and answers, so that both have the same fields.

Names are in camel case, and words such as a status are enums with the same words in upper case. A field that a request
may leave out may be left out here, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import strawberry
from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_json
from strawberry import UNSET
from strawberry.scalars import JSON
from strawberry.utils.str_converters import to_camel_case

from holdfast.api.backendai.models.conditions import (
    ChoiceCondition,
    IntegerCondition,
    OrderDirection,
    TextCondition,
    TimeCondition,
    UuidCondition,
)
from holdfast.api.backendai.models.session_views import (
    RetryStateView,
    SessionLifecycle,
    SessionMetadata,
    SessionNetwork,
    SessionResource,
    SessionRuntime,
    TerminatedSessions,
)
from holdfast.api.backendai.models.sessions import (
    EnqueueRequest,
    NetworkType,
    SessionFilterRequest,
    SessionOrder,
    SessionOrderField,
    SessionResultWord,
    SessionStatusWord,
    SessionTypeWord,
    TerminateSessionsRequest,
)
from holdfast.api.backendai.routing import refuse_nul
from holdfast.domain.failure import Cause
from holdfast.domain.policy.model import JitterMode
from holdfast.domain.sessions.model import RetryState
from holdfast.domain.sessions.policy import BackoffStrategy, RetryEligibleCause, SessionRetryPolicy
from holdfast.wire.problems import invalid

Model = TypeVar("Model", bound=BaseModel)
_NAMES: Mapping[type, str] = {
    TextCondition: "StringFilter",
    UuidCondition: "UUIDFilter",
    IntegerCondition: "IntFilter",
    TimeCondition: "DateTimeFilter",
    ChoiceCondition[SessionStatusWord]: "SessionV2StatusFilter",
    ChoiceCondition[SessionTypeWord]: "SessionV2TypeFilter",
    ChoiceCondition[SessionResultWord]: "SessionV2ResultFilter",
    ChoiceCondition[NetworkType]: "SessionV2NetworkTypeFilter",
    SessionFilterRequest: "SessionV2Filter",
    SessionOrder: "SessionV2OrderBy",
    EnqueueRequest: "EnqueueSessionInput",
    TerminateSessionsRequest: "TerminateSessionsV2Input",
    SessionMetadata: "SessionV2Metadata",
    SessionResource: "SessionV2Resource",
    SessionLifecycle: "SessionV2Lifecycle",
    SessionRuntime: "SessionV2Runtime",
    SessionNetwork: "SessionV2Network",
    RetryStateView: "SessionRetryState",
    TerminatedSessions: "TerminateSessionsV2Payload",
    SessionOrderField: "SessionV2OrderField",
    OrderDirection: "OrderDirection",
    SessionStatusWord: "SessionV2Status",
    SessionTypeWord: "SessionV2Type",
    SessionResultWord: "SessionV2Result",
    NetworkType: "SessionV2NetworkType",
    Cause: "SessionRetryCause",
    RetryState: "SessionRetryStateType",
    RetryEligibleCause: "SessionRetryEligibleCause",
    BackoffStrategy: "SessionRetryBackoff",
    JitterMode: "SessionRetryJitter",
}
"""The names of types that are not named after their model."""
_CLUSTER_MODE = EnqueueRequest.model_fields["cluster_mode"].annotation
_EXACT: Mapping[tuple[type, str], Any] = {
    (EnqueueRequest, "session_type"): SessionTypeWord,
    (EnqueueRequest, "retry_policy"): SessionRetryPolicy,
    (SessionMetadata, "session_type"): SessionTypeWord,
    (SessionMetadata, "cluster_mode"): _CLUSTER_MODE,
    (SessionLifecycle, "status"): SessionStatusWord,
    (SessionLifecycle, "result"): SessionResultWord,
    (RetryStateView, "state"): RetryState,
}
"""The types of fields that a model describes less exactly."""
_PLAIN = frozenset({str, int, float, bool, UUID, datetime})
_LISTS = frozenset({list, frozenset})
_inputs: dict[type, type] = {}
"""The types of requests; each is here before its fields are, which may refer to it."""


class _TypedField(NamedTuple):
    hint: Any
    name: str
    is_required: bool


@cache
def object_type(model: type) -> Any:  # noqa: ANN401 - a GraphQL type
    """Return the type of a part of answers."""
    name, described = _name(model), _fields(model)
    annotations = {field: _converted(of.hint, field, is_input=False) for field, of in described.items()}
    cls = type(name, (), {"__module__": __name__, "__annotations__": annotations})
    return strawberry.type(cls, name=name, description=model.__doc__)


def input_type(model: type) -> Any:  # noqa: ANN401 - a GraphQL type
    """Return the type of a part of requests."""
    if model in _inputs:
        return _inputs[model]
    name = _name(model)
    if model not in _NAMES:
        name += "Input"
    cls = _inputs[model] = type(name, (), {"__module__": __name__})
    annotations: dict[str, Any] = {}
    for field, (hint, spelled, is_required) in _fields(model).items():
        converted = _converted(hint, field, is_input=True)
        annotations[field] = converted if is_required else converted | None
        more: dict[str, Any] = {} if is_required else {"default": UNSET}
        setattr(cls, field, strawberry.field(name=spelled, **more))
    cls.__annotations__ = annotations
    return strawberry.input(cls, name=name, description=model.__doc__)


@cache
def enum_type(words: type[Enum]) -> Any:  # noqa: ANN401 - a GraphQL type
    """Return the type of words."""
    return _enum(_NAMES[words], tuple(word.value for word in words))


def read_input(model: type[Model], **values: Any) -> Model:  # noqa: ANN401 - inputs of GraphQL
    """Read a request as REST does.

    Args:
        model: The request.
        values: Its fields; one that is unset is left out.

    Raises:
        InvalidRequest: It is not valid.
    """
    text = to_json(_plain(values))
    refuse_nul(text)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise invalid({**problem, "loc": ("body", *problem["loc"])} for problem in problems) from error


def _plain(value: Any) -> Any:  # noqa: ANN401 - as above
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if item is not UNSET}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _name(model: type) -> str:
    return _NAMES.get(model, model.__name__)


def _fields(model: type) -> Mapping[str, _TypedField]:
    if not issubclass(model, BaseModel):
        return {
            name: _TypedField(hint, to_camel_case(name), is_required=False)
            for name, hint in get_type_hints(model).items()
        }
    return {
        name: _TypedField(_EXACT.get((model, name), info.annotation), _spelled(name, info), info.is_required())
        for name, info in model.model_fields.items()
    }


def _spelled(name: str, info: FieldInfo) -> str:
    aliases = info.validation_alias
    alias = aliases.choices[0] if isinstance(aliases, AliasChoices) else aliases
    return alias if isinstance(alias, str) else to_camel_case(name)


def _converted(hint: Any, field: str, *, is_input: bool) -> Any:  # noqa: ANN401 - types
    """Return the type in GraphQL; a field gives its name to words that have none."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _enum(to_camel_case(f"_{field}"), arguments)
    if origin is None:
        return _simple(hint, is_input=is_input)
    kinds = [_converted(argument, field, is_input=is_input) for argument in arguments[:1]]
    if origin is Annotated:
        return kinds[0]
    if origin in _LISTS:
        return list[kinds[0]]  # type: ignore[valid-type] # made here
    return kinds[0] | None if origin in {Union, UnionType} else JSON


def _simple(hint: Any, *, is_input: bool) -> Any:  # noqa: ANN401 - types
    if hint in _PLAIN or not isinstance(hint, type):
        return hint if hint in _PLAIN else JSON
    if issubclass(hint, Enum):
        return enum_type(hint)
    make: Callable[[Any], Any] = input_type if is_input else object_type
    return make(hint)


@cache
def _enum(name: str, words: tuple[str, ...]) -> Any:  # noqa: ANN401 - a GraphQL type
    members = [(word.upper().replace("-", "_"), word) for word in words]
    return strawberry.enum(StrEnum(name, members), name=name)  # type: ignore[call-overload] # made here
