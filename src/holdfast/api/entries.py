"""Counts what a body holds before it is made into objects, which take many times its bytes.

Two bytes of Protocol Buffers or JSON may become an object of a hundred. What is counted here is what the objects take
at most, in round figures that were measured.
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
"""Bytes of a field of a message, a value of JSON, and one of YAML with its place."""
_NUMBER = 40
"""Bytes of one in a packed list, whatever its size."""
_UNCOUNTED = 4096
"""Bytes of a message that is not looked at: as if all of it were the smallest fields."""
_SMALLEST = 2
_VARINT, _FIXED64, _BYTES, _BEGIN, _END, _FIXED32 = range(6)
"""How a field is written: the last three bits of its tag."""
_MORE = 0x80
"""The bit of a byte that says that its number goes on."""
_LONGEST_NUMBER = 70
"""Bits, of ten bytes."""
_DEEPEST = 100
"""Messages in each other that the decoder takes."""
_FLAT = "flat"
"""A field without messages inside."""
_Inside: TypeAlias = "dict[int, Descriptor | None]"


def weight_of_json(text: bytes | bytearray) -> int:
    """Return how many bytes the values of JSON text take at most."""
    return VALUE * sum(map(text.count, (b",", b"[", b"{")))


def weight_of_yaml(text: bytes | bytearray) -> int:
    """Return how many bytes the values of YAML text take at most."""
    return NODE * sum(map(text.count, (b"\n", b",", b"[", b"{", b"- ")))


def weight_of_message(kind: Descriptor, body: bytes | bytearray, most: int) -> int:
    """Return how many bytes a message takes at most when it is decoded, or something above ``most``."""
    if len(body) <= _UNCOUNTED:
        return len(body) * FIELD // _SMALLEST
    return len(body) + _fields(kind, body, (most - len(body)) // FIELD) * FIELD


def read_message(kind: type[Message], share: MemoryShare) -> Message:
    """Decode the body of a share, which then counts what the message takes instead.

    Raises:
        DecodeError: It is broken.
        Unavailable: There is no room for it now.
        InvalidRequest: There never is.
    """
    described: Any = kind.DESCRIPTOR
    size = len(share.body)
    share.take(weight_of_message(described, share.body, share.most))
    message = kind.FromString(memoryview(share.body))  # type: ignore[arg-type]  # it reads whatever holds bytes
    share.body = b""
    share.give_back(size)
    return message


@cache
def _inside(kind: Descriptor) -> _Inside:
    """Return which fields have messages inside, and which packed numbers: ``None``."""
    inside: _Inside = {}
    for field in kind.fields:
        if field.message_type is not None:
            inside[field.number] = field.message_type
        elif field.is_repeated and field.type not in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
            inside[field.number] = None
    return inside


def _fields(kind: Descriptor, body: bytes | bytearray, most: int) -> int:
    """Count the fields of a message and of those inside, until there are more than ``most``.

    It ends early where the message is broken, which the decoder then finds at the same place.
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
    """Read a number of several bytes; returns also where it ends.

    Raises:
        IndexError: It does not end where one must.
    """
    number = 0
    for shift in range(0, _LONGEST_NUMBER, 7):
        byte = body[place]
        place += 1
        if byte < _MORE:
            return number | byte << shift, place
        number |= (byte & 0x7F) << shift
    raise IndexError
