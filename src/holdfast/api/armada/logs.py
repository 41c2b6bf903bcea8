"""What a job's pods printed, each line with when it was written."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.api.armada._generated import binoculars
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.pods import NAMESPACE, pod_name
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.jobs import JobOperations, LogQuery

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job

MOST_BYTES = 2_000_000
"""Of lines with their times, in one answer, as upstream has it; for more, ask from the last line's time on."""
_CONTAINER = "main"
"""What the container of a job is called that came in another way."""
_GONE = (
    "The pod with these logs doesn't exist - "
    "this is likely because the job has finished and the pod has been cleaned up"
)


@CALLS.answers("Logs", "binoculars.Binoculars")
def logs(call: Rpc, request: binoculars.LogRequest) -> binoculars.LogResponse:
    """Read what a pod printed, from a second on: the newest pod of a job, or the one that is named."""
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
        raise _gone()
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
    """Return a job by its id, as pods are not called by anything else."""
    try:
        job = JobOperations(call.backend).logged(call.caller, job_id)
    except NotFound as error:
        raise _gone() from error
    if job.id != job_id:
        raise _gone()
    return job


def _text(call: Rpc, job_id: str, query: LogQuery, most: int) -> str:
    """Read the lines with their times, at most so many bytes of them."""
    jobs, text = JobOperations(call.backend), bytearray()
    try:
        while len(text) < most:
            part = jobs.logs(call.caller, job_id, query)
            text += part.text.encode()
            if part.finished or not part.text:
                break
            query = evolve(query, offset=part.next_offset, tail=None, newest=False, since=None)
    except NotFound as error:
        raise _gone() from error
    return text[:most].decode(errors="ignore")


def _lines(text: str) -> list[binoculars.LogLine]:
    lines = []
    for stamped in text.split("\n"):
        timestamp, is_whole, line = stamped.partition(" ")
        if is_whole:
            lines.append(binoculars.LogLine(timestamp=timestamp, line=line))
    return lines


def _pod_of(request: binoculars.LogRequest) -> tuple[str, int | None]:
    """Return whose pod is meant, and of which attempt; pods are called ``armada-ID-0`` and ``armada-ID-0-RETRY``."""
    job_id, _, pod = request.job_id.partition("-")
    if not pod and request.pod_number == 0:
        return job_id, None
    if pod == "0" and request.pod_number >= 0:
        return job_id, request.pod_number + 1
    raise _gone()


def _since(call: Rpc, request: binoculars.LogRequest) -> float | None:
    """Return the earliest moment that is asked for; a text that is none is taken for none, as upstream has it."""
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
    """Refuse what Kubernetes does of the options."""
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


def _gone() -> Rejected:
    return Rejected(Code.NOT_FOUND, _GONE)
