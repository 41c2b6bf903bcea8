"""Cancels, holds and releases jobs by asking the controller to.

What a job's state does not allow is refused here, so that a caller hears it at once; the controller alone changes
the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_kube
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JobState
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.errors import Conflict, Unavailable
from holdfast.ports.store import Request, RequestKind
from holdfast.service.audit import audited

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store

_MOST_PENDING = 1000


@dataclass(frozen=True, slots=True)
class Control:
    """Asks the controller to do something with a job."""

    store: Store
    clock: Clock
    actor: str = ""
    """Who asks, where a call does not say."""
    make_room: Callable[[], bool] = lambda: False
    """Gives up what is kept of a full disk; returns whether there is more room now."""

    def cancel(self, reference: str, reason: str = "", *, by: Caller | None = None) -> Job:
        """Ask for a job to be cancelled; one that is cancelled already, or about to be, is left alone.

        Raises:
            NotFound: There is no such job.
            Conflict: It has ended otherwise, or belongs to a job set.
        """
        with audited(self.store, by, Act.CANCEL, Subject.JOB, reference):
            job = self.store.job(reference)
            if job.state is JobState.CANCELLED or job.cancel_requested:
                return job
            _check_free(job, "cancelled")
            if job.terminal:
                msg = f"job {job.name!r} ({job.id}) has already ended: {job.state}"
                raise Conflict(msg)
            return self._ask(RequestKind.CANCEL, job, reason, by)

    def hold(self, reference: str, reason: str = "", *, by: Caller | None = None) -> Job:
        """Ask for a job to be held until it is released: one that waits, or one made of pods, which are stopped.

        Raises:
            NotFound: There is no such job.
            Conflict: It is running and not made of pods, is about to end, has ended, or belongs to a job set.
        """
        with audited(self.store, by, Act.HOLD, Subject.JOB, reference):
            job = self.store.job(reference)
            if job.state is JobState.HELD:
                return job
            _check_free(job, "held")
            if job.terminal:
                msg = f"job {job.name!r} ({job.id}) is {job.state} already: it cannot be held"
                raise Conflict(msg)
            if job.cancel_requested:
                msg = f"job {job.name!r} ({job.id}) is being cancelled: it cannot be held"
                raise Conflict(msg)
            if job.state is JobState.RUNNING and self._pods(job) is None:
                msg = f"job {job.name!r} ({job.id}) is running: only a job that waits can be held"
                hint = "cancel it, or give it a retry rule with action Hold that holds it at its next failure"
                raise Conflict(msg, hint=hint)
            return self._ask(RequestKind.HOLD, job, reason, by)

    def release(self, reference: str, reason: str = "", *, by: Caller | None = None) -> Job:
        """Ask to release a job that is held or quarantined.

        Raises:
            NotFound: There is no such job.
            Conflict: It is neither, or belongs to a job set.
        """
        with audited(self.store, by, Act.RELEASE, Subject.JOB, reference):
            job = self.store.job(reference)
            if job.state is not JobState.HELD:  # a policy holds jobs of sets, too
                _check_free(job, "released")
            if not self._may_be_released(job):
                msg = f"job {job.name!r} ({job.id}) is {job.state}: only a held job can be released"
                raise Conflict(msg)
            return self._ask(RequestKind.RELEASE, job, reason, by)

    def suspend_as(self, job: Job, *, suspend: bool, by: Caller | None = None) -> bool:
        """Have a Kubernetes Job suspended or not, as its manifest says; returns whether that changes anything."""
        if job.terminal or job.cancel_requested or self._suspended(job) is suspend:
            return False
        with audited(self.store, by, Act.HOLD if suspend else Act.RELEASE, Subject.JOB, job.id):
            self._ask(RequestKind.HOLD if suspend else RequestKind.RELEASE, job, "applied", by)
        return True

    def _suspended(self, job: Job) -> bool:
        """Whether a Kubernetes Job is suspended, or will be once the controller has acted on all that was asked."""
        asked = [one.kind for one in self.store.requests(limit=_MOST_PENDING) if job.id in one.targets]
        last = next((kind for kind in reversed(asked) if kind in {RequestKind.HOLD, RequestKind.RELEASE}), None)
        if last is not None:
            return last is RequestKind.HOLD
        known = self._pods(job)
        if known is not None:
            return known.suspended
        kube = load_kube(job.spec)
        return kube is not None and kube.spec.suspend

    def _ask(self, kind: RequestKind, job: Job, reason: str, by: Caller | None) -> Job:
        actor = self.actor if by is None else by.actor
        request = Request(kind, (job.id,), self.clock.now(), actor=actor, reason=reason)
        try:
            self.store.append(request, by=by)
        except Unavailable:
            # The very job that fills the disk must be possible to cancel.
            if kind is not RequestKind.CANCEL or not self.make_room():
                raise
            self.store.append(request, by=by)
        return job

    def _pods(self, job: Job) -> KubeJobRecord | None:
        """Return what is remembered of a job's pods, which can be stopped and replaced."""
        return self.store.workloads_by_id(KubeJobRecord, [job.id]).get(job.id)

    def _may_be_released(self, job: Job) -> bool:
        held = job.state is JobState.HELD or self._stops(job) or self._hold_is_pending(job)
        return held or job.id in self.store.quarantined()

    def _stops(self, job: Job) -> bool:
        """Whether a job was held as it ran, and is Held once its pods have stopped."""
        pods = self._pods(job) if job.state is JobState.RUNNING else None
        return pods is not None and pods.suspended

    def _hold_is_pending(self, job: Job) -> bool:
        """Whether the controller has yet to act on a hold, as when no server is running."""
        pending = self.store.requests(limit=_MOST_PENDING)
        return not job.terminal and any(one.kind is RequestKind.HOLD and job.id in one.targets for one in pending)


def _check_free(job: Job, verb: str) -> None:
    """Refuse to steer a job that is its set's to start and stop."""
    if job.child is not None and not job.terminal:
        msg = f"job {job.name!r} ({job.id}) belongs to a job set, which starts and stops it: it cannot be {verb}"
        raise Conflict(msg, hint="restart the job, or suspend, restart or delete its job set instead")
