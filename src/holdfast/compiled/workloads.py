"""The stored form of workloads: common fields in columns of their own, the rest as versioned JSON.

A new kind needs its line in ``KINDS``, or ``STORED`` in its package, and nothing else here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from holdfast.compiled.codec import LOSE_OR_RESTORE, load_array, set_spec_of
from holdfast.compiled.records import decoder_of, defaults, dump_json, load_json, non_defaults, record_of
from holdfast.domain.terms import kinds
from holdfast.domain.terms.workload_kinds import ARRAY, JOBSET, KUBEJOB
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import UNLIMITED
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import HoldfastError, Internal, UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.job import ChildOf
    from holdfast.domain.notifier import Notify
    from holdfast.domain.workloads.base import Owner
    from holdfast.domain.workloads.dependencies import Dependency

COMMON = Workload.__struct_fields__
"""Fields that have columns of their own."""
_VERSION = "version"
_INDEXES = ("completed_indexes", "failed_indexes")


def _with_short_indexes(values: dict[str, Any]) -> dict[str, Any]:
    """Write sets of indexes as Kubernetes does: there may be a hundred thousand."""
    if "state" in values:
        state = values["state"] = non_defaults(values["state"])
        for name in _INDEXES:
            if name in state:
                state[name] = format_indexes(state[name])
    return values


def _with_all_indexes(values: dict[str, Any]) -> dict[str, Any]:
    state = values.get("state", {})
    state.update((name, parse_indexes(state[name], UNLIMITED)) for name in _INDEXES if name in state)
    return values


class Needs(NamedTuple):
    """What an unfinished workload needs from others, according to its specification."""

    after: Sequence[Dependency] = ()
    """Its dependencies."""
    met: Collection[int] = ()
    """Places of the dependencies that are satisfied."""
    queue: str = ""
    """The queue of the jobs that it has yet to create; a job set's jobs are created with it."""
    policies: Collection[str] = ()
    """Retry policies that it names for its jobs."""
    groups: Collection[str] | None = None
    """The templates that a job of it can belong to; ``None`` if only the workload knows."""
    notify: Sequence[Notify] = ()
    """Who is notified, besides those that its queue names."""


def _of_array(array: Array) -> Needs:
    spec = load_array(array.spec)
    job = spec.job
    met = range(len(job.after)) if array.state.made else array.state.met
    return Needs(job.after, met, job.queue, job.retry_policies, (), spec.notify)


def _of_set(row: JobSet) -> Needs:
    spec = set_spec_of(row)
    policies = {name for group in spec.replicated_jobs for name in group.retry_policies}
    return Needs(spec.after, row.state.met, policies=policies, groups=spec.by_name, notify=spec.notify)


class Stored(NamedTuple):
    """The stored form of a kind."""

    record: type[Workload]
    version: int = 1
    """Grows when a field is renamed, or changes its meaning or default; a migration rewrites stored records then."""
    write: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts its own fields for JSON, if they are not written as they are."""
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values
    needs: Callable[[Any], Needs] = lambda _: Needs()


KINDS: dict[str, Stored] = {
    ARRAY: Stored(Array, needs=_of_array),
    JOBSET: Stored(JobSet, needs=_of_set),
    KUBEJOB: Stored(KubeJobRecord, write=_with_short_indexes, read=_with_all_indexes),
}


def stored_kinds() -> Mapping[str, Stored]:
    """Return the stored forms of all kinds, including those in packages of their own."""
    return KINDS | {name: _in_package(kind.package) for name, kind in kinds.KINDS.items() if kind.package}


@cache
def _in_package(package: str) -> Stored:
    stored: Stored = import_module(f"{package}.model").STORED
    return stored


def _stored(kind: str) -> Stored | None:
    return KINDS.get(kind) or stored_kinds().get(kind)


def _as_stored(workload: Workload) -> Stored:
    return KINDS.get(workload.kind) or stored_kinds()[workload.kind]


def dump_state(workload: Workload) -> str:
    """Write the fields that only its kind has."""
    kind = _as_stored(workload)
    values = non_defaults(workload, _own(kind.record))
    return dump_json({_VERSION: kind.version, **(values if kind.write is None else kind.write(values))})


@cache
def _own(record: type[Workload]) -> Sequence[tuple[str, object]]:
    every = defaults(record)
    return tuple(fact for fact in every if fact[0] not in COMMON)


def needs_of(workload: Workload) -> Needs:
    """Return what a workload needs from others; nothing if it cannot be read."""
    try:
        return _as_stored(workload).needs(workload)
    except UnreadableSpec:
        return Needs()


def stands_in(workload: Workload | None, job: ChildOf) -> bool:
    """Whether a job that claims a place in a job set belongs to that set; a damaged job may claim anything."""
    groups = () if workload is None else needs_of(workload).groups
    return groups is None or job.group in groups


def awaited_by(workload: Owner) -> Sequence[str]:
    """Return the ids of what a workload still waits for before it starts."""
    needs = needs_of(workload)
    left = () if workload.ended else enumerate(needs.after)
    return [dependency.id for place, dependency in left if not dependency.outcome and place not in needs.met]


def arrays_needed_by(workload: Workload) -> Sequence[str]:
    """Return the ids of arrays whose tasks an unfinished workload takes over or waits for one by one."""
    if not isinstance(workload, Array) or workload.ended:
        return ()
    by_index = (dependency.id for dependency in needs_of(workload).after if dependency.by_index)
    return [*(origin.id for origin in workload.origins), *by_index]


def left_of_workload(kind: str, common: Mapping[str, Any]) -> Workload:
    """Build a workload from the common fields alone, in its initial state.

    Raises:
        Internal: Its kind is unknown.
    """
    stored = _stored(kind)
    if stored is None:
        raise _unknown(kind, common)
    return record_of(stored.record, common)


def _unknown(kind: str, common: Mapping[str, Any]) -> Internal:
    message = f"the stored {kind} {common['id']} is of a kind or version that this version of Holdfast does not know"
    return Internal(message, hint="a newer Holdfast wrote it")


class _Named(Struct):
    id: str = ""
    outcome: str = ""


class _OfJob(Struct):
    after: tuple[_Named, ...] = ()


class _Text(Struct):
    spec: _OfJob


def still_awaited(spec: str, met: str | None) -> Sequence[str]:
    """Return the ids of what a job still waits for, from its stored text; nothing if that cannot be read.

    It reads no other field, because there may be a hundred thousand specifications.
    """
    try:
        after = decoder_of(_Text).decode(spec).spec.after
        places = () if met is None else load_json(met)
        return [
            dependency.id for place, dependency in enumerate(after) if not dependency.outcome and place not in places
        ]
    except (ValueError, TypeError):
        return ()


def load_workload(kind: str, common: Mapping[str, Any], state: str) -> Workload:
    """Build a workload from the common fields and the text of ``dump_state``.

    Raises:
        Internal: It cannot be read, or is of a kind or version that this version does not know.
    """
    stored = _stored(kind)
    try:
        values = load_json(state)
        if stored is not None and values.pop(_VERSION) == stored.version:
            return record_of(stored.record, {**common, **stored.read(values)})
    except (ValueError, LookupError, TypeError, AttributeError, HoldfastError) as error:
        message = f"the stored {kind} {common['id']} cannot be read: {error}"
        raise Internal(message, hint=LOSE_OR_RESTORE) from error
    raise _unknown(kind, common)
