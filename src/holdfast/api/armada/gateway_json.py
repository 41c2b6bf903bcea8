"""Converts messages to the JSON of Armada's gateway and back: lowerCamelCase, enumerations by name, times as text."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from google.protobuf.descriptor import FieldDescriptor

from holdfast.api.armada.mapping import AMOUNT, EMBEDDED, TEXT
from holdfast.api.connect.refusals import refuse
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.message import Message

_MOMENTS = frozenset({"google.protobuf.Timestamp", "k8s.io.apimachinery.pkg.apis.meta.v1.Time"})
_OPAQUE = "k8s.io.apimachinery.pkg.apis.meta.v1.Opaque"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = "RETRY_ACTION_"
"""The prefix of the names of this enumeration, which JSON leaves out."""
_MOST_PROBLEMS = 100
_GO = {
    FieldDescriptor.TYPE_DOUBLE: "float64",
    FieldDescriptor.TYPE_FLOAT: "float32",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "[]uint8",
}
_RANGES = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}
_ZEROS: Mapping[str, object] = {"string": "", "bool": False, "[]uint8": b""}
"""What ``null`` stands for in a list or a map, if not for 0."""
_LONGEST_NUMBER = 20


def dump(value: object) -> bytes:
    """Encode a value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def as_json(message: Message) -> dict[str, Any]:
    """Return the fields of a message that are set and differ from their defaults."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            fields[field.json_name] = {str(key): _item(kind.fields[1], item) for key, item in value.items()}
        elif field.is_repeated:
            fields[field.json_name] = [_item(field, item) for item in value]
        elif field.name in EMBEDDED:
            fields.update(as_json(value))
        else:
            fields[field.json_name] = _item(field, value)
    return fields


def _item(field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - whatever a message has
    if field.message_type is not None:
        name = field.message_type.full_name
        if name == AMOUNT:
            return getattr(value, TEXT)
        return _moment(value) if name in _MOMENTS else as_json(value)
    if field.enum_type is not None:
        return _name_in(field.enum_type, value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _name_in(enum: EnumDescriptor, number: int) -> str | int:
    named = enum.values_by_number.get(number)
    if named is None:
        return number
    name: str = named.name
    return name.removeprefix(_SHORT).capitalize() if name.startswith(_SHORT) else name


def _moment(message: Any) -> str | dict[str, Any]:  # noqa: ANN401 - either kind
    try:
        at = _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:  # not a time
        return as_json(message)
    return at.isoformat(timespec="microseconds" if message.nanos else "seconds").replace("+00:00", "Z")


def read(text: bytes, message: Message) -> None:
    """Fill a message from JSON; unknown fields are ignored, and no text is an empty message.

    Raises:
        Rejected: The text is not JSON, or a value has another type than its field.
    """
    if not text.strip():
        return
    try:
        value = json.loads(text.decode("utf-8", "replace"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        refuse(f"invalid JSON: {error}"[:200])
    reader = _MessageReader(message.DESCRIPTOR.name)
    reader.fields(message, value, "", "")
    if reader.problems:
        refuse(reader.problems[0].message, reader.problems)


def _no_number(name: str) -> NoReturn:
    msg = f"{name} is not a number in JSON"
    raise ValueError(msg)


def read_query(pairs: Sequence[tuple[str, str]], message: Message) -> None:
    """Fill the top-level fields of a message from a query; unknown fields are ignored.

    Raises:
        Rejected: A value has another type than its field.
    """
    fields = {name: field for field in _fields_of(message) for name in (field.name, field.json_name)}
    for name, text in pairs:
        field = fields.get(name)
        if field is None or field.is_repeated or field.message_type is not None:
            continue
        value: object = text
        if _GO.get(field.type) in _RANGES:
            value = int(text) if len(text) <= _LONGEST_NUMBER and text.removeprefix("-").isdecimal() else None
        reader = _MessageReader(message.DESCRIPTOR.name)
        item = None if value is None else reader.item(field, value, name, name)
        if item is None:
            detail = f"type mismatch, parameter: {name}, error: parsing {text[:50]!r}: invalid syntax"
            refuse(detail, [Problem(name, detail)])
        setattr(message, field.name, item)


class _MessageReader:
    """Reads values into messages, and collects the problems."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.problems: list[Problem] = []

    def fields(self, message: Message, value: object, path: str, plain: str) -> None:
        """Fill the message at ``path``; ``plain`` is the same path without positions in lists."""
        if value is None:
            return
        if not isinstance(value, dict):
            self._wrong(value, path, plain, f"api.{message.DESCRIPTOR.name}")
            return
        names = {str(name).lower(): member for name, member in value.items()} | value
        for field in _fields_of(message):
            name: str = field.json_name
            if field.name in EMBEDDED and field.message_type is not None:
                if {member.json_name for member in field.message_type.fields} & value.keys():
                    self.fields(getattr(message, field.name), value, path, plain)
                continue
            item = names.get(name, names.get(name.lower()))
            if item is not None:
                self._field(message, field, item, _below(path, name), _below(plain, name))

    def _field(self, message: Message, field: FieldDescriptor, value: object, path: str, plain: str) -> None:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            self._map(getattr(message, field.name), kind.fields[1], value, path, plain)
        elif field.is_repeated:
            self._list(getattr(message, field.name), field, value, path, plain)
        elif kind is not None:
            self._message(getattr(message, field.name), value, path, plain)
        else:
            item = self.item(field, value, path, plain)
            if item is not None:
                setattr(message, field.name, item)

    def _map(self, part: Any, field: FieldDescriptor, items: object, path: str, plain: str) -> None:  # noqa: ANN401 - of any kind
        if not isinstance(items, dict):
            self._wrong(items, path, plain, f"map[string]{_go(field)}")
            return
        for key, value in items.items():
            where = f"{path}[{key!r}]"
            if field.message_type is not None:
                self._message(part[_text(key)], value, where, plain)
                continue
            item = self.item(field, value, where, plain)
            if item is not None:
                part[_text(key)] = item

    def _list(self, part: Any, field: FieldDescriptor, items: object, path: str, plain: str) -> None:  # noqa: ANN401 - of any kind
        if not isinstance(items, list):
            self._wrong(items, path, plain, f"[]{_go(field)}")
            return
        for place, value in enumerate(items):
            where = f"{path}[{place}]"
            if field.message_type is not None:
                self._message(part.add(), value, where, plain)
                continue
            item = self.item(field, value, where, plain)
            if item is not None:
                part.append(item)

    def _message(self, message: Any, value: object, path: str, plain: str) -> None:  # noqa: ANN401 - of any kind
        name = message.DESCRIPTOR.full_name
        message.SetInParent()
        if name == AMOUNT:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                self._wrong(value, path, plain, "resource.Quantity")
            else:
                setattr(message, TEXT, _text(str(value)))
        elif name in _MOMENTS and isinstance(value, str):
            self._time(message, value, path)
        elif name != _OPAQUE:
            self.fields(message, value, path, plain)

    def _time(self, message: Any, text: str, path: str) -> None:  # noqa: ANN401 - either kind
        try:
            at = datetime.fromisoformat(text)
            since = at - _EPOCH
        except (ValueError, TypeError, OverflowError):
            self._add(path, f"parsing time {text[:50]!r}: it is no moment of RFC 3339, such as 2026-11-26T02:19:00Z")
            return
        message.seconds, message.nanos = since // timedelta(seconds=1), since.microseconds * 1000

    def item(self, field: FieldDescriptor, value: object, path: str, plain: str) -> object:
        """Return the value of a scalar field, or ``None`` and note the problem if it is wrong."""
        if value is None:
            return _ZEROS.get(_go(field), 0)
        if field.enum_type is not None:
            return self._enum(field.enum_type, value, path, plain)
        go = _go(field)
        if go == "[]uint8" and isinstance(value, str):
            return self._bytes(value, path)
        scalar = _scalar(go, value)
        if scalar is None:
            self._wrong(value, path, plain, go)
        return scalar

    def _bytes(self, text: str, path: str) -> bytes | None:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._add(path, f"illegal base64 data in {path}")
            return None

    def _enum(self, enum: EnumDescriptor, value: object, path: str, plain: str) -> int | None:
        names = {name: entry.number for name, entry in enum.values_by_name.items()}
        number = _whole(value) if not isinstance(value, str) else None
        if isinstance(value, str):
            by_name = names.get(value, names.get(f"{_SHORT}{value.upper()}"))
            if by_name is not None:
                return by_name
            shown = f"no {enum.name} of type {value[:50]}"
        elif number is not None:
            if number in enum.values_by_number:
                return number
            shown = f"no {enum.name} of type {number}"
        else:
            self._wrong(value, path, plain, f"api.{enum.name}")
            return None
        allowed = tuple(str(_name_in(enum, entry)) for entry in enum.values_by_number)
        self._add(path, shown, allowed)
        return None

    def _wrong(self, value: object, path: str, plain: str, go: str) -> None:
        kind = _kind(value)
        into = f"Go struct field {self._root}.{plain}" if plain else "Go value"
        self._add(path, f"json: cannot unmarshal {kind} into {into} of type {go}")

    def _add(self, path: str, message: str, allowed: Sequence[str] = ()) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(path, message, tuple(allowed)))


def _fields_of(message: Message) -> Sequence[FieldDescriptor]:
    fields: Any = message.DESCRIPTOR.fields
    descriptors: Sequence[FieldDescriptor] = fields
    return descriptors


def _scalar(go: str, value: object) -> object:
    """Return a value of one of Go's types, or ``None`` if it is not one."""
    if go in _RANGES:
        whole, (least, most) = _whole(value), _RANGES[go]
        return whole if whole is not None and least <= whole <= most else None
    if go == "string":
        return _text(value) if isinstance(value, str) else None
    if isinstance(value, bool):
        return value if go == "bool" else None
    if go == "bool" or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _go(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return f"*api.{field.message_type.name}"
    return f"api.{field.enum_type.name}" if field.enum_type is not None else _GO[field.type]


def _kind(value: object) -> str:
    """Return Go's name for the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}"[:60]
    names: Mapping[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _whole(value: object) -> int | None:
    """Return a whole number, also if it is written as text, as some JSON encoders do."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and value.removeprefix("-").isdecimal():
        return int(value)
    return None


def _text(text: str) -> str:
    """Replace lone surrogates."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
