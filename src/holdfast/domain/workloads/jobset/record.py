"""Turns the state of a set, and of a Job and its pods, into plain values for storage and back.

Fields at their default are left out, so a field added later needs a default for older records to be readable.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.jobset.state import Condition, GroupStatus, JobSetState, Terminal
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import UNLIMITED, BackoffRecord, JobCondition, KubeJobState
from holdfast.domain.workloads.kubejob.stored import PodRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_NO_DEFAULT = object()
_INDEXES = ("completed_indexes", "failed_indexes")
_RESTARTS = ("job_restarts", "job_restarts_counted")


def _defaults(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    return tuple((each.name, _default(each.default, each.default_factory)) for each in fields(kind))


def _default(value: object, factory: Any) -> object:  # noqa: ANN401 - a function or MISSING
    if value is not MISSING:
        return value
    return _NO_DEFAULT if factory is MISSING else factory()


_KINDS = (JobSetState, Condition, GroupStatus, KubeJobState, JobCondition, BackoffRecord, PodRecord)
_DEFAULTS: dict[type, tuple[tuple[str, object], ...]] = {kind: _defaults(kind) for kind in _KINDS}


def set_record(state: JobSetState) -> dict[str, Any]:
    """Return a set's state as values that survive JSON."""
    found = _said(state)
    _change(found, ("conditions", "groups"), _all_said)
    return found


def set_state(record: Mapping[str, Any]) -> JobSetState:
    """Return the state a record stands for."""
    given = dict(record)
    _change(given, _RESTARTS, lambda groups: {group: _by_index(counts) for group, counts in groups.items()})
    _change(given, ("left_failed",), lambda jobs: {job: tuple(attempt) for job, attempt in jobs.items()})
    _change(given, ("conditions",), lambda every: tuple(Condition(**one) for one in every))
    _change(given, ("groups",), lambda every: tuple(GroupStatus(**one) for one in every))
    _change(given, ("counted_at",), tuple)
    _change(given, ("terminal",), Terminal)
    return JobSetState(**given)


def job_record(state: KubeJobState) -> dict[str, Any]:
    """Return a Job's state as values that survive JSON."""
    found = _said(state)
    _change(found, ("conditions",), _all_said)
    _change(found, ("backoff",), _said)
    _change(found, ("counted",), sorted)
    _change(found, _INDEXES, format_indexes)
    return found


def job_state(record: Mapping[str, Any]) -> KubeJobState:
    """Return the state a record stands for."""
    given = dict(record)
    _change(given, ("conditions",), lambda every: tuple(JobCondition(**one) for one in every))
    _change(given, ("backoff",), lambda one: BackoffRecord(**one))
    _change(given, ("counted",), frozenset)
    _change(given, _INDEXES, lambda text: parse_indexes(text, UNLIMITED))
    _change(given, ("index_failures",), lambda counts: {int(index): tuple(one) for index, one in counts.items()})
    return KubeJobState(**given)


def pods_record(pods: Sequence[PodRecord]) -> list[dict[str, Any]]:
    """Return a Job's pods as values that survive JSON."""
    return _all_said(pods)


def pods_of(record: Iterable[Mapping[str, Any]]) -> tuple[PodRecord, ...]:
    """Return the pods a record stands for."""
    return tuple(PodRecord(**one) for one in record)


def _said(record: object) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    found: dict[str, Any] = {}
    for name, default in _DEFAULTS[type(record)]:
        value = getattr(record, name)
        if value is not default and value != default:
            found[name] = value
    return found


def _all_said(records: Iterable[object]) -> list[dict[str, Any]]:
    return [_said(record) for record in records]


def _change(values: dict[str, Any], names: Iterable[str], change: Callable[[Any], Any]) -> None:
    for name in names:
        if name in values:
            values[name] = change(values[name])


def _by_index(counts: Mapping[str, int]) -> dict[int, int]:
    return {int(index): count for index, count in counts.items()}
