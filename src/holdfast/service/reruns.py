"""Reruns some tasks of an array, as a new array."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_array
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array, task_id, task_name
from holdfast.domain.workloads.array.rerun import Task, causes_of, is_selected, origins_of, some_of, unused_name
from holdfast.domain.workloads.base import Owner, Workload
from holdfast.domain.workloads.dependencies import (
    CANCELLED,
    GONE,
    AwaitedState,
    Dependency,
    DependencyKind,
    OnUnmet,
    holds,
    state_of,
    why_never,
)
from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Problem, VersionConflict
from holdfast.service.admission.dependencies import about_to_be_retried
from holdfast.service.arrays import array_named, submitted
from holdfast.service.naming import MOST_LISTED
from holdfast.service.refusals import audited
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import ArraySpec
    from holdfast.domain.workloads.array.rerun import TaskChoice
    from holdfast.ports.store import Store
    from holdfast.service.submit import Submitter

_WAYS = ("failed", "cancelled", "causes", "indices")
_MOST_TRIES = 100
"""One caller wins each round, so only that many concurrent callers could use these up."""


class Reran(Struct, frozen=True):
    """An array that runs tasks of another one again."""

    array: Array
    spec: ArraySpec
    warnings: tuple[Problem, ...] = ()
    """Tasks that were left out."""


def reruns_of(store: Store, array: Array) -> Sequence[Array]:
    """List the arrays that run tasks of an array again, by name."""
    return [
        other
        for other in store.workloads(Array)
        if other.origins and other.origins[0].id == array.id and not other.deleting
    ]


def rerun(
    submitter: Submitter,
    reference: str,
    choice: TaskChoice,
    change: Callable[[ArraySpec, str], ArraySpec],
    *,
    dry_run: bool = False,
) -> Reran:
    """Submit an array of some tasks of another one; they keep their indexes and take over the checkpoint folders.

    Args:
        submitter: Submits it for the caller.
        reference: The other array's name or id.
        choice: Which tasks; those that another rerun already has are left out.
        change: Changes the tasks' specification and names the array; it is passed an unused name.
        dry_run: Check everything and store nothing.

    Raises:
        NotFound: The array, or a task of it, does not exist.
        Conflict: A named task has not ended yet, all were rerun already, or their dependencies cannot be met.
        InvalidRequest: No tasks are named, or the change is not valid.
        Refused: A limit of its queue could never hold one of its tasks.
        AlreadyExists: There is an array of that name.
    """
    if choice.any_end and choice.indexes is None:
        raise InvalidRequest(problems=[Problem("", "say which tasks to run again", allowed=_WAYS)])
    with audited(submitter.store, None if dry_run else submitter.caller, Act.CREATE, Subject.ARRAY, reference):
        for _ in range(_MOST_TRIES):
            try:
                return _rerun(submitter, reference, choice, change, dry_run=dry_run)
            except VersionConflict:  # another caller reran tasks of it at the same time
                continue
        return _rerun(submitter, reference, choice, change, dry_run=dry_run)


def _rerun(
    submitter: Submitter,
    reference: str,
    choice: TaskChoice,
    change: Callable[[ArraySpec, str], ArraySpec],
    *,
    dry_run: bool,
) -> Reran:
    """Submit a rerun of the tasks that no other array reruns.

    Raises:
        VersionConflict: Another rerun was accepted, or tasks were deleted, meanwhile.
    """
    store = submitter.store
    array = array_named(store, reference)
    spec = load_array(array.spec)
    tasks = {task.index: task for task in _chosen(store, array, spec, choice)}
    left, out, others = _divided(store, array, tasks)
    if not left:
        names = ", ".join(f"{other.name} ({other.id})" for other in others)
        msg = f"{_tasks(out)} of array {array.name!r} {_were(out)} rerun already: {names}"
        raise Conflict(msg, hint=_in_its_place(others[-1]))
    unused = unused_name(array, {other.name for other in store.workloads(Array)})
    new_spec = change(some_of(spec, left), unused)
    after = _waited_for_again(store, array, new_spec, [tasks[index] for index in left])
    new_spec = evolve(new_spec, job=evolve(new_spec.job, after=after))
    old_ids = tuple(task_id(array.id, array.name, index) for index in left if tasks[index].state is not None)
    written = WrittenJob(new_spec.job, array=new_spec, origins=origins_of(array), taken_over=old_ids)
    names = ", ".join(other.name for other in others)
    warnings = (Problem("indices", f"{_tasks(out)} {_were(out)} left out: rerun already in {names}"),) if out else ()
    try:
        return Reran(submitted(submitter, written, dry_run=dry_run), new_spec, warnings)
    except AlreadyExists as error:
        if new_spec.name != unused:
            raise
        raise VersionConflict(error.message) from error  # another caller took the unused name


def _waited_for_again(store: Store, array: Array, rerun: ArraySpec, tasks: Sequence[Task]) -> tuple[Dependency, ...]:
    """Return what a rerun waits for: its array's dependencies, without those that had been met and were deleted since.

    Raises:
        Conflict: It would be cancelled at once, or tasks wait for those of several arrays.
    """
    after, retried = list[Dependency](), about_to_be_retried(store) if rerun.job.after else frozenset()
    for dependency in rerun.job.after:
        if dependency.by_index:
            key = _task_by_task(store, array, dependency, tasks)
        else:
            standing = AwaitedState() if dependency.id in retried else state_of(_awaited(store, dependency.id))
            is_over = standing == GONE and array.state.made
            key = "" if is_over else dependency.id
            if not is_over:
                _refuse_unmet(f"array {array.name!r}", dependency, standing, "retry or rerun that first")
        if key:
            after.append(evolve(dependency, name=key, id="", outcome="", reason=""))
    return tuple(after)


def _awaited(store: Store, key: str) -> Job | Owner | None:
    for job in store.jobs_by_id([key]):
        return job
    workload = store.workloads_by_id(Workload, [key]).get(key)
    return workload if isinstance(workload, Owner) else None


def _task_by_task(store: Store, array: Array, dependency: Dependency, tasks: Sequence[Task]) -> str:
    """Return the id of the array that last ran the tasks that these wait for; empty if they wait for nothing more."""
    first = store.workloads_by_id(Array, [dependency.id]).get(dependency.id)
    has = store.reran(first.origins[-1].id if first is not None and first.origins else dependency.id)
    keys = {has.get(task.index, dependency.id) for task in tasks}
    if len(keys) > 1:
        names = ", ".join(sorted(awaited.name for awaited in store.workloads_by_id(Array, [*keys]).values()))
        msg = f"the tasks of array {array.name!r} wait for tasks of several arrays: {names}"
        raise Conflict(msg, hint="rerun those that wait for the same array together: --index")
    [key] = keys
    target = store.workloads_by_id(Array, [key]).get(key)
    standings = _of_tasks(store, target, [task.index for task in tasks])
    had_begun = all(task.state in {JobState.SUCCEEDED, JobState.FAILED} for task in tasks)
    if had_begun and GONE in standings.values() and all(standing.outcome for standing in standings.values()):
        return ""
    name = dependency.name if target is None else target.name
    for index, standing in standings.items():
        other = evolve(dependency, name=task_name(name, index), target=DependencyKind.JOB)
        _refuse_unmet(f"task {index} of array {array.name!r}", other, standing, f"holdfast rerun {name} --failed")
    return key


def _of_tasks(store: Store, array: Array | None, indexes: Sequence[int]) -> dict[int, AwaitedState]:
    """Return the states of an array's tasks, as dependencies see them."""
    if array is None:
        return dict.fromkeys(indexes, GONE)
    ids = {index: task_id(array.id, array.name, index) for index in indexes}
    states, over = store.job_states([*ids.values()]), bool(array.state.stopping or array.ended or array.deleting)
    made_indexes = set(load_array(array.spec).indexes_at(0, array.state.made))
    by_index = dict[int, AwaitedState]()
    for index, key in ids.items():
        job_state = states.get(key)
        if job_state is None:
            by_index[index] = GONE if index in made_indexes else AwaitedState(CANCELLED if over else "")
        else:
            state = job_state.state
            by_index[index] = AwaitedState(
                state.value if state in JOB_TERMINAL else "", state is not JobState.CANCELLED
            )
    return by_index


