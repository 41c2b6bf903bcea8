"""``watch``: what becomes of the jobs of a set, one line for each event."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.cli.armada.failure import Failed, Told
from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc

    from holdfast.cli.armada.invocation import Invocation

_COUNTED = ("Queued", "Leased", "Pending", "Running", "Succeeded", "Failed", "Cancelled")
_ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})
_STATES = {
    "submitted": "Submitted",
    "queued": "Queued",
    "leased": "Leased",
    "lease_returned": "Queued",
    "lease_expired": "Queued",
    "pending": "Pending",
    "running": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "preempted": "Failed",
    "cancelled": "Cancelled",
}
"""By the kind of an event; a preempted job that a policy retries is never told as preempted."""
_OF_PODS = frozenset({"lease_returned", "pending", "running", "ingress_info", "failed", "succeeded", "utilisation"})
"""Events that name a pod by its number."""
_AGAIN_S = 5.0


class StateCounts:
    """How many jobs of a set are in which state."""

    def __init__(self) -> None:
        """Begin with none."""
        self._states: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def take(self, kind: str, event: Told) -> None:
        """Count an event."""
        state = _STATES.get(kind)
        if kind == "failed" and event.retryable:
            state = "Queued"
        if state is not None:
            self._counts.subtract([self._states.get(event.job_id, "")])
            self._counts[state] += 1
            self._states[event.job_id] = state

    def line(self) -> str:
        """Return the counts, as ``armadactl`` writes them."""
        return ", ".join(f"{state}: {self._counts[state]:3d}" for state in _COUNTED)

    @property
    def all_ended(self) -> bool:
        """Whether no job is active."""
        return sum(self._counts[state] for state in _ENDED) == len(self._states)


def _watch(asked: Invocation) -> int:
    queue, job_set = asked.words
    if asked.flags["force-new-events"] and asked.flags["force-legacy-events"]:
        told = "force-new-events and force-legacy-events are exclusive"
        raise Failed(told)
    asked.out(f"Watching job set {job_set}")
    asked.cli.stdout.flush()
    tally = StateCounts()
    for message in _messages(asked, queue, job_set):
        if _is_over(asked, tally, message):
            break
    return 0


def _messages(asked: Invocation, queue: str, job_set: str) -> Iterator[Told]:
    """Follow a job set, over a server that goes away and comes back."""
    import grpc

    from holdfast.api.armada._generated.event import JobSetRequest

    after = ""
    while True:
        sent = JobSetRequest(queue=queue, id=job_set, from_message_id=after, watch=True, errorIfMissing=True)
        try:
            for message in asked.connection.stream("api.Event", "GetJobSetEvents", sent):
                after = message.id
                yield message.message
        except grpc.RpcError as error:
            if _is_final(asked, error, is_known=bool(after)):
                return
            asked.close()  # a server that starts again may be elsewhere
        asked.cli.sleep(_AGAIN_S)


def _is_final(asked: Invocation, error: grpc.RpcError, *, is_known: bool) -> bool:
    """Say why a watch broke off; returns whether there is nothing to watch.

    Raises:
        Failed: Whoever watches may not come in.
    """
    failed, code = asked.connection.failed(error), error.code().name
    if code in {"NOT_FOUND", "PERMISSION_DENIED"}:
        asked.note(f"error: {error.details()}")
        return True
    if code in {"UNAUTHENTICATED", "INVALID_ARGUMENT"}:
        raise failed
    for line in (f"error: {failed.message}", *failed.more) if code != "UNAVAILABLE" or not is_known else ():
        asked.note(line)
    return False


def _is_over(asked: Invocation, tally: StateCounts, message: Told) -> bool:
    """Write what an event says; returns whether that was the last one that is of interest."""
    kind = message.WhichOneof("events")
    if kind is None:
        return False
    event = getattr(message, kind)
    tally.take(kind, event)
    name = type(event).__name__
    if asked.flags["raw"]:
        from google.protobuf.json_format import MessageToDict

        asked.out(f"*api.{name} {json.dumps(MessageToDict(event))}")
    elif kind != "utilisation":
        asked.out(_summary(tally, kind, name, event))
        if kind == "failed":
            asked.out(f"Job failed: {event.reason}")
            asked.out(f"To see its logs: holdfast logs {event.job_id}")
    asked.cli.stdout.flush()
    return bool(asked.flags["exit-if-inactive"]) and tally.all_ended


def _summary(tally: StateCounts, kind: str, name: str, event: Told) -> str:
    at = event.created.ToDatetime()
    told = f"{at:%b} {at.day:2d} {at:%H:%M:%S} | {tally.line()} | {name}, job id: {event.job_id}"
    requestor = getattr(event, "requestor", "")
    if requestor:
        told += f", user: {requestor}"
    return f"{told} pod: {event.pod_number}" if kind in _OF_PODS else told


WATCH = ArmadaCommand(
    "watch",
    "Show what becomes of the jobs of a job set",
    _watch,
    "<queue> <job-set>",
    2,
    (
        Flag("raw", FlagKind.FLAG, "Write events as JSON."),
        Flag("exit-if-inactive", FlagKind.FLAG, "End when no job is active."),
        Flag("force-new-events", FlagKind.FLAG, "Is accepted, and has no effect."),
        Flag("force-legacy-events", FlagKind.FLAG, "Is accepted, and has no effect."),
    ),
)
