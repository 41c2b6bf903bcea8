"""Converts messages to mappings, by the names of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message


def plain(message: Message) -> dict[str, Any]:
    """Return the fields of a message that are set: 0 and absent are not the same."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is None:
            fields[field.name] = list(value) if field.is_repeated else value
        elif kind.GetOptions().map_entry:
            of_messages = kind.fields_by_name["value"].message_type is not None
            fields[field.name] = {key: plain(item) if of_messages else item for key, item in value.items()}
        else:
            fields[field.name] = [plain(item) for item in value] if field.is_repeated else plain(value)
    return fields