def _refuse_unmet(what: str, dependency: Dependency, standing: AwaitedState, hint: str) -> None:
    if holds(dependency, standing) is False and dependency.on_unmet is OnUnmet.CANCEL:
        hint = f"{hint}, or rerun without waiting: --set dependsOn="
        msg = f"{what} cannot run: {why_never(dependency, standing)}"
        raise Conflict(msg, hint=hint)


def _divided(store: Store, array: Array, indexes: Iterable[int]) -> tuple[list[int], list[int], list[Array]]:
    """Return the tasks that no array reruns yet, those that others rerun, and these others by name."""
    has = store.reran(origins_of(array)[-1].id)
    left, out = list[int](), list[int]()
    for index in indexes:
        (left if has.get(index, array.id) == array.id else out).append(index)
    arrays_found = store.workloads_by_id(Array, [*{has[index] for index in out}])
    return left, out, sorted(arrays_found.values(), key=attrgetter("name"))


def _in_its_place(other: Array) -> str:
    """Return the hint when another array already reruns the tasks."""
    if other.deleting:
        return f"array {other.name} is being deleted; once it is gone, its tasks can run again"
    return f"rerun its failed tasks: holdfast rerun {other.name} --failed"


def _chosen(store: Store, array: Array, spec: ArraySpec, choice: TaskChoice) -> Sequence[Task]:
    """Return the tasks of a choice."""
    every = list(spec.every_index())
    if choice.indexes is not None:
        unknown = choice.indexes.difference(every)
        if unknown:
            msg = f"array {array.name!r} has no {_tasks(unknown)}"
            raise NotFound(msg, hint=f"it has {format_indexes(every[:MOST_LISTED])}{_more(every)}")
        every = [index for index in every if index in choice.indexes]
    ids = {index: task_id(array.id, array.name, index) for index in every}
    states = {key: by_index.state for key, by_index in store.job_states([*ids.values()]).items()}
    over = bool(array.state.stopping or array.ended or array.deleting)
    to_come = set() if over else set(spec.indexes_at(array.state.made, spec.total))
    by_index = {index: states.get(ids[index]) for index in every}
    going = [index for index, state in by_index.items() if index in to_come or state not in {*JOB_TERMINAL, None}]
    if going and choice.any_end:
        msg = f"{_tasks(going)} of array {array.name!r} {'has' if len(going) == 1 else 'have'} not ended yet"
        raise Conflict(msg, hint=f"holdfast wait array {array.name}")
    for index in going:
        del by_index[index]
    made_indexes = set(spec.indexes_at(0, array.state.made))
    tasks = [Task(index, state, forgotten=state is None and index in made_indexes) for index, state in by_index.items()]
    if choice.causes:
        failed = {task.index: ids[task.index] for task in tasks if task.state is JobState.FAILED}
        latest = store.latest_of([*failed.values()])
        causes = {index: causes_of(latest[key].attempt) for index, key in failed.items() if key in latest}
        tasks = [evolve(task, causes=causes.get(task.index, frozenset())) for task in tasks]
    chosen_tasks = [task for task in tasks if is_selected(choice, task)]
    if not chosen_tasks:
        raise _nothing(array, choice, tasks, going)
    return chosen_tasks


