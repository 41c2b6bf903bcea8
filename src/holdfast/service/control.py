"""Cancels, holds, releases, retries and preempts jobs by asking the controller to.

What a job's state does not allow is refused here, so that a caller hears it at once; the controller alone changes
the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec, load_kube, load_spec
from holdfast.compiled.workloads import stands_in
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import Interruption
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, Internal, Unavailable
from holdfast.ports.requests import Request, RequestKind
from holdfast.service.admission.limits import check
from holdfast.service.quarantined import known_pods
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store

_MOST_PENDING = 1000


class Control(Struct, frozen=True):
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
            if not self._is_stray(job):
                _check_free(job, "cancelled")
            if job.terminal:
                msg = f"job {job.name!r} ({job.id}) has already ended: {job.state}"
                raise Conflict(msg)
            return self._ask(RequestKind.CANCEL, job, reason, by)

    def hold(self, reference: str, reason: str = "", *, by: Caller | None = None) -> Job:
        """Ask for a job to be held until it is released; what runs of it is warned, if it asked for that, and stopped.

        Raises:
            NotFound: There is no such job.
            Conflict: It is about to end, has ended, or belongs to a job set.
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

    def retry(
        self,
        reference: str,
        reason: str = "",
        *,
        change: Callable[[JobSpec], JobSpec] | None = None,
        by: Caller | None = None,
    ) -> Job:
        """Ask for another attempt of a job that has ended or waits, whatever its policies say; it counts as no retry.

        Args:
            reference: The job.
            reason: Why, for people.
            change: Makes what it asks for from now on of what it asks for now.
            by: Who asks.

        Raises:
            NotFound: There is no such job.
            Conflict: It runs, or other things decide when it runs, or no time is left for it.
            InvalidManifest: What it would ask for is not valid.
            Refused: A limit of its queue could never hold that.
        """
        with audited(self.store, by, Act.RETRY, Subject.JOB, reference):
            job = self.store.job(reference)
            self._check_retry(job)
            wanted, payload = load_spec(job.spec), ""
            if change is not None:
                wanted = change(evolve(wanted, resources=job.request))
                error = check(wanted, self.store.catalogue(), self.store.nodes)
                if error is not None:
                    raise error
                payload = dump_spec(wanted)
            total_s = wanted.total_deadline_s
            if total_s is not None and job.submitted_at + total_s <= self.clock.now():
                msg = f"the total deadline of job {job.name!r} ({job.id}) is over"
                raise Conflict(msg, hint="give it more: holdfast retry JOB --set totalDeadline=48h")
            return self._ask(RequestKind.RETRY, job, reason, by, payload)

    def preempt(self, reference: str, reason: str = "", *, by: Caller | None = None) -> Job:
        """Ask for the place of a job that runs; it has failed of a preemption once it has stopped.

        Raises:
            NotFound: There is no such job.
            Conflict: It does not run, or is being cancelled.
        """
        with audited(self.store, by, Act.PREEMPT, Subject.JOB, reference):
            job = self.store.job(reference)
            if job.state is not JobState.RUNNING or job.cancel_requested:
                standing = "being cancelled" if job.cancel_requested and not job.terminal else str(job.state)
                msg = f"job {job.name!r} ({job.id}) is {standing}: only what runs has a place to give up"
                raise Conflict(msg)
            return self._ask(RequestKind.PREEMPT, job, reason, by)

    def reprioritize(self, reference: str, priority: int, *, by: Caller | None = None) -> Job:
        """Ask for another priority of a job; higher ones go first.

        Raises:
            NotFound: There is no such job.
            Conflict: It has ended.
        """
        with audited(self.store, by, Act.REPRIORITIZE, Subject.JOB, reference):
            job = self.store.job(reference)
            if job.terminal:
                msg = f"job {job.name!r} ({job.id}) has already ended: {job.state}"
                raise Conflict(msg)
            return self._ask(RequestKind.REPRIORITIZE, job, f"priority {priority}", by, str(priority))

    def ask_of_all(
        self, kind: RequestKind, ids: Sequence[str], reason: str = "", *, by: Caller | None = None, payload: str = ""
    ) -> None:
        """Ask something of many jobs by one request in one transaction; where it does not apply, nothing happens."""
        if ids:
            self._append(kind, tuple(ids), reason, by, payload)

    def _check_retry(self, job: Job) -> None:
        """Refuse to retry what is not for a user to start."""
        named = f"job {job.name!r} ({job.id})"
        if job.of_set is not None:
            msg, hint = f"{named} belongs to a job set, which decides when it runs", "holdfast restart job NAME"
            raise Conflict(msg, hint=hint)
        if job.child is not None and job.terminal:
            msg, hint = (
                f"{named} is a task of an array that has counted it",
                f"run it again in an array of its own: holdfast rerun {_array_of(job)} --index {job.child.index}",
            )
            raise Conflict(msg, hint=hint)
        if load_kube(job.spec) is not None:
            msg, hint = f"{named} is a Kubernetes Job, which has ended once it has", "delete it and create it again"
            raise Conflict(msg, hint=hint)
        if job.state is JobState.WAITING:
            msg = f"{named} waits for others, and is not retried before they have ended"
            raise Conflict(msg, hint=f"holdfast why {job.id}")
        if job.state is JobState.RUNNING or (job.cancel_requested and not job.terminal):
            msg = f"{named} is {'being cancelled' if job.cancel_requested else 'running'}: it cannot be retried yet"
            raise Conflict(msg, hint=f"holdfast wait {job.id}")

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
        known = known_pods(self.store, job)
        if known is not None:
            return known.suspended
        kube = load_kube(job.spec)
        return kube is not None and kube.spec.suspend

    def _ask(self, kind: RequestKind, job: Job, reason: str, by: Caller | None, payload: str = "") -> Job:
        self._append(kind, (job.id,), reason, by, payload)
        return job

    def _append(
        self, kind: RequestKind, targets: tuple[str, ...], reason: str, by: Caller | None, payload: str
    ) -> None:
        actor = self.actor if by is None else by.actor
        request = Request(kind, targets, self.clock.now(), actor=actor, reason=reason, payload=payload)
        try:
            self.store.append(request, by=by)
        except Unavailable:
            # The very job that fills the disk must be possible to cancel.
            if kind is not RequestKind.CANCEL or not self.make_room():
                raise
            self.store.append(request, by=by)

    def _is_stray(self, job: Job) -> bool:
        """Whether a job is of a job set that is not there, as its row is damaged: nobody else could end it."""
        if job.of_set is None:
            return False
        try:
            found = self.store.workloads_by_id(JobSet, [job.of_set.set_id])
        except Internal:
            return False
        return not stands_in(found.get(job.of_set.set_id), job.of_set)

    def _may_be_released(self, job: Job) -> bool:
        held = job.state is JobState.HELD or self._stops(job) or self._hold_is_pending(job)
        return held or job.id in self.store.quarantined()

    def _stops(self, job: Job) -> bool:
        """Whether a job was held as it ran, and is Held once that has stopped."""
        if job.state is not JobState.RUNNING:
            return False
        pods = known_pods(self.store, job)
        if pods is not None:
            return pods.suspended
        runs = self.store.runs(job.id)
        return any(run.attempt == job.attempt and run.interrupted is Interruption.HOLD for run in runs)

    def _hold_is_pending(self, job: Job) -> bool:
        """Whether the controller has yet to act on a hold, as when no server is running."""
        pending = self.store.requests(limit=_MOST_PENDING)
        return not job.terminal and any(one.kind is RequestKind.HOLD and job.id in one.targets for one in pending)


def _array_of(task: Job) -> str:
    """Name the array that a task is of."""
    return task.name.rpartition("-")[0]


def _check_free(job: Job, verb: str) -> None:
    """Refuse to steer a job that is its set's to start and stop."""
    if job.of_set is not None and not job.terminal:
        msg = f"job {job.name!r} ({job.id}) belongs to a job set, which starts and stops it: it cannot be {verb}"
        raise Conflict(msg, hint="restart the job, or suspend, restart or delete its job set instead")
