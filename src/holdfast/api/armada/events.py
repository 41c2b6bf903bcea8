"""The events of a job set, from a place on, and as they happen."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.api.armada._generated import event, submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.plain import fill
from holdfast.api.armada.pods import NAMESPACE
from holdfast.api.armada.told import REQUESTED, Remembered, Translator
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

_SENT = (
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
"""Kept as messages; most submissions are of few."""
_ACTED = BY_KIND[OperatorActed].name
_LONGEST_NUMBER = 19
_BOOLEANS = frozenset(["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"])
"""As Go reads them."""
_PARTS = 4
"""Of a message id: the event's number, nothing, the place among what it is told as, whether that is the last."""


@CALLS.streams("Watch", "api.Event")
def watch(call: Rpc, request: event.WatchRequest, following: Following) -> Messages:
    """Follow a job set, which must be there."""
    following_request = event.JobSetRequest(
        id=request.job_set_id, queue=request.queue, from_message_id=request.from_id, watch=True, errorIfMissing=True
    )
    return job_set_events(call, following_request, following)


@CALLS.streams("GetJobSetEvents", "api.Event")
async def job_set_events(call: Rpc, request: event.JobSetRequest, following: Following) -> Messages:
    """Read what happened to the jobs of a set; with ``watch`` it does not end."""
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
            del messages  # which would be kept for as long as nothing happens
            await following.news(last)


class _JobSetReader:
    """Reads the events of a job set part by part; its methods run in threads, one at a time."""

    def __init__(self, call: Rpc, request: event.JobSetRequest) -> None:
        """Check that the queue and, where that is asked for, the job set are there."""
        self._asked, self._queue, self._group = call, request.queue, request.id
        self._jobs = JobOperations(call.backend)
        self._log = EventLog(call.backend.store, call.backend.access)
        self._require_queue()
        if request.errorIfMissing and not self._exists():
            message = f"[GetJobSetEvents] Jobset {request.id} for queue {request.queue} does not exist"
            raise Rejected(Code.NOT_FOUND, message)
        self._after, self._skip = _place(request.from_message_id)
        self._where = self._log.filter(call.caller, queue=request.queue, group=request.id)
        self._described: dict[str, Job] = {}
        self._acts: dict[str, list[OperatorActed]] | None = None
        self._translator = Translator(request.queue, request.id, self._recall, self._describe)

    def _require_queue(self) -> None:
        try:
            Queues(self._asked.backend.store).require(self._asked.caller, self._queue)
        except NotFound as error:
            message = f"[GetJobSetEvents] Queue {self._queue} does not exist"
            raise Rejected(Code.NOT_FOUND, message) from error

    def _exists(self) -> bool:
        where = self._jobs.job_filter(self._asked.caller, JobQuery(queue=self._queue, group=self._group))
        return bool(self._jobs.page(self._asked.caller, where, limit=1).jobs)

    def next(self) -> tuple[list[event.EventStreamMessage], bool, int]:
        """Read what the next part is told as, whether there may be more at once, and the newest event there was."""
        part = self._log.part(self._asked.caller, self._where, after=self._after, limit=LARGEST_PART)
        self._after = part.next_after
        self._read_submitted(part.events)
        self._read_unknown(part.events)
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
        where = self._jobs.job_filter(self._asked.caller, JobQuery(ids=ids))
        return {job.id: job for job in self._jobs.page(self._asked.caller, where, limit=len(ids)).jobs}

    def _describe(self, job_id: str, message: event.EventMessage) -> None:
        job = self._described.get(job_id)
        if job is not None:
            fill_job(message.submitted.job, job, self._group)

    def _read_unknown(self, events: Sequence[StoredEvent]) -> None:
        """Recall at once what was told of jobs whose events begin in their midst."""
        remembered_ids, unknown = self._translator.known, dict[str, None]()
        for stored in events:
            if (
                stored.job_id is not None
                and stored.job_id not in remembered_ids
                and stored.job_id not in self._described
            ):
                unknown[stored.job_id] = None
        if unknown:
            for job_id, remembered in self._recalled(list(unknown)).items():
                self._translator.keep(job_id, remembered)

    def _recall(self, job_id: str) -> Remembered:
        return self._recalled([job_id]).get(job_id) or Remembered()

    def _recalled(self, ids: Sequence[str]) -> dict[str, Remembered]:
        jobs = self._by_id(ids)
        latest = self._jobs.latest(self._asked.caller, [*jobs.values()]) if jobs else {}
        if self._acts is None:
            self._acts = self._read_acts()
        return {key: _remembered(job, latest.get(key), self._acts.get(key, ())) for key, job in jobs.items()}

    def _read_acts(self) -> dict[str, list[OperatorActed]]:
        """Read what was asked of each job until now; what is asked later is told as it comes."""
        caller, after, acts = self._asked.caller, 0, dict[str, list[OperatorActed]]()
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


def _remembered(job: Job, latest: Latest | None, acts: Sequence[OperatorActed]) -> Remembered:
    """Return what the events of a job have told by now."""
    remembered = Remembered(namespace=str(armada.written_of(job.spec).get("namespace") or NAMESPACE))
    attempt = None if latest is None else latest.attempt
    for run in () if latest is None else latest.runs[-1:]:
        remembered = evolve(remembered, executor=run.executor, node=run.node, run=run.uid.removeprefix(job.id))
    for record in attempt_ended_events(attempt) if attempt is not None and attempt.ending is not None else ():
        if isinstance(record.event, AttemptEnded):
            remembered = evolve(remembered, ended=record.event)
        elif isinstance(record.event, FailureDecided):
            remembered = evolve(remembered, decided=record.event)
    for acted in acts:
        remembered = remembered.after(acted)
    return remembered


def fill_job(message: submit.Job, job: Job, group: str) -> None:
    """Describe a job as it was sent."""
    message.MergeFrom(_sent_as(job.spec))
    message.id, message.job_set_id, message.queue = job.id, group, job.queue
    message.owner, message.priority = job.submitted_by, float(-job.priority)
    message.created.FromNanoseconds(int(job.submitted_at * 1_000_000_000))


@lru_cache(maxsize=_SPECIFICATIONS)
def _sent_as(stored: str) -> submit.Job:
    """Return what jobs of a specification have in common, not to be changed."""
    written, message = armada.written_of(stored), submit.Job()
    fill(message, {name: written[name] for name in _SENT if name in written})
    pod = armada.pod_of(written)
    if pod is not None:
        fill(message.pod_spec, pod)
    return message


def _is_number(text: str) -> bool:
    """Whether it is a number of 64 bits, which databases take."""
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) < 1 << 63


def _place(message_id: str) -> tuple[int, tuple[int, int]]:
    """Return the number of the event to read after, and the last message that was seen of the next."""
    if not message_id:
        return 0, (0, 0)
    parts = message_id.split(":")
    if len(parts) != _PARTS or not all(map(_is_number, parts[:3])) or parts[3] not in _BOOLEANS:
        refuse(f"{message_id} is not a valid sequence number")
    number, place = int(parts[0]), int(parts[2])
    return max(number - 1, 0), (number, place)
