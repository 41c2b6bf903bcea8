"""Changes the limits of an existing array to those of a manifest; nothing else of an array can change."""

from __future__ import annotations

from operator import eq
from typing import TYPE_CHECKING

from holdfast.compiled.codec import SetChange, dump_change, dump_spec, load_array
from holdfast.dialects.native.writing import write_job
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import LINE
from holdfast.errors import Conflict, Problem
from holdfast.ports.requests import RequestKind
from holdfast.service.arrays import progress_of
from holdfast.service.refusals import audited
from holdfast.service.steering.arrays import ARRAYS, require_going_on
from holdfast.service.steering.control import Control, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.array.model import Array, ArraySpec
    from holdfast.domain.workloads.array.progress import Progress
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store
    from holdfast.service.submit import WrittenJob

CHANGEABLE = ("array.maxRunning", "array.maxFailures")


class Reshaped(Struct, frozen=True):
    """The result of applying a manifest to an array."""

    progress: Progress
    result: str
    """``updated`` or ``unchanged``."""


def reshape(
    store: Store,
    clock: Clock,
    reference: str,
    written: WrittenJob,
    *,
    caller: Caller | None = None,
    dry_run: bool = False,
) -> Reshaped:
    """Request that an array get the limits of a manifest, which must equal the array's own in everything else.

    Args:
        store: The store.
        clock: The clock.
        reference: The array's name or id.
        written: The manifest of an array.
        caller: The caller.
        dry_run: Only check.

    Raises:
        NotFound: The array does not exist.
        Conflict: Another field differs, with each such field; or the array has ended.
    """
    with audited(store, None if dry_run else caller, Act.UPDATE, Subject.ARRAY, reference):
        array, result = in_order(lambda: _reshape(store, clock, reference, written, caller, dry_run=dry_run))
    return Reshaped(progress_of(array, store, clock.now()), result)


def _reshape(
    store: Store, clock: Clock, reference: str, written: WrittenJob, caller: Caller | None, *, dry_run: bool
) -> tuple[Array, str]:
    array, new_spec = ARRAYS.find(store, reference, Act.UPDATE), written.array
    now = load_array(array.spec)
    differing = [] if new_spec is None else differences(now, new_spec)
    fixed = [name for name in differing if name not in CHANGEABLE]
    if fixed:
        msg = f"array {array.name!r} exists already, and only its limits can be changed"
        problems = [Problem(name, "differs, and cannot be changed", allowed=CHANGEABLE) for name in fixed]
        raise Conflict(
            msg, problems=problems, hint=f"use another name, or delete it first: holdfast delete array {array.name}"
        )
    if new_spec is None or not differing:
        return array, "unchanged"
    require_going_on(array, "its limits cannot be changed")
    if not dry_run:
        spec = evolve(now, max_running=new_spec.max_running, max_failures=new_spec.max_failures)
        payload = dump_change(SetChange(written.manifest, dump_spec(spec)))
        control = Control(ARRAYS, store, clock)
        control.send(RequestKind.UPDATE, (array.id,), caller=caller, payload=payload, version=array.version)
    return array, "updated"


def differences(now: ArraySpec, new_spec: ArraySpec) -> list[str]:
    """Return the names of the fields in which two arrays differ."""
    now_written, other = write_job(evolve(now.job, after=())), write_job(evolve(new_spec.job, after=()))
    differing = [name for name in {**now_written, **other} if now_written.get(name) != other.get(name)]
    lines = any(axis.name == LINE for axis in (*now.axes, *new_spec.axes))
    same = {
        "annotations": now.job.annotations == new_spec.job.annotations,
        "dependsOn": same_dependencies(now.job.after, new_spec.job.after),
        "notify": now.notify == new_spec.notify,
        "array.indices": _same_indexes(now, new_spec),
        "array.lines" if lines else "array.matrix": now.axes == new_spec.axes,
        "array.success": now.at_least == new_spec.at_least,
        "array.maxRunning": now.max_running == new_spec.max_running,
        "array.maxFailures": now.max_failures == new_spec.max_failures,
        "array.onUnknownEnd": now.job.array_on_unknown_end is new_spec.job.array_on_unknown_end,
    }
    return [*dict.fromkeys([*differing, *(name for name, alike in same.items() if not alike)])]


def _same_indexes(now: ArraySpec, new_spec: ArraySpec) -> bool:
    """Whether two arrays have the same tasks, however their indexes are written."""
    if now.indexes == new_spec.indexes and now.only == new_spec.only:
        return True
    return now.total == new_spec.total and all(map(eq, now.every_index(), new_spec.every_index()))


def same_dependencies(now: Sequence[Dependency], new_dependencies: Sequence[Dependency]) -> bool:
    """Whether resolved dependencies match those of a manifest."""
    return len(now) == len(new_dependencies) and all(
        other.name in {dependency.name, dependency.id}
        and other.target in {None, dependency.target}
        and (other.condition, other.on_unmet, other.by_index)
        == (dependency.condition, dependency.on_unmet, dependency.by_index)
        for dependency, other in zip(now, new_dependencies, strict=True)
    )
