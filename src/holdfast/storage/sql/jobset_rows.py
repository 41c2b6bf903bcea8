"""Records of job sets and of jobs made of pods to rows and back, in the tables' column order.

Of a state, fields at their default are left out: a field added later needs a default, for older rows to be readable.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.jobset.state import GroupStatus, JobSet, JobSetState, SetCondition, SetLogEntry, Terminal
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import UNLIMITED, BackoffRecord, JobCondition, KubeJobState
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord
from holdfast.storage.sql.codec import storable
from holdfast.storage.sql.facts import dump_json, dump_set_fact, load_json, load_set_fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = Sequence[Any]


def job_set_changes(job_set: JobSet) -> tuple[Any, ...]:
    """Return a job set's changing columns, in table order."""
    return (
        job_set.manifest,
        job_set.lenient,
        job_set.generation,
        job_set.updated_at,
        job_set.deleting,
        dump_json(set_record(job_set.state)),
        job_set.spec,
    )


def job_set_row(job_set: JobSet) -> tuple[Any, ...]:
    """Return a job set's row."""
    *changes, spec = job_set_changes(job_set)
    return (job_set.id, job_set.name, job_set.created_at, *changes, job_set.version, spec)


def read_job_set(row: Row) -> JobSet:
    """Build a job set from its row."""
    set_id, name, created_at, manifest, lenient, generation, updated_at, deleting, state, version, spec = row
    return JobSet(
        id=set_id,
        name=name,
        created_at=created_at,
        manifest=manifest,
        spec=spec,
        lenient=lenient,
        generation=generation,
        updated_at=updated_at,
        deleting=deleting,
        state=set_state(load_json(state)),
        version=version,
    )


def set_log_row(entry: SetLogEntry) -> tuple[Any, ...]:
    """Return an entry's row without ``seq``."""
    return (entry.set_id, entry.at, *dump_set_fact(entry.what))


def read_set_log(row: Row) -> SetLogEntry:
    """Build an entry from its row.

    Raises:
        Internal: It is of a kind this version does not know.
    """
    seq, set_id, at, kind, body = row
    return SetLogEntry(set_id=set_id, at=at, what=load_set_fact(kind, body), seq=seq)


def pod_job_row(job: KubeJobRecord) -> tuple[Any, ...]:
    """Return the row of a job made of pods."""
    return (
        job.job_id,
        job.restart,
        job.job_restart,
        job.present,
        job.suspended,
        job.deleting_since,
        storable(job.domain),
        job.parallelism,
        job.completions,
        job.expires_at,
        dump_json({"state": job_record(job.state), "pods": pods_record(job.pods)}),
    )


def read_pod_job(row: Row) -> KubeJobRecord:
    """Build a job made of pods from its row."""
    job_id, restart, job_restart, present, suspended, deleting_since, domain, parallelism, completions, *rest = row
    expires_at, text = rest
    record = load_json(text)
    return KubeJobRecord(
        job_id=job_id,
        restart=restart,
        job_restart=job_restart,
        present=present,
        suspended=suspended,
        deleting_since=deleting_since,
        domain=domain,
        parallelism=parallelism,
        completions=completions,
        expires_at=expires_at,
        state=job_state(record["state"]),
        pods=pods_of(record["pods"]),
    )


_NO_DEFAULT = object()
_INDEXES = ("completed_indexes", "failed_indexes")
_RESTARTS = ("job_restarts", "job_restarts_counted")


def _defaults(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    return tuple((each.name, _default(each.default, each.default_factory)) for each in fields(kind))


def _default(value: object, factory: object) -> object:
    if value is not MISSING:
        return value
    return factory() if callable(factory) else _NO_DEFAULT


_KINDS = (JobSetState, SetCondition, GroupStatus, KubeJobState, JobCondition, BackoffRecord, PodRecord)
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
    _change(given, ("conditions",), lambda every: tuple(SetCondition(**one) for one in every))
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
