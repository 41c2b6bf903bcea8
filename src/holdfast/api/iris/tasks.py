"""What can be asked of tasks: how they are, and, of operators, their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import named, newest
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.api.connect.calls import Asked
    from holdfast.domain.job import Job
    from holdfast.errors import Problem

MOST_TARGETS = 1_000
_Controller = controller.Controller
_DESIRED = {job.TASK_STATE_PREEMPTED: "preempted", job.TASK_STATE_FAILED: "failed"}


@CALLS.answers("ListTasks", CONTROLLER)
def list_tasks(asked: Asked, sent: controller.Controller.ListTasksRequest) -> controller.Controller.ListTasksResponse:
    """List the tasks of a job; of one that is not known there are none."""
    if not sent.job_id:
        refuse("job_id is required")
    found = newest(asked, named(iris.read_name, sent.job_id, "job_id"))
    ranks = () if found is None else range(found.gang)
    return _Controller.ListTasksResponse(tasks=[] if found is None else _described(asked, found, ranks))


@CALLS.answers("GetTaskStatus", CONTROLLER)
def get_task_status(
    asked: Asked, sent: controller.Controller.GetTaskStatusRequest
) -> controller.Controller.GetTaskStatusResponse:
    """Describe a task with all of its attempts."""
    task = named(iris.read_task, sent.task_id, "task_id")
    found = newest(asked, task.job)
    if found is None or task.index >= found.gang:
        raise Rejected(Code.NOT_FOUND, f"Task {sent.task_id} not found")
    [told] = _described(asked, found, [task.index])
    resources = iris.request_of(found).get("resources", {})
    return _Controller.GetTaskStatusResponse(task=told, job_resources=job.ResourceSpecProto(**resources))


def _described(asked: Asked, found: Job, ranks: Sequence[int]) -> list[job.TaskStatus]:
    detail = JobOperations(asked.backend).get(asked.caller, found.id)
    return [job.TaskStatus(**iris.task_status(detail.job, rank, detail.attempts, detail.runs)) for rank in ranks]


@CALLS.answers("KickTasks", CONTROLLER)
def kick_tasks(asked: Asked, sent: controller.Controller.KickTasksRequest) -> controller.Controller.KickTasksResponse:
    """Take the places of tasks, or end them as failed; as a gang is tried as a whole, that is what happens to all."""
    if sent.desired_state not in _DESIRED:
        refuse(f"desired_state must be one of: {', '.join(_DESIRED.values())}")
    if not sent.targets:
        refuse("at least one target is required")
    if len(sent.targets) > MOST_TARGETS:
        refuse(f"targets has {len(sent.targets)}; at most {MOST_TARGETS}")
    reason = sent.reason or f"Kicked to {_DESIRED[sent.desired_state]} by operator"
    answer, kicked = _Controller.KickTasksResponse(), dict[str, None]()
    for target in sent.targets:
        for result, found in _resolved(asked, target):
            answer.results.append(result)
            if found is not None:
                kicked[found.id] = None
    if kicked:
        where = JobOperations(asked.backend).meant(asked.caller, JobQuery(ids=[*kicked]))
        batches = JobBatches(asked.backend)
        if sent.desired_state == job.TASK_STATE_PREEMPTED:
            batches.preempt(asked.caller, where, reason)
        else:
            batches.cancel(asked.caller, where, f"{iris.KICKED}{reason}")
    return answer


def _resolved(asked: Asked, target: str) -> Iterator[tuple[controller.Controller.KickResult, Job | None]]:
    """Yield what becomes of each task that a target means, with the job if it is kicked."""
    problems: list[Problem] = []
    meant = iris.target_of(target, "targets", problems)
    if meant is None:
        yield _Controller.KickResult(target=target, detail=problems[0].message), None
        return
    task = meant if isinstance(meant, iris.TaskName) else None
    found = newest(asked, meant if isinstance(meant, iris.JobName) else meant.job)
    if found is None or (task is not None and task.index >= found.gang):
        yield _Controller.KickResult(target=target, detail="job not found" if task is None else "task not found"), None
        return
    detail = _why_not(found, None if task is None else task.attempt)
    for rank in range(found.gang) if task is None else (task.index,):
        result = _Controller.KickResult(target=target, task_id=f"{found.group}/{rank}", queued=not detail)
        result.detail = detail
        yield result, None if detail else found


def _why_not(found: Job, attempt: int | None) -> str:
    current = max(0, found.attempt - 1)
    if attempt not in {None, current}:
        return f"attempt {attempt} is not current (current is {current})"
    return f"task is not active ({found.state})" if found.terminal or found.cancel_requested else ""
