"""Gives an array that is there already the limits of a manifest; nothing else of it can change."""

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
from holdfast.service.steering.control import Control
from holdfast.service.turns import in_order

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
    """An array that was compared with a manifest."""

    progress: Progress
    result: str
    """``updated`` or ``unchanged``."""


def reshape(
    store: Store, clock: Clock, reference: str, written: WrittenJob, *, by: Caller | None = None, dry_run: bool = False
) -> Reshaped:
    """Ask for an array to get the limits that a manifest has, which otherwise must say the same as the array's own.

    Args:
        store: Has all arrays.
        clock: Says when it is asked.
        reference: Its name or id.
        written: The manifest; of an array.
        by: Who asks.
        dry_run: Only check.

    Raises:
        NotFound: There is no such array.
        Conflict: Something else differs, with each field, or it has ended.
    """
    with audited(store, None if dry_run else by, Act.UPDATE, Subject.ARRAY, reference):
        array, result = in_order(lambda: _reshape(store, clock, reference, written, by, dry_run=dry_run))
    return Reshaped(progress_of(array, store, clock.now()), result)


def _reshape(
    store: Store, clock: Clock, reference: str, written: WrittenJob, by: Caller | None, *, dry_run: bool
) -> tuple[Array, str]:
    array, wanted = ARRAYS.find(store, reference, Act.UPDATE), written.array
    now = load_array(array.spec)
    differing = [] if wanted is None else differences(now, wanted)
    fixed = [name for name in differing if name not in CHANGEABLE]
    if fixed:
        msg = f"array {array.name!r} exists already, and other things of it cannot be changed than its limits"
        problems = [Problem(name, "differs, and cannot be changed", allowed=CHANGEABLE) for name in fixed]
        raise Conflict(
            msg, problems=problems, hint=f"use another name, or delete it first: holdfast delete array {array.name}"
        )
    if wanted is None or not differing:
        return array, "unchanged"
    require_going_on(array, "its limits cannot be changed")
    if not dry_run:
        spec = evolve(now, max_running=wanted.max_running, max_failures=wanted.max_failures)
        payload = dump_change(SetChange(written.manifest, dump_spec(spec)))
        control = Control(ARRAYS, store, clock)
        control.send(RequestKind.UPDATE, (array.id,), by=by, payload=payload, version=array.version)
    return array, "updated"


def differences(now: ArraySpec, wanted: ArraySpec) -> list[str]:
    """Name the fields of a manifest in which an array differs from another."""
    one, other = write_job(evolve(now.job, after=())), write_job(evolve(wanted.job, after=()))
    found = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    lines = any(axis.name == LINE for axis in (*now.axes, *wanted.axes))
    same = {
        "annotations": now.job.annotations == wanted.job.annotations,
        "dependsOn": same_dependencies(now.job.after, wanted.job.after),
        "notify": now.notify == wanted.notify,
        "array.indices": _same_indexes(now, wanted),
        "array.lines" if lines else "array.matrix": now.axes == wanted.axes,
        "array.success": now.at_least == wanted.at_least,
        "array.maxRunning": now.max_running == wanted.max_running,
        "array.maxFailures": now.max_failures == wanted.max_failures,
        "array.onUnknownEnd": now.job.array_on_unknown_end is wanted.job.array_on_unknown_end,
    }
    return [*dict.fromkeys([*found, *(name for name, alike in same.items() if not alike)])]


def _same_indexes(now: ArraySpec, wanted: ArraySpec) -> bool:
    """Whether an array has the same tasks as another, however their indexes are written."""
    if now.indexes == wanted.indexes and now.only == wanted.only:
        return True
    return now.total == wanted.total and all(map(eq, now.every_index(), wanted.every_index()))


def same_dependencies(now: Sequence[Dependency], wanted: Sequence[Dependency]) -> bool:
    """Whether dependencies that were found are those that someone wrote."""
    return len(now) == len(wanted) and all(
        other.name in {one.name, one.id}
        and other.target in {None, one.target}
        and (other.condition, other.on_unmet, other.by_index) == (one.condition, one.on_unmet, one.by_index)
        for one, other in zip(now, wanted, strict=True)
    )
