"""Tasks: list them, read their status and, as an operator, end them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER, find_job, named_jobs, parse_name
from holdfast.domain.job import JobState
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job
    from holdfast.errors import Problem

MOST_TARGETS = 1_000
_ATTEMPT = re.compile(r":\d+$")
_Controller = controller.Controller
_DESIRED = {job.TASK_STATE_PREEMPTED: "preempted", job.TASK_STATE_FAILED: "failed"}


@CALLS.answers("ListTasks", CONTROLLER)
def list_tasks(call: Rpc, request: controller.Controller.ListTasksRequest) -> controller.Controller.ListTasksResponse:
    """List the tasks of a job; an unknown job has none."""
    if not request.job_id:
        refuse("job_id is required")
    job = find_job(call, parse_name(iris.read_name, request.job_id, "job_id"))
    ranks = () if job is None else range(job.gang)
    return _Controller.ListTasksResponse(tasks=[] if job is None else _describe_tasks(call, job, ranks))


@CALLS.answers("GetTaskStatus", CONTROLLER)
def get_task_status(
    call: Rpc, request: controller.Controller.GetTaskStatusRequest
) -> controller.Controller.GetTaskStatusResponse:
    """Describe a task with all of its attempts."""
    task = parse_name(iris.read_task, request.task_id, "task_id")
    record = find_job(call, task.job)
    if record is None or task.index >= record.gang:
        raise Rejected(Code.NOT_FOUND, f"Task {request.task_id} not found")
    [status] = _describe_tasks(call, record, [task.index])
    resources = iris.request_of(record).get("resources", {})
    return _Controller.GetTaskStatusResponse(task=status, job_resources=job.ResourceSpecProto(**resources))


def _describe_tasks(call: Rpc, record: Job, ranks: Sequence[int]) -> list[job.TaskStatus]:
    detail = JobOperations(call.backend).get(call.caller, record.id)
    return [job.TaskStatus(**iris.task_status(detail.job, rank, detail.attempts, detail.runs)) for rank in ranks]


@CALLS.answers("KickTasks", CONTROLLER)
def kick_tasks(call: Rpc, request: controller.Controller.KickTasksRequest) -> controller.Controller.KickTasksResponse:
    """Preempt tasks, or end them as failed; a gang is tried as a whole, so that all of its tasks share that."""
    if request.desired_state not in _DESIRED:
        refuse(f"desired_state must be one of: {', '.join(_DESIRED.values())}")
    if not request.targets:
        refuse("at least one target is required")
    if len(request.targets) > MOST_TARGETS:
        refuse(f"targets has {len(request.targets)}; at most {MOST_TARGETS}")
    reason = request.reason or f"Kicked to {_DESIRED[request.desired_state]} by operator"
    answer, kicked = _Controller.KickTasksResponse(), dict[str, None]()
    for target, name, owner in _resolved(call, request.targets):
        for result, record in _results(target, name, owner):
            answer.results.append(result)
            if record is not None:
                kicked[record.id] = None
    if kicked:
        where = JobOperations(call.backend).job_filter(call.caller, JobQuery(ids=[*kicked]))
        batches = JobBatches(call.backend)
        if request.desired_state == job.TASK_STATE_PREEMPTED:
            batches.preempt(call.caller, where, reason)
        else:
            batches.cancel(call.caller, where, f"{iris.KICKED}{reason}")
    return answer


def _resolved(
    call: Rpc, targets: Sequence[str]
) -> Iterator[tuple[str, iris.JobName | iris.TaskName | str, Job | None]]:
    """Yield targets, each with the name that it means or what is wrong with it, and its job."""
    names: list[tuple[str, iris.JobName | iris.TaskName | str]] = []
    for target in targets:
        problems: list[Problem] = []
        read_target = iris.target_of(target, "targets", problems)
        suffixed = isinstance(read_target, iris.JobName) and _ATTEMPT.search(target)
        wrong = "a job target cannot carry an ':attempt' suffix" if suffixed else ""
        names.append((target, wrong or read_target or problems[0].message))
    jobs = named_jobs(call).every(call.caller, [*{_job_of(name) for _, name in names if not isinstance(name, str)}])
    for target, name in names:
        yield target, name, None if isinstance(name, str) else jobs.get(_job_of(name))


def _job_of(name: iris.JobName | iris.TaskName) -> str:
    return str(name if isinstance(name, iris.JobName) else name.job)


def _results(
    target: str, name: iris.JobName | iris.TaskName | str, record: Job | None
) -> Iterator[tuple[controller.Controller.KickResult, Job | None]]:
    """Yield the result for each task of a target, with the job if the task is kicked."""
    if isinstance(name, str):
        yield _Controller.KickResult(target=target, detail=name), None
        return
    task = name if isinstance(name, iris.TaskName) else None
    if record is None or (task is not None and task.index >= record.gang):
        yield _Controller.KickResult(target=target, detail="job not found" if task is None else "task not found"), None
        return
    active = record.state is JobState.RUNNING and not record.cancel_requested
    if task is None and not active:
        detail = "job has no tasks running on a worker"
        yield _Controller.KickResult(target=target, task_id=record.group, detail=detail), None
        return
    detail = "" if task is None else _why_not(record, task.attempt, active=active)
    for rank in range(record.gang) if task is None else (task.index,):
        result = _Controller.KickResult(target=target, task_id=f"{record.group}/{rank}", queued=not detail)
        result.detail = detail
        yield result, None if detail else record


def _why_not(record: Job, attempt: int | None, *, active: bool) -> str:
    """Return why a task cannot be kicked, in Iris' words; empty if it can."""
    current = max(0, record.attempt - 1)
    if attempt not in {None, current}:
        return f"attempt {attempt} is not current (current is {current})"
    return "" if active else f"task is {iris.job_state(record, None).name.lower()}, not running on a worker"
