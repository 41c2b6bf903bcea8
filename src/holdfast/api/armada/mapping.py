"""Converts messages to mappings as in JSON, and back: names in lowerCamelCase, quantities as text.

Kubernetes embeds some Go types in others: in JSON their fields stand beside the outer ones, in Protocol Buffers they
are a message of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from google.protobuf.message import Message

AMOUNT = "k8s.io.apimachinery.pkg.api.resource.Quantity"
TEXT = "string"
"""The field of a quantity."""
EMBEDDED = frozenset({"volumeSource", "localObjectReference"})
"""The fields of embedded types."""


def plain(message: Message) -> dict[str, Any]:
    """Return the fields of a message that are set."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is None:
            fields[field.json_name] = list(value) if field.is_repeated else value
        elif field.message_type.GetOptions().map_entry:
            fields[field.json_name] = {key: _one(item) for key, item in value.items()}
        elif field.is_repeated:
            fields[field.json_name] = [_one(item) for item in value]
        elif field.name in EMBEDDED:
            fields.update(plain(value))
        else:
            fields[field.json_name] = _one(value)
    return fields


def _one(value: object) -> object:
    if not isinstance(value, Message):
        return value
    return getattr(value, TEXT) if value.DESCRIPTOR.full_name == AMOUNT else plain(value)


def fill(message: Message, values: Mapping[str, Any]) -> None:
    """Set the fields of a message from a mapping; unknown keys are ignored."""
    for field in message.DESCRIPTOR.fields:
        kind, name = field.message_type, field.json_name
        if field.name in EMBEDDED and kind is not None:
            if {inner.json_name for inner in kind.fields} & values.keys():
                fill(getattr(message, field.name), values)
        elif values.get(name) is None:
            continue
        elif kind is None and not field.is_repeated:
            setattr(message, field.name, values[name])
        elif kind is None:
            getattr(message, field.name).extend(values[name])
        elif kind.GetOptions().map_entry:
            _fill_map(getattr(message, field.name), values[name], plain_values=kind.fields[1].message_type is None)
        elif field.is_repeated:
            for item in values[name]:
                _fill_one(getattr(message, field.name).add(), item)
        else:
            _fill_one(getattr(message, field.name), values[name])


def _fill_map(part: MutableMapping[str, Any], values: Mapping[str, Any], *, plain_values: bool) -> None:
    for key, item in values.items():
        if plain_values:
            part[key] = item
        else:
            _fill_one(part[key], item)


def _fill_one(message: Message, value: object) -> None:
    if message.DESCRIPTOR.full_name == AMOUNT:
        setattr(message, TEXT, str(value))
    elif isinstance(value, Mapping):
        message.SetInParent()
        fill(message, value)
