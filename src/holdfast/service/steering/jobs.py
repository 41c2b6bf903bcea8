"""The rules for cancelling, holding, releasing, retrying, preempting and reprioritizing jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import dump_spec, load_kube, load_spec
from holdfast.compiled.workloads import stands_in
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import Job, JobState
from holdfast.domain.lifecycle import Interruption
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.conclude import counted_from
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, Internal
from holdfast.ports.requests import RequestKind
from holdfast.service.admission.limits import check
from holdfast.service.quarantined import kind_of_owner, known_pods, owner_of
from holdfast.service.refusals import audited
from holdfast.service.steering.control import Control, Steering

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.audit import Caller
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.store import Store

_MOST_PENDING = 1000


class JobSteering(Steering[Job]):
    """Jobs are cancelled, held, released, retried, preempted and reprioritized."""

    kind = Job

    def find(self, store: Store, reference: str, act: Act) -> Job:
        """Find a job as it is stored."""
        del act
        return store.job(reference)

    def allow(self, control: Control[Job], act: Act, row: Job, what: Mapping[str, Any]) -> str | None:
        """Check that a job may be acted on in this way; returns the payload of the request."""
        return _ALLOWED[act](control, row, **what)

    def request_kind(self, act: Act, what: Mapping[str, Any]) -> RequestKind:
        """Return the request's kind. Only the controller can tell whether a job has started."""
        if act is Act.CANCEL and what.get("unless_started"):
            return RequestKind.CANCEL_UNLESS_STARTED
        return super().request_kind(act, what)


JOBS = JobSteering()


def _cancel(control: Control[Job], job: Job, *, unless_started: bool = False) -> str | None:
    if unless_started and job.started_at is not None:
        msg = f"job {job.name!r} ({job.id}) has started, so it was not cancelled"
        raise Conflict(msg, hint=f"cancel it anyway: holdfast cancel {job.id}")
    if job.state is JobState.CANCELLED or job.cancel_requested:
        return None
    if not _is_stray(control.store, job):
        _check_free(control.store, job, "cancelled")
    _check_not_ended(job)
    return ""


def _hold(control: Control[Job], job: Job) -> str | None:
    if job.state is JobState.HELD:
        return None
    _check_free(control.store, job, "held")
    if job.terminal:
        msg = f"job {job.name!r} ({job.id}) is {job.state} already: it cannot be held"
        raise Conflict(msg)
    if job.cancel_requested:
        msg = f"job {job.name!r} ({job.id}) is being cancelled: it cannot be held"
        raise Conflict(msg)
    return ""


def _release(control: Control[Job], job: Job) -> str | None:
    if job.state is not JobState.HELD:  # a policy holds jobs of sets, too
        _check_free(control.store, job, "released")
    if not _may_be_released(control.store, job):
        msg = f"job {job.name!r} ({job.id}) is {job.state}: only a held job can be released"
        raise Conflict(msg)
    return ""


def _retry(control: Control[Job], job: Job, *, change: Callable[[JobSpec], JobSpec] | None = None) -> str | None:
    """Check that a job may be retried; ``change`` turns its specification into a new one."""
    _check_retry(control.store, job)
    new_spec, payload = load_spec(job.spec), ""
    if change is not None:
        new_spec = change(evolve(new_spec, resources=job.request))
        error = check(new_spec, control.store.catalogue(), control.store.nodes)
        if error is not None:
            raise error
        payload = dump_spec(new_spec)
    total_s, waits = new_spec.total_deadline_s, new_spec.after and job.ready_at is None
    if total_s is not None and not waits and counted_from(job) + total_s <= control.clock.now():
        msg = f"the total deadline of job {job.name!r} ({job.id}) is over"
        raise Conflict(msg, hint="extend it: holdfast retry JOB --set totalDeadline=48h")
    return payload


def _preempt(_: Control[Job], job: Job) -> str | None:
    if job.state is not JobState.RUNNING or job.cancel_requested:
        standing = "being cancelled" if job.cancel_requested and not job.terminal else str(job.state)
        msg = f"job {job.name!r} ({job.id}) is {standing}: only a running job can be preempted"
        raise Conflict(msg)
    return ""


def _reprioritize(_: Control[Job], job: Job, *, priority: int) -> str | None:
    _check_not_ended(job)
    return str(priority)


_ALLOWED: Mapping[Act, Callable[..., str | None]] = {
    Act.CANCEL: _cancel,
    Act.HOLD: _hold,
    Act.RELEASE: _release,
    Act.RETRY: _retry,
    Act.PREEMPT: _preempt,
    Act.REPRIORITIZE: _reprioritize,
}


