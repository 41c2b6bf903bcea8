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

ArrayRef = Annotated[str, Param("An array's name or id.", max_length=LONGEST_NAME)]
Index = Annotated[int, Param("A task's index.", ge=0, le=_LARGEST_INDEX)]


_PRESENTATION = Presentation(
    info=kinds.ARRAY,
    group=_ARRAYS,
    operations=ArrayOperations,
    page=ArrayPage,
    listed=lambda page: ((array, array.state, array.spec.job.labels) for array in page.rows),
    view=array_view,
    accepted=lambda backend, caller, array: Reply(array_view(ArrayOperations(backend).progress(caller, array))),
    answer=ArrayView,
)
_PRESENTATION.add_list("list_arrays")


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
    """Submit an array: 201, or 200 for a dry run. Its name must be new; its tasks are created as places become free."""
    submitted = ArrayOperations(backend).submit(caller, body, key=idempotency_key, dry_run=dry_run)
    return _accepted(submitted.array, submitted.spec, submitted.warnings, dry_run=dry_run)


@_ARRAYS.add("GET", "/arrays/{ref}", ArrayView, 404, summary="Read an array")
def get_array(backend: Backend, caller: Caller, ref: ArrayRef) -> ArrayView:
    """Read an array's progress."""
    return array_view(ArrayOperations(backend).get(caller, ref))


@_ARRAYS.add("PUT", "/arrays/{ref}", ArrayApplied, 404, 409, summary="Change an array's limits", takes=_TAKES)
def put_array(backend: Backend, caller: Caller, ref: ArrayRef, body: Text, *, dry_run: DryRun = False) -> ArrayApplied:
    """Set `maxRunning` and `maxFailures` of an array to those of the manifest; nothing else may differ."""
    applied, warnings = ArrayOperations(backend).change(caller, ref, body, dry_run=dry_run)
    shown = dict(array_view(applied.progress))
    return ArrayApplied(**shown, warnings=list(map(problem_entry, warnings)), result=applied.result)


@_ARRAYS.add("GET", "/arrays/{ref}/tasks/{index}", JobSummary, 404, summary="Read a task of an array")
def get_task(backend: Backend, caller: Caller, ref: ArrayRef, index: Index) -> JobSummary:
    """Read one task of an array, which is a job."""
    return job_summary(ArrayOperations(backend).task(caller, ref, index))


@_ARRAYS.add("GET", "/arrays/{ref}/why", ArrayWhy, 404, summary="Explain an array")
def explain_array(backend: Backend, caller: Caller, ref: ArrayRef) -> ArrayWhy:
    """Explain an array's state: its failed tasks by failure and decision, its cancelled tasks by reason."""
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
    """Submit a new array of the selected tasks: 201, or 200 for a dry run.

    The tasks keep their indexes and take over the checkpoint folders. Tasks that were already rerun are left out, with
    a warning.
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


_PRESENTATION.add_verb(
    Act.CANCEL,
    "cancel_array",
    "Cancel an array",
    "Cancel an array: it creates no more tasks, and those it has are cancelled.",
    *(404, 409, 413),
)
_PRESENTATION.add_verb(
    Act.HOLD,
    "hold_array",
    "Hold an array",
    "Start no more tasks of an array until it is released; running tasks go on.",
    *(404, 409, 413),
)
_PRESENTATION.add_verb(
    Act.RELEASE, "release_array", "Release a held array", "Let the tasks of a held array start again.", *(404, 409, 413)
)


@_ARRAYS.add("POST", "/arrays/{ref}/preempt", ArrayView, 404, 413, summary="Preempt an array's tasks", status=202)
def preempt_array(backend: Backend, caller: Caller, ref: ArrayRef, reason: Reason | None = None) -> ArrayView:
    """Preempt an array's running tasks: they fail as preempted, and policies decide which run again."""
    return array_view(ArrayOperations(backend).preempt(caller, ref, reason.reason if reason else ""))


_PRESENTATION.add_verb(
    Act.DELETE,
    "delete_array",
    "Delete an array",
    "Cancel and delete an array; its tasks stay as history.",
    404,
)
