"""Reads the files of Armada's users into messages: what a field means there, and what is not known.

Names may be written in any case, as Go reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

from holdfast.api.armada.plain import AMOUNT, EMBEDDED
from holdfast.cli.armada.failure import Failed
from holdfast.dialects.documents import read_documents
from holdfast.errors import InvalidManifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.dialects.documents import Document

_WHOLE = (
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
)
_UNSIGNED = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
_DECIMAL = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
_SMALL = 31
Descriptor: TypeAlias = Any
"""Of a message, written in Python or in C."""


def read_file(name: str, otherwise: str = "Failed to parse file {} because: {}") -> Sequence[Document]:
    """Read the documents of a file.

    Args:
        name: Its path.
        otherwise: The sentence that says why it cannot be read, of its name and a reason.

    Raises:
        Failed: It cannot be read.
    """
    path = Path(name)
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        told = f"Failed opening file {name} due to open {name}: {(error.strerror or '').lower()}"
        raise Failed(told) from error
    except UnicodeDecodeError as error:
        raise Failed(otherwise.format(name, "it is not UTF-8")) from error
    try:
        return read_documents(text, name=name)
    except InvalidManifest as error:
        first, *others = [str(one) for one in error.problems] or [error.message]
        raise Failed(otherwise.format(name, first), *(f"  {one}" for one in others)) from error


class MessageShape:
    """Turns what a file has into what JSON has of a message, and notes what does not fit."""

    def __init__(self) -> None:
        """Begin with nothing noted."""
        self.unknown: list[str] = []
        """Paths of fields that the message does not have."""
        self.wrong: list[str] = []
        """What cannot be what it is meant to be."""

    def of(self, message: Descriptor, value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
        """Return the fields of a message; what it does not know is left out."""
        fields = {name.lower(): field for name, field in _fields(message)}
        found: dict[str, Any] = {}
        for key, given in value.items():
            field, where = fields.get(str(key).lower()), f"{path}.{key}" if path else str(key)
            if field is None:
                self.unknown.append(where)
            elif given is not None:
                found[field.json_name] = self._field(field, given, where)
        return found

    def _field(self, field: FieldDescriptor, given: object, where: str) -> object:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            if not isinstance(given, dict):
                return self._unlike({}, where, "a mapping", given)
            value = kind.fields_by_name["value"]
            return {str(key): self._one(value, one, f"{where}.{key}") for key, one in given.items()}
        if not field.is_repeated:
            return self._one(field, given, where)
        if not isinstance(given, list):
            return self._unlike([], where, "a list", given)
        return [self._one(field, one, f"{where}[{place}]") for place, one in enumerate(given)]

    def _one(self, field: FieldDescriptor, given: object, where: str) -> object:
        kind = field.message_type
        if kind is None:
            return self._plain(field, given, where)
        if kind.full_name == AMOUNT:
            is_amount = isinstance(given, str | int | float) and not isinstance(given, bool)
            return str(given) if is_amount else self._unlike("0", where, "an amount", given)
        if not isinstance(given, dict):
            return self._unlike({}, where, "a mapping", given)
        return self.of(kind, given, where)

    def _plain(self, field: FieldDescriptor, given: object, where: str) -> object:
        if field.enum_type is not None:
            by_name = {one.name.lower(): one.number for one in field.enum_type.values}
            number = by_name.get(given.lower()) if isinstance(given, str) else given
            if number in by_name.values() and not isinstance(number, bool):
                return number
            return self._unlike(0, where, f"one of {', '.join(one.name for one in field.enum_type.values)}", given)
        if field.cpp_type in _WHOLE:
            return given if _fits(field, given) else self._unlike(0, where, "a whole number", given)
        if field.cpp_type in _DECIMAL:
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            return given if is_number else self._unlike(0.0, where, "a number", given)
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return given if isinstance(given, bool) else self._unlike(0, where, "true or false", given)
        return given if isinstance(given, str) else self._unlike("", where, "a text", given)

    def _unlike(self, instead: object, where: str, wanted: str, given: object) -> object:
        self.wrong.append(f"{where} must be {wanted}, not {given!r}")
        return instead


def _fits(field: FieldDescriptor, given: object) -> bool:
    if not isinstance(given, int) or isinstance(given, bool):
        return False
    bits = _SMALL if field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 2 * _SMALL
    low = 0 if field.cpp_type in _UNSIGNED else -(1 << bits)
    return low <= given < 1 << bits


def _fields(message: Descriptor) -> Iterator[tuple[str, FieldDescriptor]]:
    """List the fields of a message as files have them: what it embeds stands beside the others."""
    for field in message.fields:
        if field.name not in EMBEDDED or field.message_type is None:
            yield field.json_name, field
        else:
            yield from _fields(field.message_type)