def suspend_as(control: Control[Job], job: Job, *, suspend: bool, caller: Caller | None = None) -> bool:
    """Suspend or resume a Kubernetes Job, as its manifest says; returns whether that changes anything."""
    if job.terminal or job.cancel_requested or _suspended(control.store, job) is suspend:
        return False
    with audited(control.store, caller, Act.HOLD if suspend else Act.RELEASE, Subject.JOB, job.id):
        control.send(RequestKind.HOLD if suspend else RequestKind.RELEASE, (job.id,), "applied", caller=caller)
    return True


def _check_retry(store: Store, job: Job) -> None:
    """Refuse to retry a job that a user cannot start."""
    named = f"job {job.name!r} ({job.id})"
    if job.of_set is not None:
        kind = kind_of_owner(store, job.of_set)
        hint = "holdfast restart job NAME" if "restart" in kind.acts else _instead(kind)
        msg = f"{named} belongs to a {kind.noun}, which decides when it runs"
        raise Conflict(msg, hint=hint)
    if job.child is not None and job.terminal:
        msg, hint = (
            f"{named} is a task whose end its array has already counted",
            f"rerun it as a new array: holdfast rerun {_array_of(job)} --index {job.child.index}",
        )
        raise Conflict(msg, hint=hint)
    if load_spec(job.spec).session is not None:
        msg, hint = f"{named} is a session, which is retried by its retry policy alone", "create another session"
        raise Conflict(msg, hint=hint)
    if load_kube(job.spec) is not None:
        msg, hint = f"{named} is a Kubernetes Job, which runs only once", "delete it and create it again"
        raise Conflict(msg, hint=hint)
    if job.state is JobState.WAITING:
        msg = f"{named} waits for other work, and cannot be retried before that has ended"
        raise Conflict(msg, hint=f"holdfast why {job.id}")
    if job.state is JobState.RUNNING or (job.cancel_requested and not job.terminal):
        msg = f"{named} is {'being cancelled' if job.cancel_requested else 'running'}: it cannot be retried yet"
        raise Conflict(msg, hint=f"holdfast wait {job.id}")


def _suspended(store: Store, job: Job) -> bool:
    """Whether a Kubernetes Job is suspended, or will be once the controller has carried out all requests."""
    kinds = [request.kind for request in store.requests(limit=_MOST_PENDING) if job.id in request.targets]
    last = next((kind for kind in reversed(kinds) if kind in {RequestKind.HOLD, RequestKind.RELEASE}), None)
    if last is not None:
        return last is RequestKind.HOLD
    record = known_pods(store, job)
    if record is not None:
        return record.suspended
    kube = load_kube(job.spec)
    return kube is not None and kube.spec.suspend


def _instead(kind: KindInfo) -> str:
    return f"{', '.join(kind.acts)} or delete its {kind.noun} instead"


def _is_stray(store: Store, job: Job) -> bool:
    """Whether a job's owner does not exist, because a row is damaged: then only the user can end the job."""
    if job.of_set is None:
        return False
    try:
        works = store.workloads_by_id(JobSet, [job.of_set.set_id])
    except Internal:
        return False
    of_set = works.get(job.of_set.set_id) or owner_of(store, job.of_set)
    return not stands_in(of_set, job.of_set)


def _may_be_released(store: Store, job: Job) -> bool:
    held = job.state is JobState.HELD or _stops(store, job) or _hold_is_pending(store, job)
    return held or job.id in store.quarantined()


def _stops(store: Store, job: Job) -> bool:
    """Whether a running job was held, and becomes Held once it has stopped."""
    if job.state is not JobState.RUNNING:
        return False
    pods = known_pods(store, job)
    if pods is not None:
        return pods.suspended
    runs = store.runs(job.id)
    return any(run.attempt == job.attempt and run.interrupted is Interruption.HOLD for run in runs)


def _hold_is_pending(store: Store, job: Job) -> bool:
    """Whether a hold is still to be carried out, for instance because no server is running."""
    pending = store.requests(limit=_MOST_PENDING)
    return not job.terminal and any(
        request.kind is RequestKind.HOLD and job.id in request.targets for request in pending
    )


def _array_of(task: Job) -> str:
    """Return the name of a task's array."""
    return task.name.rpartition("-")[0]


def _check_free(store: Store, job: Job, verb: str) -> None:
    """Refuse to steer a job that its owner starts and stops."""
    if job.of_set is not None and not job.terminal:
        kind = kind_of_owner(store, job.of_set)
        msg = f"job {job.name!r} ({job.id}) belongs to a {kind.noun}, which starts and stops it: it cannot be {verb}"
        restart = "restart the job, or " if "restart" in kind.acts else ""
        raise Conflict(msg, hint=f"{restart}{_instead(kind)}")


def _check_not_ended(job: Job) -> None:
    if job.terminal:
        msg = f"job {job.name!r} ({job.id}) has already ended: {job.state}"
        raise Conflict(msg)
