"""Converts records to compact JSON and back; fields with their default are left out.

A field added to a record later needs a default, so that older texts can still be read.
"""

from __future__ import annotations

import json
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import astuple, fields

from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def non_defaults(record: Struct, among: Sequence[tuple[str, object]] = ()) -> dict[str, Any]:
    """Return the fields that differ from their defaults, or only some of them."""
    if not among:
        names, usual = _whole(type(record))
        every = zip(names, usual, astuple(record), strict=True)
        return {name: value for name, default, value in every if value is not default and value != default}
    values = {}
    for name, default in among:
        value = getattr(record, name)
        if value is not default and value != default:
            values[name] = value
    return values


@cache
def _whole(kind: type[Struct]) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Return the names of all fields, and their defaults."""
    names, usual = zip(*defaults(kind), strict=True)
    return names, usual


@cache
def defaults(kind: type[Struct]) -> Sequence[tuple[str, object]]:
    """Return every field's default; a field without one gets a value that equals nothing."""
    return [
        (field.name, field.default if field.default_factory is NODEFAULT else field.default_factory())
        for field in fields(kind)
    ]


_ENCODER = msgspec.json.Encoder()
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False)
load_json: Callable[[str], Any] = json.JSONDecoder().decode


def dump_json(value: object) -> str:
    """Write a value with records at any depth; lone surrogates, which programs may print, are escaped."""
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:
        return _JSON.encode(msgspec.to_builtins(value, str_keys=True))


def storable(text: str) -> str:
    """Return a text that any database accepts: NULs and lone surrogates become ``?``."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")


_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}
_MAKING = Lock()


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a class, created once and by one thread at a time.

    msgspec stores what it learns of a class with the class before it is complete: another thread that uses the same
    class then ends the process with a segmentation fault.
    """
    decoder: msgspec.json.Decoder[T] | None = _DECODERS.get(kind)
    if decoder is None:
        with _MAKING:
            decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder


def read_record(kind: type[T], text: str) -> T:
    """Read a record directly from its text.

    Raises:
        ValueError: It is no such record, or has lone surrogates, which ``load_json`` reads.
    """
    try:
        return decoder_of(kind).decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def record_of(kind: type[T], plain: object) -> T:
    """Build a record from what ``load_json`` returned.

    Raises:
        Internal: It is no such record.
    """
    decoder_of(kind)
    try:
        return msgspec.convert(plain, kind, str_keys=True)
    except msgspec.ValidationError as error:
        message = f"a stored {kind.__name__} cannot be read: {error}"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged") from error


_DONE = (ContainerResult(exit_code=0),)
"""By far the most common result, one program that exited with 0, is written as a bare 0."""


def dump_record(record: Struct) -> str:
    """Write a record."""
    if isinstance(record, RunOutcome) and record.containers == _DONE:
        return dump_json({**non_defaults(record), "containers": 0})
    return dump_json(record)


def load_record(kind: type[T], text: str | None) -> T | None:
    """Read a record, if there is one.

    Raises:
        Internal: It is no such record.
    """
    if text is None:
        return None
    plain = load_json(text)
    if kind is RunOutcome and plain.get("containers") == 0:
        plain["containers"] = [{"exit_code": 0}]
    return record_of(kind, plain)
