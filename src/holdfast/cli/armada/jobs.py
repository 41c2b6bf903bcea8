"""Jobs: submit, cancel, preempt and reprioritize them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind, number
from holdfast.cli.armada.queues import QUEUES, SUBMIT, select

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.api.armada._generated.submit import JobSubmitRequestItem as Item
    from holdfast.cli.armada.invocation import Invocation

MOST_ITEMS = 10_000
"""Of one request; a file with more is sent in several."""
LARGEST_REQUEST = 8 * 1024 * 1024
"""Bytes."""
_STATES = ("queued", "leased", "pending", "running")
_FILE_FIELDS = ("queue", "jobSetId", "jobs")
_ALL = "all"
_PATH = re.compile(r"^  (\S+): ")
_ITEM = re.compile(r"(?<=^  )items\[(\d+)\]")


def _submit(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import JobSubmitRequest
    from holdfast.cli.armada.files import read_file

    file = asked.words[0]
    documents = read_file(file)
    value = {str(key).lower(): one for key, one in documents[0].value.items()} if documents else {}
    listed = value.get("jobs")
    if not listed:
        told = "Warning: You have provided no jobs to submit."
        raise Failed(told)
    if len(documents) > 1:
        asked.note(f"warning: {file}: only its first document is submitted, as armadactl does")
    for name in value.keys() - {one.lower() for one in _FILE_FIELDS}:
        asked.note(f"warning: {file}: {name} is not a field of a job file, and has no effect")
    queue, job_set = _text(value, "queue", file), _text(value, "jobSetId", file)
    items = _items(asked, listed, file)
    if asked.flags["dry-run"]:
        _check(queue, job_set, items, file)
        return 0
    sent = 0
    for part in _parts(items):
        request = JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=part)
        try:
            answer = asked.call(SUBMIT, "SubmitJobs", request, "error submitting request: {}")
        except Failed as error:
            more = (_in_file(line, sent, alone=len(part) == 1) for line in error.more)
            raise Failed(error.message, *more) from error
        for one in answer.job_response_items:
            asked.out(f"Submitted job with id {one.job_id} to job set {job_set}")
        sent += len(part)
    return 0


def _in_file(line: str, before: int, *, alone: bool) -> str:
    """Say of which job of the file something is told that the server told of an item of a request."""
    if alone:
        return _PATH.sub(rf"  jobs[{before}].\1: ", line)
    return _ITEM.sub(lambda found: f"jobs[{int(found[1]) + before}]", line)


def _text(value: Mapping[str, Any], name: str, file: str) -> str:
    given = value.get(name.lower()) or ""
    if not isinstance(given, str):
        told = f"Failed to parse file {file} because: {name} must be a text, not {given!r}"
        raise Failed(told)
    return given


def _items(asked: Invocation, listed: object, file: str) -> list[Item]:
    from holdfast.api.armada._generated.submit import JobSubmitRequestItem
    from holdfast.api.armada.plain import fill
    from holdfast.cli.armada.files import MessageShape

    shape, found = MessageShape(), []
    for place, job in enumerate(listed if isinstance(listed, list) else ()):
        where = f"jobs[{place}]"
        if not isinstance(job, dict):
            shape.wrong.append(f"{where} must be a mapping, not {job!r}")
            continue
        item = JobSubmitRequestItem()
        read = shape.of(JobSubmitRequestItem.DESCRIPTOR, job, where)
        if "podSpec" in read:
            item.pod_spec.SetInParent()
        fill(item, read)
        found.append(item)
    if not isinstance(listed, list):
        shape.wrong.append(f"jobs must be a list, not {listed!r}")
    if shape.wrong:
        told = f"Failed to parse file {file} because: {shape.wrong[0]}"
        raise Failed(told, *(f"  {one}" for one in shape.wrong[1:]))
    for name in shape.unknown:
        asked.note(f"warning: {file}: {name} is not known here, and has no effect")
    return found


def _check(queue: str, job_set: str, items: Sequence[Item], file: str) -> None:
    """Say what the server would say of them that can be known without it.

    Raises:
        Failed: They would be refused.
    """
    from holdfast.api.armada.plain import plain
    from holdfast.dialects.armada.jobs import read_items, request_problems

    problems = [(one.path, one.message) for one in request_problems(queue, job_set)]
    written = [{**({"podSpec": {}} if one.HasField("pod_spec") else {}), **plain(one)} for one in items]
    sizes = [one.pod_spec.ByteSize() for one in items]
    for place, item in enumerate(read_items(queue, job_set, written, sizes=sizes)):
        problems += [(f"jobs[{place}].{one.path}", one.message) for one in item.problems]
    if problems:
        told = f"file {file} error: {problems[0][1]}"
        raise Failed(told, *(f"  {path}: {message}" for path, message in problems))


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Split what is to be submitted into requests that are not too large; most files are one."""
    part: list[Item] = []
    size = 0
    for item in items:
        length = item.ByteSize()
        if part and (len(part) == MOST_ITEMS or size + length > LARGEST_REQUEST):
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    yield part