def _nothing(array: Array, choice: TaskChoice, tasks: Iterable[Task], going: Collection[int]) -> NotFound:
    """Return the error for a choice without tasks, with the choices that have some."""
    among = "" if choice.indexes is None else f" among {format_indexes(choice.indexes)}"
    if choice.causes and not choice.cancelled:
        causes = sorted(frozenset().union(*(task.causes for task in tasks)))
        msg = f"no task of array {array.name!r}{among} failed with {' or '.join(sorted(choice.causes))}"
        return NotFound(msg, hint=f"tasks of it failed with: {', '.join(causes)}" if causes else "none of them failed")
    how = " or ".join(
        word for word, is_asked in (("failed", choice.failed), ("cancelled", choice.cancelled)) if is_asked
    )
    hint = f"{_tasks(going)} {'has' if len(going) == 1 else 'have'} not ended yet" if going else None
    gone = [task.index for task in tasks if task.forgotten]
    if gone and not going:
        hint = f"{_tasks(gone)} {_were(gone)} deleted meanwhile, and can be run again by number: --index"
    return NotFound(
        f"no task of array {array.name!r}{among} has {how.replace('cancelled', 'been cancelled')}", hint=hint
    )


def _tasks(indexes: Collection[int]) -> str:
    return f"task{'' if len(indexes) == 1 else 's'} {format_indexes(indexes)}"


def _were(indexes: Collection[int]) -> str:
    return "was" if len(indexes) == 1 else "were"


def _more(indexes: Collection[int]) -> str:
    return ", ..." if len(indexes) > MOST_LISTED else ""
