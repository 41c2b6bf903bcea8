"""The table of what is answered of Iris' services; each module of a noun registers its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.connect.calls import Calls
from holdfast.api.iris._generated.pool import PROTOCOL
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from google.protobuf.message import Message

CONTROLLER = "iris.cluster.ControllerService"
ENDPOINTS = "iris.cluster.EndpointService"
LOGS = "finelog.logging.LogService"
PREFIX = "/iris.cluster."
"""Of the paths of the first two."""
LOG_SERVER = "/proxy/system.log-server"
"""Below which clients look for the third."""
CALLS = Calls(PROTOCOL, CONTROLLER, ENDPOINTS, LOGS)


class Place(Struct, frozen=True):
    """What tasks are told of the server."""

    url: str
    """Where they find it."""
    python: str
    """What runs their callables."""


def plain(message: Message) -> dict[str, Any]:
    """Return the fields of a message that are set, by their names; enumerations are their numbers."""
    return {field.name: _plain(field, value) for field, value in message.ListFields()}


def _plain(field: Any, value: Any) -> Any:  # noqa: ANN401 - whatever messages hold
    if field.message_type is None:
        return [*value] if field.is_repeated else value
    if field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"].message_type
        return {key: plain(one) if inner else one for key, one in value.items()}
    return [plain(one) for one in value] if field.is_repeated else plain(value)
