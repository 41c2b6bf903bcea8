"""Outcomes, failures and decisions as compact JSON: fields that have their default are left out.

A field added to a record later needs a default, so that older rows can still be read.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, PodEvent, RunOutcome
from holdfast.domain.policy.model import Action, Considered, Decision, DecisionCode, LimitUse, SetAction
from holdfast.domain.workloads.jobset.state import Event, SetDecision
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

_Record = TypeVar("_Record", bound="DataclassInstance")
_NO_DEFAULT = object()

dump_json = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False).encode
"""Pure ASCII, so that any text a program printed can be stored, lone surrogates included."""
load_json: Callable[[str], Any] = json.JSONDecoder().decode


class _Shape(Generic[_Record]):
    """How one kind of record is written and read."""

    def __init__(self, kind: type[_Record], **readers: Callable[[Any], Any]) -> None:
        self._kind = kind
        self._fields = tuple(
            (each.name, _NO_DEFAULT if each.default is MISSING else each.default) for each in fields(kind)
        )
        self._readers = readers

    def plain(self, record: _Record) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        found: dict[str, Any] = {}
        for name, default in self._fields:
            value = getattr(record, name)
            if value is not default and value != default:
                found[name] = value
        for name in self._readers.keys() & found.keys():
            found[name] = _plain(found[name])
        return found

    def record(self, plain: Mapping[str, Any]) -> _Record:
        """Build the record again."""
        given = dict(plain)
        for name in self._readers.keys() & given.keys():
            given[name] = self._readers[name](given[name])
        return self._kind(**given)


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return 0 if value == _DONE else [_plain(each) for each in value]
    shape = _NESTED.get(type(value))
    return value if shape is None else shape.plain(value)


def _many(shape: _Shape[_Record]) -> Callable[[list[dict[str, Any]]], tuple[_Record, ...]]:
    return lambda plains: tuple(shape.record(each) for each in plains)


_CONTAINER = _Shape(ContainerResult, log_tail=tuple)
_EVENT = _Shape(PodEvent)
_LIMIT = _Shape(LimitUse)
_CONSIDERED = _Shape(Considered)
_NESTED: dict[type, _Shape[Any]] = {
    ContainerResult: _CONTAINER,
    PodEvent: _EVENT,
    LimitUse: _LIMIT,
    Considered: _CONSIDERED,
}

_DONE = (ContainerResult(exit_code=0),)
"""By far the most common result, one program that ended with 0; written as a bare 0 and read as one shared tuple."""


def _containers(plain: list[dict[str, Any]] | int) -> tuple[ContainerResult, ...]:
    return _DONE if isinstance(plain, int) else tuple(_CONTAINER.record(each) for each in plain)


_OUTCOME = _Shape(
    RunOutcome,
    containers=_containers,
    conditions=frozenset,
    ended_by=EndedBy,
    log_tail=tuple,
    events=_many(_EVENT),
)
_FAILURE = _Shape(Failure, cause=Cause, conditions=frozenset, containers=_containers, ended_by=EndedBy)
_DECISION = _Shape(
    Decision,
    action=Action,
    code=DecisionCode,
    limits=_many(_LIMIT),
    considered=_many(_CONSIDERED),
)
_SET_DECISION = _Shape(
    SetDecision,
    attempt=tuple,
    action=lambda word: None if word is None else SetAction(word),
    limits=_many(_LIMIT),
    considered=_many(_CONSIDERED),
)
_SET_EVENT = _Shape(Event)


def dump_outcome(outcome: RunOutcome | None) -> str | None:
    """Write how a run ended."""
    return None if outcome is None else dump_json(_OUTCOME.plain(outcome))


def load_outcome(text: str | None) -> RunOutcome | None:
    """Read how a run ended."""
    return None if text is None else _OUTCOME.record(load_json(text))


def dump_failure(failure: Failure | None) -> str | None:
    """Write a judged failure."""
    return None if failure is None else dump_json(_FAILURE.plain(failure))


def load_failure(text: str | None) -> Failure | None:
    """Read a judged failure."""
    return None if text is None else _FAILURE.record(load_json(text))


def dump_decision(decision: Decision | None) -> str | None:
    """Write a decision."""
    return None if decision is None else dump_json(_DECISION.plain(decision))


def load_decision(text: str | None) -> Decision | None:
    """Read a decision."""
    return None if text is None else _DECISION.record(load_json(text))


def dump_set_fact(what: SetDecision | Event) -> tuple[str, str]:
    """Write what was logged of a job set; returns its kind and its fields."""
    if isinstance(what, SetDecision):
        return "decision", dump_json(_SET_DECISION.plain(what))
    return "event", dump_json(_SET_EVENT.plain(what))


def load_set_fact(kind: str, text: str) -> SetDecision | Event:
    """Read what was logged of a job set.

    Raises:
        Internal: It is of a kind this version does not know.
    """
    if kind == "decision":
        return _SET_DECISION.record(load_json(text))
    if kind == "event":
        return _SET_EVENT.record(load_json(text))
    message = f"the log of a job set holds {kind!r}, which this version of Holdfast does not know"
    raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")
