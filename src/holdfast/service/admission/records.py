"""Makes the records of submitted jobs and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from holdfast.compiled.codec import dump_spec, load_array
from holdfast.domain.access.group import BELOW
from holdfast.domain.job import Job
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState
from holdfast.domain.workloads.gang.conclude import until_start
from holdfast.errors import AlreadyExists, HoldfastError
from holdfast.ports.workloads import Rerun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.admission.dependencies import Resolved

Item = TypeVar("Item")


def below_its_job(item: Item, caller: Caller | None) -> Item:
    """Put an item without a group into the group below the calling job, if the caller is a job."""
    limit = None if caller is None else caller.principal.limit
    written: Any = item
    if limit is None or not limit.below or isinstance(item, HoldfastError) or written.spec.group:
        return item
    identity = f"{limit.below}{BELOW}{written.spec.identity}" if written.spec.identity else ""
    spec = evolve(written.spec, group=limit.below, identity=identity)
    return cast("Item", evolve(written, spec=spec, array=written.array and evolve(written.array, job=spec)))


def new_job(spec: JobSpec, job_id: str, now: float, principal: Principal | None = None) -> Job:
    """Make the record of a new job."""
    job = Job(
        id=job_id,
        name=spec.name,
        queue=spec.queue,
        priority=spec.priority,
        submitted_at=now,
        spec=dump_spec(spec),
        request=spec.resources,
        gang=spec.gang,
        queued_at=now,
        updated_at=now,
        submitted_by="" if principal is None else principal.name,
        submitter_uid=None if principal is None else principal.uid,
        group=spec.group,
        kind=spec.kind,
    )
    return until_start(spec, job, now)


def new_array(
    spec: ArraySpec, awaited: Resolved, manifest: str, key: str, now: float, principal: Principal | None = None
) -> Array:
    """Make the record of a new array."""
    if awaited.after:
        spec = evolve(spec, job=evolve(spec.job, after=awaited.after))
    return Array(
        id=key,
        name=spec.name,
        spec=dump_spec(spec),
        manifest=manifest,
        created_at=now,
        updated_at=now,
        submitted_by="" if principal is None else principal.name,
        submitter_uid=None if principal is None else principal.uid,
        group=spec.job.group,
        queue=spec.job.queue,
        state=ArrayState(met=awaited.met),
    )


def rerun_of(array: Array, task_ids: Sequence[str]) -> Rerun | None:
    """Return which tasks of another array this array runs again, if any.

    Args:
        array: The array.
        task_ids: Ids of those tasks that still exist.
    """
    origins = array.origins
    if not origins:
        return None
    indexes = [*load_array(array.spec).every_index()]
    return Rerun(array.id, origins[0].id, origins[-1].id, len(origins), indexes, task_ids)


def array_exists(name: str) -> AlreadyExists:
    """Return the error for an array's name that is taken."""
    return AlreadyExists(f"array {name!r} exists already", hint=f"use another name, or: holdfast delete array {name}")
