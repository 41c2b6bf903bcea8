"""Checks of what people are told: each outcome once, in the commit that makes it true, and delivered in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_set_spec, load_spec
from holdfast.domain.events.jobs import (
    AttemptEnded,
    JobCancelled,
    JobFailed,
    JobHeld,
    JobReprioritized,
    JobSucceeded,
    JobWaiting,
)
from holdfast.domain.events.workloads import JobSetEnded
from holdfast.domain.failure import Cause
from holdfast.domain.notifier import Occasion
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.ports.notifications import NotificationFilter
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.events.registry import Event, EventRecord
    from holdfast.domain.job import Job
    from holdfast.domain.notifications.notification import Notification, OutcomeReport
    from holdfast.ports.store import Changes, Store
    from tools.simulate.invariants.record import Record

_MANY = 1 << 20
Told = tuple[str, str, float, str]
"""A job, what became of it, when if that can happen again, and who is told."""


class NotificationChecks:
    """What was committed and delivered of notifications."""

    def __init__(self, record: Record) -> None:
        """Begin with none."""
        self._record = record
        self._ids: dict[str, Notification] = {}
        self._held: set[str] = set()
        self._delivered: dict[str, OutcomeReport] = {}

    def check(self, changes: Changes) -> None:
        """Check a commit that is part of the record already."""
        expected = {told for record in changes.events.values() for told in self._expected(record, changes)}
        found: dict[Told, str] = {}
        for one in changes.notifications:
            report = one.report
            told = (report.id, report.event, report.at if report.event == "job.held" else 0.0, one.to)
            again = self._ids.setdefault(one.id, one) is not one and told not in found and report.event != "job.stalled"
            if again or found.setdefault(told, one.id) != one.id:
                refuse("told-once", f"{told} is told again: {one}")
        # Of a set that is deleted with its end, the commit has no row that says who wants to be told, and of what.
        gone = {one.event.job_set for one in changes.events.values() if isinstance(one.event, JobSetEnded)}
        gone -= changes.of(JobSet).keys()
        expected |= {told for told in found if told[0] in gone}
        if found.keys() != expected:
            refuse("told-once", f"a commit tells {sorted(found)}, and what happened is {sorted(expected)}")

    def _expected(self, record: EventRecord, changes: Changes) -> Iterator[Told]:
        if isinstance(record.event, JobSetEnded) and (row := changes.of(JobSet).get(record.event.job_set)) is not None:
            yield from self._of_set(record.event, row)
        job = self._record.jobs.get(record.job_id or "")
        if job is None or job.child is not None:
            return
        for event, occasions in self._happened(job, record.event):
            at = record.at if event == "job.held" else 0.0
            for each in load_spec(job.spec).notify:
                if not occasions.isdisjoint(each.on):
                    yield (job.id, event, at, each.to)

    @staticmethod
    def _of_set(event: JobSetEnded, row: JobSet) -> Iterator[Told]:
        failed = event.outcome == Terminal.FAILED.value
        restarted = row.state.restarts or row.state.group_restarts or any(row.state.job_restarts.values())
        word = "failed" if failed else "recovered" if restarted else "completed"
        occasions = {Occasion.END, *([Occasion.FAILURE] * failed), *([Occasion.RECOVERY] * (word == "recovered"))}
        for each in load_set_spec(row.spec).notify:
            if not occasions.isdisjoint(each.on):
                yield (row.id, f"jobset.{word}", 0.0, each.to)

    def _happened(self, job: Job, event: Event) -> Iterator[tuple[str, set[Occasion]]]:
        was_held = job.id in self._held
        if not isinstance(event, JobWaiting | JobReprioritized | AttemptEnded):
            self._held.discard(job.id)
        match event:
            case JobSucceeded():
                again = event.attempt > 1
                yield "job.recovered" if again else "job.succeeded", {Occasion.END, *([Occasion.RECOVERY] * again)}
            case JobFailed():
                yield "job.failed", {Occasion.END, Occasion.FAILURE}
            case JobCancelled():
                yield "job.cancelled", {Occasion.END}
            case JobHeld():
                self._held.add(job.id)
                if not was_held:
                    yield "job.held", {Occasion.HOLD}
            case AttemptEnded(cause=Cause.STALLED.value):
                yield "job.stalled", {Occasion.STALL}
            case _:
                pass

    def delivered(self, one: Notification) -> None:
        """Take in what somebody was told."""
        known = self._ids.get(one.id)
        if known is None:
            refuse("told-at-last", f"{one} was told, and nobody committed it")
        first = self._delivered.setdefault(one.id, one.report)
        if first != one.report or (one.report.event, one.to) != (known.report.event, known.to):
            refuse("told-at-last", f"{one.id} was told as {first}, and now as {one.report}")

    def check_end(self, store: Store) -> None:
        """Check that in the end everybody was told everything, and that this is stored."""
        if left := self.waiting():
            refuse("told-at-last", f"nobody was told of {[self._ids[key] for key in left]}")
        stored = {one.id: one.state for one in store.notifications(NotificationFilter(), limit=_MANY)}
        if stored.keys() != self._ids.keys():
            refuse("told-once", f"{sorted(stored)} are stored, and {sorted(self._ids)} were committed")

    def waiting(self) -> list[str]:
        """Name what nobody was told yet."""
        return [key for key in self._ids if key not in self._delivered]
