"""What can be asked of tasks: how they are, and, of operators, their end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import found_job, jobs_named, named
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
def list_tasks(asked: Rpc, sent: controller.Controller.ListTasksRequest) -> controller.Controller.ListTasksResponse:
    """List the tasks of a job; of one that is not known there are none."""
    if not sent.job_id:
        refuse("job_id is required")
    found = found_job(asked, named(iris.read_name, sent.job_id, "job_id"))
    ranks = () if found is None else range(found.gang)
    return _Controller.ListTasksResponse(tasks=[] if found is None else _described(asked, found, ranks))


@CALLS.answers("GetTaskStatus", CONTROLLER)
def get_task_status(
    asked: Rpc, sent: controller.Controller.GetTaskStatusRequest
) -> controller.Controller.GetTaskStatusResponse:
    """Describe a task with all of its attempts."""
    task = named(iris.read_task, sent.task_id, "task_id")
    found = found_job(asked, task.job)
    if found is None or task.index >= found.gang:
        raise Rejected(Code.NOT_FOUND, f"Task {sent.task_id} not found")
    [told] = _described(asked, found, [task.index])
    resources = iris.request_of(found).get("resources", {})
    return _Controller.GetTaskStatusResponse(task=told, job_resources=job.ResourceSpecProto(**resources))


def _described(asked: Rpc, found: Job, ranks: Sequence[int]) -> list[job.TaskStatus]:
    detail = JobOperations(asked.backend).get(asked.caller, found.id)
    return [job.TaskStatus(**iris.task_status(detail.job, rank, detail.attempts, detail.runs)) for rank in ranks]


@CALLS.answers("KickTasks", CONTROLLER)
def kick_tasks(asked: Rpc, sent: controller.Controller.KickTasksRequest) -> controller.Controller.KickTasksResponse:
    """Take the places of tasks, or end them as failed; as a gang is tried as a whole, that is what happens to all."""
    if sent.desired_state not in _DESIRED:
        refuse(f"desired_state must be one of: {', '.join(_DESIRED.values())}")
    if not sent.targets:
        refuse("at least one target is required")
    if len(sent.targets) > MOST_TARGETS:
        refuse(f"targets has {len(sent.targets)}; at most {MOST_TARGETS}")
    reason = sent.reason or f"Kicked to {_DESIRED[sent.desired_state]} by operator"
    answer, kicked = _Controller.KickTasksResponse(), dict[str, None]()
    for target, meant, found in _resolved(asked, sent.targets):
        for result, each in _results(target, meant, found):
            answer.results.append(result)
            if each is not None:
                kicked[each.id] = None
    if kicked:
        where = JobOperations(asked.backend).meant(asked.caller, JobQuery(ids=[*kicked]))
        batches = JobBatches(asked.backend)
        if sent.desired_state == job.TASK_STATE_PREEMPTED:
            batches.preempt(asked.caller, where, reason)
        else:
            batches.cancel(asked.caller, where, f"{iris.KICKED}{reason}")
    return answer


def _resolved(
    asked: Rpc, targets: Sequence[str]
) -> Iterator[tuple[str, iris.JobName | iris.TaskName | str, Job | None]]:
    """Yield what targets mean, or what is wrong with them, and their jobs."""
    meant: list[tuple[str, iris.JobName | iris.TaskName | str]] = []
    for target in targets:
        problems: list[Problem] = []
        found = iris.target_of(target, "targets", problems)
        suffixed = isinstance(found, iris.JobName) and _ATTEMPT.search(target)
        wrong = "a job target cannot carry an ':attempt' suffix" if suffixed else ""
        meant.append((target, wrong or found or problems[0].message))
    jobs = jobs_named(asked).every(asked.caller, [*{_job_of(one) for _, one in meant if not isinstance(one, str)}])
    for target, one in meant:
        yield target, one, None if isinstance(one, str) else jobs.get(_job_of(one))


def _job_of(one: iris.JobName | iris.TaskName) -> str:
    return str(one if isinstance(one, iris.JobName) else one.job)


def _results(
    target: str, meant: iris.JobName | iris.TaskName | str, found: Job | None
) -> Iterator[tuple[controller.Controller.KickResult, Job | None]]:
    """Yield what becomes of each task that a target means, with the job if it is kicked."""
    if isinstance(meant, str):
        yield _Controller.KickResult(target=target, detail=meant), None
        return
    task = meant if isinstance(meant, iris.TaskName) else None
    if found is None or (task is not None and task.index >= found.gang):
        yield _Controller.KickResult(target=target, detail="job not found" if task is None else "task not found"), None
        return
    active = found.state is JobState.RUNNING and not found.cancel_requested
    if task is None and not active:
        detail = "job has no tasks running on a worker"
        yield _Controller.KickResult(target=target, task_id=found.group, detail=detail), None
        return
    detail = "" if task is None else _why_not(found, task.attempt, active=active)
    for rank in range(found.gang) if task is None else (task.index,):
        result = _Controller.KickResult(target=target, task_id=f"{found.group}/{rank}", queued=not detail)
        result.detail = detail
        yield result, None if detail else found


def _why_not(found: Job, attempt: int | None, *, active: bool) -> str:
    """Say why a task cannot be kicked, in Iris' words."""
    current = max(0, found.attempt - 1)
    if attempt not in {None, current}:
        return f"attempt {attempt} is not current (current is {current})"
    return "" if active else f"task is {iris.job_state(found, None).name.lower()}, not running on a worker"
