"""How the record of a workload is stored: what all kinds have in columns of their own, the rest as versioned JSON.

A kind needs its line in ``KINDS``, and nothing else here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from holdfast.compiled.codec import LOSE_OR_RESTORE, load_array, set_spec_of
from holdfast.compiled.records import decoder_of, defaults, dump_json, load_json, non_defaults, record_of
from holdfast.domain.terms.workload_kinds import ARRAY, JOBSET, KUBEJOB
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import UNLIMITED
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.errors import HoldfastError, Internal, UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.domain.job import ChildOf

COMMON = Workload.__struct_fields__
"""What is in columns of its own."""
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


class Stored(NamedTuple):
    """How a kind of workload is stored."""

    record: type[Workload]
    version: int = 1
    """Grows when a field is renamed, or changes its meaning or default; a migration rewrites what is stored then."""
    write: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values
    """Changes its own fields for JSON."""
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values


KINDS: dict[str, Stored] = {
    ARRAY: Stored(Array),
    JOBSET: Stored(JobSet),
    KUBEJOB: Stored(KubeJobRecord, write=_with_short_indexes, read=_with_all_indexes),
}


def dump_state(workload: Workload) -> str:
    """Write what only its kind has of a workload."""
    kind = KINDS[workload.kind]
    own = _own(kind.record)
    return dump_json({_VERSION: kind.version, **kind.write(non_defaults(workload, own))})


@cache
def _own(record: type[Workload]) -> Sequence[tuple[str, object]]:
    every = defaults(record)
    return tuple(each for each in every if each[0] not in COMMON)


def queue_of(workload: Workload) -> str:
    """Name the queue in which jobs that a workload has yet to make will wait; empty if there are none, or nobody knows.

    Those of a job set are made with it.
    """
    try:
        return load_array(workload.spec).job.queue if isinstance(workload, Array) else ""
    except UnreadableSpec:
        return ""


def stands_in(workload: Workload | None, job: ChildOf) -> bool:
    """Whether a job that says where it stands in a job set is a job of that one; by damage it may say anything."""
    if workload is None or isinstance(workload, Array):
        return False
    if not isinstance(workload, JobSet):
        return True  # of another kind, which alone knows what it is made of
    try:
        return job.group in set_spec_of(workload).by_name
    except UnreadableSpec:
        return True  # of the set, which says so itself


def policies_of(workload: Workload) -> Collection[str]:
    """Name the retry policies that a workload names for its jobs; none where nobody can read that."""
    try:
        if isinstance(workload, Array):
            return load_array(workload.spec).job.retry_policies
        groups = set_spec_of(workload).replicated_jobs if isinstance(workload, JobSet) else ()
    except UnreadableSpec:
        return ()
    return {name for group in groups for name in group.retry_policies}


def arrays_needed_by(workload: Workload) -> Sequence[str]:
    """Name the arrays, by id, whose tasks one that goes on takes over, or waits for one by one."""
    if not isinstance(workload, Array) or workload.ended:
        return ()
    try:
        after = load_array(workload.spec).job.after
    except UnreadableSpec:
        after = ()
    return [*(origin.id for origin in workload.origins), *(one.id for one in after if one.by_index)]


def left_of_workload(kind: str, common: Mapping[str, Any]) -> Workload:
    """Build a workload from what all kinds have alone, as if nothing had become of it yet.

    Raises:
        Internal: It is of a kind that this one does not know.
    """
    known = KINDS.get(kind)
    if known is None:
        raise _unknown(kind, common)
    return record_of(known.record, common)


def _unknown(kind: str, common: Mapping[str, Any]) -> Internal:
    message = f"the stored {kind} {common['id']} is of a kind or version that this version of Holdfast does not know"
    return Internal(message, hint="a newer Holdfast wrote it")


def awaited_by(workload: Workload) -> Sequence[str]:
    """Name what a job set or an array still waits for before it starts, by id; nothing where nobody can read that."""
    try:
        if isinstance(workload, Array):
            after = () if workload.state.made else load_array(workload.spec).job.after
        elif isinstance(workload, JobSet):
            after = set_spec_of(workload).after
        else:
            return ()
    except UnreadableSpec:
        return ()
    met: Sequence[int] = workload.state.met
    left = () if workload.ended else enumerate(after)
    return [one.id for place, one in left if not one.outcome and place not in met]


class _Named(Struct):
    id: str = ""
    outcome: str = ""


class _OfJob(Struct):
    after: tuple[_Named, ...] = ()


class _Text(Struct):
    spec: _OfJob


def still_awaited(spec: str, met: str | None) -> Sequence[str]:
    """Name what a job still waits for, by id, from what is stored; nothing where nobody can read that.

    Of a hundred thousand specifications it reads no more than this.
    """
    try:
        after = decoder_of(_Text).decode(spec).spec.after
        places = () if met is None else load_json(met)
        return [one.id for place, one in enumerate(after) if not one.outcome and place not in places]
    except (ValueError, TypeError):
        return ()


def load_workload(kind: str, common: Mapping[str, Any], state: str) -> Workload:
    """Build a workload from what all kinds have and what ``dump_state`` wrote.

    Raises:
        Internal: It cannot be read, or is of a kind or version this one does not know.
    """
    known = KINDS.get(kind)
    try:
        values = load_json(state)
        if known is not None and values.pop(_VERSION) == known.version:
            return record_of(known.record, {**common, **known.read(values)})
    except (ValueError, LookupError, TypeError, AttributeError, HoldfastError) as error:
        message = f"the stored {kind} {common['id']} cannot be read: {error}"
        raise Internal(message, hint=LOSE_OR_RESTORE) from error
    raise _unknown(kind, common)
