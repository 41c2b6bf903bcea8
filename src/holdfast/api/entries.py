"""Estimates the memory of a body as objects before they are made, because they take many times its bytes.

Two bytes of Protocol Buffers or JSON may become an object of a hundred. The estimates are upper bounds, in round
figures that were measured.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from holdfast.api.budget import MemoryShare

FIELD, VALUE, NODE = 150, 100, 200
"""Bytes of a field of a message, of a JSON value, and of a YAML value with its position."""
_NUMBER = 40
"""Bytes of a number in a packed list, whatever its size."""
_UNCOUNTED = 4096
"""Bytes up to which a message counts as if it had nothing but the smallest fields."""
_SMALLEST = 2
_VARINT, _FIXED64, _BYTES, _BEGIN, _END, _FIXED32 = range(6)
"""How a field is encoded: the last three bits of its tag."""
_MORE = 0x80
"""The bit of a byte that says that the number continues."""
_LONGEST_NUMBER = 70
"""Bits, of ten bytes."""
_DEEPEST = 100
"""Levels of nested messages that the decoder accepts."""
_FLAT = "flat"
"""A field without messages inside."""
_Inside: TypeAlias = "dict[int, Descriptor | None]"


def weight_of_json(text: bytes | bytearray) -> int:
    """Return the most bytes that the values of a JSON text can take."""
    return VALUE * sum(map(text.count, (b",", b"[", b"{")))


def weight_of_yaml(text: bytes | bytearray) -> int:
    """Return the most bytes that the values of a YAML text can take."""
    return NODE * sum(map(text.count, (b"\n", b",", b"[", b"{", b"- ")))


def weight_of_message(kind: Descriptor, body: bytes | bytearray, most: int) -> int:
    """Return the most bytes that a decoded message can take; if that is above ``most``, perhaps too small a figure."""
    if len(body) <= _UNCOUNTED:
        return len(body) * FIELD // _SMALLEST
    return len(body) + _count_fields(kind, body, (most - len(body)) // FIELD) * FIELD


def read_message(kind: type[Message], share: MemoryShare) -> Message:
    """Decode the body of a share, which from then on counts the message instead.

    Raises:
        DecodeError: The body is broken.
        Unavailable: There is no room for the message now.
        InvalidRequest: There can never be room for it.
    """
    descriptor: Any = kind.DESCRIPTOR
    size = len(share.body)
    share.take(weight_of_message(descriptor, share.body, share.most))
    message = kind.FromString(memoryview(share.body))  # type: ignore[arg-type]  # it reads whatever holds bytes
    share.body = b""
    share.give_back(size)
    return message


@cache
def _inside(kind: Descriptor) -> _Inside:
    """Return the fields that hold messages, and those that may hold packed numbers (``None``)."""
    inside: _Inside = {}
    for field in kind.fields:
        if field.message_type is not None:
            inside[field.number] = field.message_type
        elif field.is_repeated and field.type not in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
            inside[field.number] = None
    return inside


def _count_fields(kind: Descriptor, body: bytes | bytearray, most: int) -> int:
    """Count the fields of a message and of the messages inside, until there are more than ``most``.

    A broken message ends the count early; the decoder then stops at the same place.
    """
    count = [0]
    with suppress(IndexError):
        _count(_inside(kind), body, most, count)
    return count[0]


def _count(  # noqa: C901 - one loop that calls nothing, as it is most of what a large message costs
    inside: _Inside, body: bytes | bytearray, most: int, count: list[int]
) -> None:
    place, end, outer = 0, len(body), list[tuple[int, _Inside]]()
    while count[0] <= most and len(outer) < _DEEPEST:
        while place >= end:
            if not outer:
                return
            end, inside = outer.pop()
        tag = body[place]
        place += 1
        if tag >= _MORE:
            tag, place = _number(body, place - 1)
        count[0] += 1
        how = tag & 7
        if how == _BYTES:
            size = body[place]
            place += 1
            if size >= _MORE:
                size, place = _number(body, place - 1)
            below = inside.get(tag >> 3, _FLAT)
            if below is None:
                count[0] += size * _NUMBER // FIELD
            elif size and not isinstance(below, str):
                outer.append((end, inside))
                end, inside = place + size, _inside(below)
                continue
            place += size
        elif how == _VARINT:
            _, place = _number(body, place)
        elif how == _FIXED64:
            place += 8
        elif how == _FIXED32:
            place += 4
        elif how not in {_BEGIN, _END}:
            return


def _number(body: bytes | bytearray, place: int) -> tuple[int, int]:
    """Read a number of several bytes, and return also where it ends.

    Raises:
        IndexError: It is cut off or too long.
    """
    number = 0
    for shift in range(0, _LONGEST_NUMBER, 7):
        byte = body[place]
        place += 1
        if byte < _MORE:
            return number | byte << shift, place
        number |= (byte & 0x7F) << shift
    raise IndexError
