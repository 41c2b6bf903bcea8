"""The logs of a job's pods, each line with its time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.api.armada._generated import binoculars
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.translation import NAMESPACE, pod_name
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.jobs import JobOperations, LogQuery

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job

MOST_BYTES = 2_000_000
"""Bytes of lines with their times in one answer, as upstream; for more, ask again from the time of the last line."""
_CONTAINER = "main"
"""The container of a job that was not submitted by this door."""
_GONE = (
    "The pod with these logs doesn't exist - "
    "this is likely because the job has finished and the pod has been cleaned up"
)


@CALLS.answers("Logs", "binoculars.Binoculars")
def logs(call: Rpc, request: binoculars.LogRequest) -> binoculars.LogResponse:
    """Read the log of a pod, from a time on: the newest pod of a job, or the named one."""
    options = request.log_options
    _check(request)
    job_id, number = _pod_of(request)
    job = _job(call, job_id)
    attempt = job.attempt if number is None else number
    if options.previous:
        attempt -= 1
    name = pod_name(job.id, max(attempt, 1))
    written = armada.written_of(job.spec)
    if (
        request.pod_namespace not in {"", NAMESPACE, written.get("namespace")}
        or not job.attempt
        or attempt > job.attempt
    ):
        raise _pod_not_found()
    _check_container(job, options.container, name)
    if attempt < 1:
        refuse(f'previous terminated container "{options.container or _container_of(job)}" in pod "{name}" not found')
    query = LogQuery(
        attempt=attempt,
        tail=options.tailLines if options.HasField("tailLines") else None,
        newest=True,
        since=_since(call, request),
        timestamps=True,
    )
    most = min(options.limitBytes, MOST_BYTES) if options.HasField("limitBytes") else MOST_BYTES
    return binoculars.LogResponse(log=_lines(_text(call, job.id, query, most)))


def _job(call: Rpc, job_id: str) -> Job:
    """Return a job by its id; a pod's name has no other key."""
    try:
        job = JobOperations(call.backend).logged(call.caller, job_id)
    except NotFound as error:
        raise _pod_not_found() from error
    if job.id != job_id:
        raise _pod_not_found()
    return job


def _text(call: Rpc, job_id: str, query: LogQuery, most: int) -> str:
    """Read at most ``most`` bytes of lines with their times."""
    jobs, text = JobOperations(call.backend), bytearray()
    try:
        while len(text) < most:
            part = jobs.logs(call.caller, job_id, query)
            text += part.text.encode()
            if part.finished or not part.text:
                break
            query = evolve(query, offset=part.next_offset, tail=None, newest=False, since=None)
    except NotFound as error:
        raise _pod_not_found() from error
    return text[:most].decode(errors="ignore")


def _lines(text: str) -> list[binoculars.LogLine]:
    lines = []
    for stamped in text.split("\n"):
        timestamp, is_whole, line = stamped.partition(" ")
        if is_whole:
            lines.append(binoculars.LogLine(timestamp=timestamp, line=line))
    return lines


def _pod_of(request: binoculars.LogRequest) -> tuple[str, int | None]:
    """Return the job and the attempt of a pod; pods are called ``armada-ID-0`` and ``armada-ID-0-RETRY``."""
    job_id, _, pod = request.job_id.partition("-")
    if not pod and request.pod_number == 0:
        return job_id, None
    if pod == "0" and request.pod_number >= 0:
        return job_id, request.pod_number + 1
    raise _pod_not_found()


def _since(call: Rpc, request: binoculars.LogRequest) -> float | None:
    """Return the earliest time to read; a text that is not a time is ignored, as upstream does."""
    options = request.log_options
    try:
        since = datetime.fromisoformat(request.since_time)
    except ValueError:
        since = None
    if since is not None and since.tzinfo is not None:
        return since.timestamp()
    if options.HasField("sinceTime"):
        return options.sinceTime.seconds + options.sinceTime.nanos / 1_000_000_000
    return call.backend.clock.now() - options.sinceSeconds if options.HasField("sinceSeconds") else None


def _check(request: binoculars.LogRequest) -> None:
    """Refuse the options that Kubernetes refuses."""
    options = request.log_options
    if options.HasField("sinceSeconds") and (options.HasField("sinceTime") or request.since_time):
        refuse("at most one of `sinceTime` or `sinceSeconds` may be specified")
    for field, least in (("tailLines", 0), ("sinceSeconds", 1), ("limitBytes", 1)):
        if options.HasField(field) and getattr(options, field) < least:
            words = "greater than 0" if least else "greater than or equal to 0"
            refuse(f"{field}: Invalid value: {getattr(options, field)}: must be {words}")


def _check_container(job: Job, container: str, pod: str) -> None:
    if container and container != _container_of(job):
        refuse(f"container {container} is not valid for pod {pod}")


def _container_of(job: Job) -> str:
    pod = armada.pod_of(armada.written_of(job.spec)) or {}
    return next((str(container.get("name") or "") for container in pod.get("containers") or ()), _CONTAINER)


def _pod_not_found() -> Rejected:
    return Rejected(Code.NOT_FOUND, _GONE)