def _cancel_job(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import JobCancelRequest

    queue, job_set, job = asked.words
    asked.out(f"Requesting cancellation of jobs matching queue: {queue}, job set: {job_set}, and job ID: {job}")
    otherwise = f"error cancelling jobs matching queue: {queue}, job set: {job_set}, and job id: {job}: {{}}"
    sent = JobCancelRequest(queue=queue, job_set_id=job_set, job_id=job)
    answer = asked.call(SUBMIT, "CancelJobs", sent, otherwise)
    asked.out(f"Requested cancellation for jobs {', '.join(answer.cancelled_ids)}")
    return 0


def _cancel_job_set(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import JobSetCancelRequest

    queue, job_set = asked.words
    asked.out(f"Requesting cancellation of job set matching queue: {queue}, job set: {job_set}")
    otherwise = f"error cancelling job set matching queue: {queue}, job set: {job_set}: {{}}"
    asked.call(SUBMIT, "CancelJobSet", JobSetCancelRequest(queue=queue, job_set_id=job_set), otherwise)
    asked.out(f"Requested cancellation for job set {job_set}")
    return 0


def _cancel_queues(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueueCancelRequest

    states = asked.flags["job-states"]
    for state in states:
        if state not in _STATES:
            must = 'must be one of "queued", "leased", "pending", "running"'
            told = f"error determining active job state corresponding to {state}: {must}"
            raise Failed(told)
    wanted = [state.upper() for state in states]
    classes, pools = _classes(asked), asked.flags["pools"]
    for name in _queues(asked):
        said = f"priorityClasses: {_said(classes)}, jobStates: {','.join(states)}, pools: {_said(pools)}"
        asked.out(f"Requesting cancellation of jobs matching queue: {name}, {said}")
        if not asked.flags["dry-run"]:
            sent = QueueCancelRequest(name=name, priorityClasses=classes, jobStates=wanted, pools=pools)
            asked.call(QUEUES, "CancelOnQueue", sent, f"error cancelling jobs on queue {name}: {{}}")
    return 0


def _preempt_job(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import JobPreemptRequest

    queue, job_set, job, reason = asked.words
    asked.out(f"Requesting preemption of job matching queue: {queue}, job set: {job_set}, and job Id: {job}")
    otherwise = f"error preempting job matching queue: {queue}, job set: {job_set}, and job id: {job}: {{}}"
    sent = JobPreemptRequest(queue=queue, job_set_id=job_set, job_ids=[job], reason=reason)
    asked.call(SUBMIT, "PreemptJobs", sent, otherwise)
    asked.out(f"Requested preemption for job {job}")
    return 0


def _preempt_queues(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueuePreemptRequest

    classes, pools = _classes(asked), asked.flags["pools"]
    for name in _queues(asked):
        said = f"priorityClasses: {_said(classes)}, pools: {_said(pools)}"
        asked.out(f"Requesting preemption of jobs matching queue: {name}, {said}")
        if not asked.flags["dry-run"]:
            sent = QueuePreemptRequest(name=name, priorityClasses=classes, pools=pools)
            asked.call(QUEUES, "PreemptOnQueue", sent, f"error preempting jobs on queue {name}: {{}}")
    return 0


def _queues(asked: Invocation) -> list[str]:
    """Return the queues that are meant, of which none are all by mistake."""
    labels = asked.flags["selector"]
    if asked.words and labels:
        told = "queues can be selected either with a set of names or a set of labels, but not both"
        raise Failed(told)
    if not asked.words and not labels:
        told = "queue selection must be narrowed down either by names or by labels"
        raise Failed(told)
    return [one.name for one in select(asked, labels, "error fetching queues: {}")]


def _classes(asked: Invocation) -> Sequence[str]:
    found: Sequence[str] = asked.flags["priority-classes"]
    return () if asked.flags["all-priority-classes"] else found


def _said(listed: Sequence[str]) -> str:
    return ",".join(listed) or _ALL


def _reprioritize_job(asked: Invocation) -> int:
    queue, job_set, job, priority = asked.words
    return _reprioritize(asked, (queue, job_set), [job], priority, f"job ID: {job}")


def _reprioritize_job_set(asked: Invocation) -> int:
    queue, job_set, priority = asked.words
    return _reprioritize(asked, (queue, job_set), [], priority, f"queue: {queue}, job set: {job_set}")


def _reprioritize(asked: Invocation, place: tuple[str, str], ids: Sequence[str], priority: str, meant: str) -> int:
    from holdfast.api.armada._generated.submit import JobReprioritizeRequest

    wanted = number(priority, f"error converting {priority} to float64: ")
    sent = JobReprioritizeRequest(queue=place[0], job_set_id=place[1], job_ids=ids, new_priority=wanted)
    otherwise = f"error reprioritising jobs matching {meant}: {{}}"
    results = asked.call(SUBMIT, "ReprioritizeJobs", sent, otherwise).reprioritization_results
    if not results:
        told = "no jobs were reprioritized"
        raise Failed(told)
    done = [one for one, told in results.items() if not told]
    for line in ("Reprioritized jobs with ID:", *done) if done else ():
        asked.out(line)
    wrong = [f"{one} failed with error {told}" for one, told in results.items() if told]
    for line in ("", "Failed to reprioritize:", *wrong) if wrong else ():
        asked.out(line)
    if wrong:
        told = "error reprioritizing some jobs"
        raise Failed(told)
    return 0


_CLASSES = (
    Flag("priority-classes", FlagKind.LIST, "Priority classes of the jobs, separated by commas.", "p"),
    Flag("all-priority-classes", FlagKind.FLAG, "Jobs of all priority classes.", "a"),
)
_ON_QUEUES = (
    *_CLASSES,
    Flag("pools", FlagKind.LIST, "Pools of the jobs, separated by commas; there is one, called default."),
    Flag("selector", FlagKind.LIST, "Labels KEY=VALUE or KEY of the queues, separated by commas.", "l"),
    Flag("inverse", FlagKind.FLAG, "Take the queues that are not meant instead."),
    Flag("only-cordoned", FlagKind.FLAG, "Take cordoned queues alone."),
    Flag("dry-run", FlagKind.FLAG, "Show which queues are meant, and change nothing."),
)
_STATE_FLAG = Flag(
    "job-states", FlagKind.LIST, f"States of the jobs, separated by commas: {', '.join(_STATES)}.", "s", required=True
)
_NAMES = "<queue_1> <queue_2> <queue_3> ..."
_NEEDS = ("priority-classes", "all-priority-classes")
SUBMIT_JOBS = ArmadaCommand(
    "submit",
    "Submit the jobs of a file",
    _submit,
    "./path/to/jobs.yaml",
    1,
    (Flag("dry-run", FlagKind.FLAG, "Say what is wrong with the file, and submit nothing."),),
)
CANCEL_JOB = ArmadaCommand("job", "Cancel a job", _cancel_job, "<queue> <job-set> <job-id>", 3)
CANCEL_JOB_SET = ArmadaCommand("job-set", "Cancel the jobs of a job set", _cancel_job_set, "<queue> <job-set>", 2)
CANCEL_QUEUES = ArmadaCommand(
    "queues",
    "Cancel jobs of queues",
    _cancel_queues,
    _NAMES,
    None,
    (_STATE_FLAG, *_ON_QUEUES),
    aliases=("queue",),
    needs=_NEEDS,
)
PREEMPT_JOB = ArmadaCommand(
    "job", "Take the place of a job", _preempt_job, "<queue> <job-set> <job-id> <preempt-reason>", 4
)
PREEMPT_QUEUES = ArmadaCommand(
    "queues",
    "Take the places of jobs of queues",
    _preempt_queues,
    _NAMES,
    None,
    _ON_QUEUES,
    aliases=("queue",),
    needs=_NEEDS,
)
REPRIORITIZE_JOB = ArmadaCommand(
    "job", "Change the priority of a job", _reprioritize_job, "<queue> <job-set> <job-id> <priority>", 4
)
REPRIORITIZE_JOB_SET = ArmadaCommand(
    "job-set", "Change the priority of the jobs of a set", _reprioritize_job_set, "<queue> <job-set> <priority>", 3
)
