"""Records as compact JSON and back: fields that have their default are left out.

A field added to a record later needs a default, so that older texts can still be read.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import DataclassInstance

T = TypeVar("T")
_UNSET = object()


def non_defaults(record: DataclassInstance, among: Sequence[tuple[str, object]] = ()) -> dict[str, Any]:
    """Return the fields that differ from their defaults, or those of some fields."""
    return {
        name: value
        for name, default in among or defaults(type(record))
        if (value := getattr(record, name)) is not default and value != default
    }


@cache
def defaults(kind: type[DataclassInstance]) -> Sequence[tuple[str, object]]:
    """Return every field's default; that of a field without one equals nothing."""
    return tuple((each.name, _default(each)) for each in fields(kind))


def _default(each: Field[Any]) -> object:
    if each.default is not MISSING:
        return each.default
    return _UNSET if each.default_factory is MISSING else each.default_factory()


def _plain(value: Any) -> object:  # noqa: ANN401 - a record or a set
    return sorted(value) if isinstance(value, frozenset) else non_defaults(value)


dump_json = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False, default=_plain).encode
"""Takes records at any depth; pure ASCII, so that any text a program printed can be stored, lone surrogates too."""
load_json: Callable[[str], Any] = json.JSONDecoder().decode


def record_of(kind: type[T], plain: object) -> T:
    """Build a record from what ``load_json`` returned.

    Raises:
        Internal: It is no such record.
    """
    try:
        return msgspec.convert(plain, kind, str_keys=True)
    except msgspec.ValidationError as error:
        message = f"a stored {kind.__name__} cannot be read: {error}"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged") from error


def dump_record(record: object) -> str | None:
    """Write a record, if there is one."""
    return None if record is None else dump_json(record)


def load_record(kind: type[T], text: str | None) -> T | None:
    """Read a record, if there is one.

    Raises:
        Internal: It is no such record.
    """
    return None if text is None else record_of(kind, load_json(text))


_DONE = (ContainerResult(exit_code=0),)
"""By far the most common result, one program that ended with 0; written as a bare 0."""


def dump_outcome(outcome: RunOutcome | None) -> str | None:
    """Write how a run ended."""
    if outcome is None or outcome.containers != _DONE:
        return dump_record(outcome)
    return dump_json({**non_defaults(outcome), "containers": 0})


def load_outcome(text: str | None) -> RunOutcome | None:
    """Read how a run ended."""
    if text is None:
        return None
    plain = load_json(text)
    if plain.get("containers") == 0:
        plain["containers"] = [{"exit_code": 0}]
    return record_of(RunOutcome, plain)
