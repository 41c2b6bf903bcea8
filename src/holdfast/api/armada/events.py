"""Calls that follow the events of a job set, from a message on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.api.armada._generated import event, submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.mapping import fill
from holdfast.api.armada.translation import NAMESPACE, REQUESTED, JobRecord, Translator
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.event_mapping import attempt_ended_events
from holdfast.domain.events.jobs import AttemptEnded, FailureDecided, JobSubmitted
from holdfast.domain.events.operators import OperatorActed
from holdfast.domain.events.registry import BY_KIND
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.catalogue import Queues
from holdfast.service.operations.events import LARGEST_PART, EventLog
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.api.connect.following import Following
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.domain.job import Job
    from holdfast.ports.overview import Latest

    Messages = AsyncGenerator[Sequence[event.EventStreamMessage], None]

_FIELDS = (
    "clientId",
    "namespace",
    "labels",
    "annotations",
    "requiredNodeLabels",
    "ingress",
    "services",
    "scheduler",
)
_SPECIFICATIONS = 64
"""How many are kept as messages; most submissions have few."""
_ACTED = BY_KIND[OperatorActed].name
_LONGEST_NUMBER = 19
_BOOLEANS = frozenset(["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"])
"""What Go parses as a boolean."""
_ID_PARTS = 4
"""A message id has the number of the event, 0, the position among its messages, and whether that is the last."""


@CALLS.streams("Watch", "api.Event")
def watch(call: Rpc, request: event.WatchRequest, following: Following) -> Messages:
    """Follow a job set, which must exist."""
    following_request = event.JobSetRequest(
        id=request.job_set_id, queue=request.queue, from_message_id=request.from_id, watch=True, errorIfMissing=True
    )
    return job_set_events(call, following_request, following)


@CALLS.streams("GetJobSetEvents", "api.Event")
async def job_set_events(call: Rpc, request: event.JobSetRequest, following: Following) -> Messages:
    """Read the events of a job set; with ``watch``, go on as they happen."""
    reader = await following.run(_JobSetReader, call, request)
    with following.admitted(call.caller):
        while not following.stopping():
            messages, full, last = await following.run(reader.next)
            if messages:
                yield messages
            if full:
                continue
            if not request.watch:
                return
            del messages  # not to keep them while nothing happens
            await following.news(last)


class _JobSetReader:
    """Reads the events of a job set in parts; its methods run in threads, one at a time."""

    def __init__(self, call: Rpc, request: event.JobSetRequest) -> None:
        """Check that the queue exists, and the job set if the request says so."""
        self._call, self._queue, self._group = call, request.queue, request.id
        self._jobs = JobOperations(call.backend)
        self._log = EventLog(call.backend.store, call.backend.access)
        self._require_queue()
        if request.errorIfMissing and not self._exists():
            message = f"[GetJobSetEvents] Jobset {request.id} for queue {request.queue} does not exist"
            raise Rejected(Code.NOT_FOUND, message)
        self._after, self._skip = _position(request.from_message_id)
        self._where = self._log.filter(call.caller, queue=request.queue, group=request.id)
        self._described: dict[str, Job] = {}
        self._acts: dict[str, list[OperatorActed]] | None = None
        self._translator = Translator(request.queue, request.id, self._recall, self._describe)

    def _require_queue(self) -> None:
        try:
            Queues(self._call.backend.store).require(self._call.caller, self._queue)
        except NotFound as error:
            message = f"[GetJobSetEvents] Queue {self._queue} does not exist"
            raise Rejected(Code.NOT_FOUND, message) from error

    def _exists(self) -> bool:
        where = self._jobs.job_filter(self._call.caller, JobQuery(queue=self._queue, group=self._group))
        return bool(self._jobs.page(self._call.caller, where, limit=1).jobs)

    def next(self) -> tuple[list[event.EventStreamMessage], bool, int]:
        """Return the next messages, whether there may be more at once, and the number of the newest event."""
        part = self._log.part(self._call.caller, self._where, after=self._after, limit=LARGEST_PART)
        self._after = part.next_after
        self._read_submitted(part.events)
        self._read_earlier(part.events)
        stream = []
        for stored in part.events:
            messages = list(self._translator.messages(stored))
            for place, message in enumerate(messages):
                if (stored.seq, place) > self._skip:
                    last = place == len(messages) - 1
                    stream.append(event.EventStreamMessage(id=f"{stored.seq}:0:{place}:{last:d}", message=message))
        self._described = {}
        return stream, part.full, part.last

    def _read_submitted(self, events: Sequence[StoredEvent]) -> None:
        ids = [event.job_id for event in events if isinstance(event.event, JobSubmitted) and event.job_id is not None]
        self._described = self._by_id(ids) if ids else {}

    def _by_id(self, ids: Sequence[str]) -> dict[str, Job]:
        where = self._jobs.job_filter(self._call.caller, JobQuery(ids=ids))
        return {job.id: job for job in self._jobs.page(self._call.caller, where, limit=len(ids)).jobs}

    def _describe(self, job_id: str, message: event.EventMessage) -> None:
        job = self._described.get(job_id)
        if job is not None:
            fill_job(message.submitted.job, job, self._group)

    def _read_earlier(self, events: Sequence[StoredEvent]) -> None:
        """Look up, in one query, the jobs whose earlier events are not read here."""
        remembered_ids, unknown = self._translator.by_job, dict[str, None]()
        for stored in events:
            if (
                stored.job_id is not None
                and stored.job_id not in remembered_ids
                and stored.job_id not in self._described
            ):
                unknown[stored.job_id] = None
        if unknown:
            for job_id, record in self._records_of(list(unknown)).items():
                self._translator.keep(job_id, record)

    def _recall(self, job_id: str) -> JobRecord:
        return self._records_of([job_id]).get(job_id) or JobRecord()

    def _records_of(self, ids: Sequence[str]) -> dict[str, JobRecord]:
        jobs = self._by_id(ids)
        latest = self._jobs.latest(self._call.caller, [*jobs.values()]) if jobs else {}
        if self._acts is None:
            self._acts = self._read_acts()
        return {key: _job_record(job, latest.get(key), self._acts.get(key, ())) for key, job in jobs.items()}

    def _read_acts(self) -> dict[str, list[OperatorActed]]:
        """Read who acted on each job until now; what follows comes with the events."""
        caller, after, acts = self._call.caller, 0, dict[str, list[OperatorActed]]()
        where = self._log.filter(caller, queue=self._queue, group=self._group, types=[_ACTED])
        while True:
            part = self._log.part(caller, where, after=after, limit=LARGEST_PART)
            for stored in part.events:
                acted = stored.event
                if stored.job_id is not None and isinstance(acted, OperatorActed) and acted.action in REQUESTED:
                    acts.setdefault(stored.job_id, []).append(acted)
            if not part.full:
                return acts
            after = part.next_after


def _job_record(job: Job, latest: Latest | None, acts: Sequence[OperatorActed]) -> JobRecord:
    """Return what the events of a job said until now."""
    record = JobRecord(namespace=str(armada.written_of(job.spec).get("namespace") or NAMESPACE))
    attempt = None if latest is None else latest.attempt
    for run in () if latest is None else latest.runs[-1:]:
        record = evolve(record, executor=run.executor, node=run.node, run=run.uid.removeprefix(job.id))
    for ended in attempt_ended_events(attempt) if attempt is not None and attempt.ending is not None else ():
        if isinstance(ended.event, AttemptEnded):
            record = evolve(record, ended=ended.event)
        elif isinstance(ended.event, FailureDecided):
            record = evolve(record, decided=ended.event)
    for acted in acts:
        record = record.after(acted)
    return record


def fill_job(message: submit.Job, job: Job, group: str) -> None:
    """Describe a job as it was submitted."""
    message.MergeFrom(_specification(job.spec))
    message.id, message.job_set_id, message.queue = job.id, group, job.queue
    message.owner, message.priority = job.submitted_by, float(-job.priority)
    message.created.FromNanoseconds(int(job.submitted_at * 1_000_000_000))


@lru_cache(maxsize=_SPECIFICATIONS)
def _specification(stored: str) -> submit.Job:
    """Return the fields that jobs of one specification share; the message must not be changed."""
    written, message = armada.written_of(stored), submit.Job()
    fill(message, {name: written[name] for name in _FIELDS if name in written})
    pod = armada.pod_of(written)
    if pod is not None:
        fill(message.pod_spec, pod)
    return message


def _is_number(text: str) -> bool:
    """Whether a text is a number of 64 bits, which databases accept."""
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) < 1 << 63


def _position(message_id: str) -> tuple[int, tuple[int, int]]:
    """Return the number of the event to read after, and the last message seen of the next event."""
    if not message_id:
        return 0, (0, 0)
    parts = message_id.split(":")
    if len(parts) != _ID_PARTS or not all(map(_is_number, parts[:3])) or parts[3] not in _BOOLEANS:
        refuse(f"{message_id} is not a valid sequence number")
    number, place = int(parts[0]), int(parts[2])
    return max(number - 1, 0), (number, place)
