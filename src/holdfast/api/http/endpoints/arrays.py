"""Arrays under /arrays: list, submit, read, explain, rerun, hold, cancel and delete."""

from collections.abc import Sequence
from typing import Annotated

from holdfast.api.http.endpoints.endpoint import (
    LONGEST_NAME,
    DryRun,
    Endpoints,
    Key,
    Param,
    Reply,
    Takes,
)
from holdfast.api.http.endpoints.workloads import Presentation
from holdfast.domain.audit import Act, Caller
from holdfast.domain.terms import kinds
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.errors import Problem
from holdfast.service.manifests.text import Text
from holdfast.service.operations.arrays import ArrayOperations, TaskChoice
from holdfast.service.operations.backend import Backend
from holdfast.wire.arrays import ArrayAccepted, ArrayApplied, ArrayPage, ArrayRerun, ArrayView, ArrayWhy
from holdfast.wire.base import API
from holdfast.wire.jobs import JobSummary, Reason
from holdfast.wire.problems import problem_entry
from holdfast.wire.render_arrays import array_accepted, array_view, array_why
from holdfast.wire.render_jobs import job_summary

_ARRAYS = Endpoints("arrays")
ENDPOINTS = (_ARRAYS,)

_TAKES = Takes(
    "A job with `spec.array`: kind Job of `holdfast.dev/v1`.",
    {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "enum": ["holdfast.dev/v1"]},
            "kind": {"type": "string", "enum": ["Job"]},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"array": {"type": "object"}}},
        },
    },
)
_LARGEST_INDEX = (1 << 31) - 1

ArrayRef = Annotated[str, Param("An array's name or its id.", max_length=LONGEST_NAME)]
Index = Annotated[int, Param("A task's index.", ge=0, le=_LARGEST_INDEX)]


_SHOWN = Presentation(
    info=kinds.ARRAY,
    group=_ARRAYS,
    operations=ArrayOperations,
    page=ArrayPage,
    listed=lambda page: ((array, array.state, array.spec.job.labels) for array in page.rows),
    view=array_view,
    accepted=lambda backend, caller, array: Reply(array_view(ArrayOperations(backend).progress(caller, array))),
    answer=ArrayView,
)
_SHOWN.add_list("list_arrays")


@_ARRAYS.add(
    "POST",
    "/arrays",
    ArrayAccepted,
    403,
    409,
    summary="Submit an array",
    created=(ArrayAccepted, "The array submitted."),
    takes=_TAKES,
)
def submit_array(
    backend: Backend, caller: Caller, body: Text, *, dry_run: DryRun = False, idempotency_key: Key = None
) -> Reply:
    """Submit an array, 201; its name must be new. Its tasks are made as places come free. 200 for a dry run."""
    submitted = ArrayOperations(backend).submit(caller, body, key=idempotency_key, dry_run=dry_run)
    return _accepted(submitted.array, submitted.spec, submitted.warnings, dry_run=dry_run)


@_ARRAYS.add("GET", "/arrays/{ref}", ArrayView, 404, summary="Read an array")
def get_array(backend: Backend, caller: Caller, ref: ArrayRef) -> ArrayView:
    """Read how far an array is."""
    return array_view(ArrayOperations(backend).get(caller, ref))


@_ARRAYS.add("PUT", "/arrays/{ref}", ArrayApplied, 404, 409, summary="Change an array's limits", takes=_TAKES)
def put_array(backend: Backend, caller: Caller, ref: ArrayRef, body: Text, *, dry_run: DryRun = False) -> ArrayApplied:
    """Change `maxRunning` and `maxFailures` of an array to what its manifest says, which may differ in nothing else."""
    applied, warnings = ArrayOperations(backend).change(caller, ref, body, dry_run=dry_run)
    shown = dict(array_view(applied.progress))
    return ArrayApplied(**shown, warnings=list(map(problem_entry, warnings)), result=applied.result)


@_ARRAYS.add("GET", "/arrays/{ref}/tasks/{index}", JobSummary, 404, summary="Read a task of an array")
def get_task(backend: Backend, caller: Caller, ref: ArrayRef, index: Index) -> JobSummary:
    """Read the job that is a task of an array."""
    return job_summary(ArrayOperations(backend).task(caller, ref, index))


@_ARRAYS.add("GET", "/arrays/{ref}/why", ArrayWhy, 404, summary="Explain an array")
def explain_array(backend: Backend, caller: Caller, ref: ArrayRef) -> ArrayWhy:
    """Explain where an array is: failed tasks by how they failed and what was decided, cancelled ones by why."""
    return array_why(ArrayOperations(backend).why(caller, ref))


@_ARRAYS.add(
    "POST",
    "/arrays/{ref}/rerun",
    ArrayAccepted,
    403,
    404,
    409,
    413,
    422,
    summary="Run tasks of an array again",
    created=(ArrayAccepted, "The array of those tasks."),
)
def rerun_array(
    backend: Backend, caller: Caller, ref: ArrayRef, array_rerun: ArrayRerun, *, dry_run: DryRun = False
) -> Reply:
    """Submit an array of the tasks that are meant, 201.

    They keep their indexes and take over the checkpoint folders; those that were rerun already are left out, with a
    warning. 200 for a dry run.
    """
    rerun = ArrayOperations(backend).rerun(
        caller,
        ref,
        TaskChoice(array_rerun.failed, array_rerun.cancelled, frozenset(array_rerun.causes)),
        indices=array_rerun.indices,
        changes=array_rerun.set,
        name=array_rerun.name,
        dry_run=dry_run,
    )
    return _accepted(rerun.array, rerun.spec, rerun.warnings, dry_run=dry_run)


def _accepted(array: Array, spec: ArraySpec, warnings: Sequence[Problem], *, dry_run: bool) -> Reply:
    view = array_accepted(array, spec, warnings)
    return Reply(view, 200) if dry_run else Reply(view, 201, f"{API}/arrays/{array.id}")


_SHOWN.add_verb(
    Act.CANCEL,
    "cancel_array",
    "Cancel an array",
    "Ask for an array to make no more tasks, and for those it has to be cancelled.",
    *(404, 409, 413),
)
_SHOWN.add_verb(
    Act.HOLD,
    "hold_array",
    "Hold an array",
    "Ask for no more tasks of an array to start until it is released; those that run go on.",
    *(404, 409, 413),
)
_SHOWN.add_verb(
    Act.RELEASE, "release_array", "Release a held array", "Ask to release an array that is held.", *(404, 409, 413)
)


@_ARRAYS.add("POST", "/arrays/{ref}/preempt", ArrayView, 404, 413, summary="Preempt an array's tasks", status=202)
def preempt_array(backend: Backend, caller: Caller, ref: ArrayRef, reason: Reason | None = None) -> ArrayView:
    """Ask for the places of all tasks that run; they fail as preempted, and policies decide which run again."""
    return array_view(ArrayOperations(backend).preempt(caller, ref, reason.reason if reason else ""))


_SHOWN.add_verb(
    Act.DELETE,
    "delete_array",
    "Delete an array",
    "Ask for an array to be cancelled and forgotten; its tasks stay as history.",
    404,
)
