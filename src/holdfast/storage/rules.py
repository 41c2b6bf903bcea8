"""What every store decides alike: whom it refuses and in which words, and what it writes beside a request."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.compiled.workloads import arrays_needed_by, needs_of
from holdfast.domain.access.people import Role
from holdfast.domain.audit import Act, on_device, on_job, on_submission, on_workload
from holdfast.domain.event_mapping import submitted
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import JobSetCreated, NotificationDead, NotificationDelivered
from holdfast.domain.notifications.notification import DeliveryState
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.kinds import info_of
from holdfast.domain.terms.workload_kinds import GANG, JOBSET
from holdfast.domain.workloads.dependencies import OnUnmet, look, met_again, met_before
from holdfast.domain.workloads.jobset.model import clash
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Internal,
    NotFound,
    NotLeader,
    Problem,
    Refused,
    VersionConflict,
)
from holdfast.ports.requests import OF_DEVICES, Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.domain.job import Job
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.dependencies import AwaitedState, Dependency
    from holdfast.ports.endpoints import EndpointLimits, ProgramEndpoint
    from holdfast.ports.retention import LedDirectory
    from holdfast.ports.store import Submission

MOST_NEAR = 300
"""Names that a misspelt one is compared with."""
_SHOWN = 3
SHORTEST_PREFIX = 6
"""Of a job's id, to be taken as one."""
REVISION = "revision of a retry policy"
_CLOCKS_DIFFER_S = 3600.0
"""Between machines, at most; more is noticed by those who use them."""
_ACTS = {
    RequestKind.UPDATE: Act.UPDATE,
    RequestKind.CANCEL: Act.CANCEL,
    RequestKind.CANCEL_UNLESS_STARTED: Act.CANCEL,
    RequestKind.HOLD: Act.HOLD,
    RequestKind.RELEASE: Act.RELEASE,
    RequestKind.RESTART: Act.RESTART,
    RequestKind.DELETE: Act.DELETE,
    RequestKind.RETRY: Act.RETRY,
    RequestKind.PREEMPT: Act.PREEMPT,
    RequestKind.REPRIORITIZE: Act.REPRIORITIZE,
    RequestKind.CORDON: Act.CORDON,
    RequestKind.UNCORDON: Act.UNCORDON,
}
_ACTS_WHERE_SUSPENDED = {**_ACTS, RequestKind.HOLD: Act.SUSPEND, RequestKind.RELEASE: Act.RESUME}


def no_such_job(reference: str, names: Sequence[str] = ()) -> NotFound:
    """Say that no job matches a reference, and which of some names may have been meant."""
    hint = closest(reference, names) or "list jobs with: holdfast get jobs"
    return NotFound(f"no job has the id or name {reference!r}", hint=hint)


def ambiguous_job(prefix: str, ids: Sequence[str]) -> NotFound:
    """Say that more than one job matches a prefix."""
    return NotFound(f"more than one job id begins with {prefix!r}: {', '.join(ids)}", hint="give more of the id")


def known_jobs(ids: Iterable[str]) -> AlreadyExists:
    """Say which of the submitted jobs are there already."""
    problems = [Problem("id", f"job {job_id!r} exists already") for job_id in sorted(ids)]
    return AlreadyExists("a job of that id exists already", problems=problems)


def newer_job(name: str) -> AlreadyExists:
    """Say that somebody else submitted a job of that name meanwhile."""
    message = f"another job {name!r} was submitted at the same time"
    return AlreadyExists(message, problems=[Problem("metadata.name", message)], hint="look at that one, then try again")


def no_such_workload(kind: type[Workload], reference: str) -> NotFound:
    """Say that no workload of a kind matches a reference."""
    hint = f"list {kind.noun}s with: holdfast get {kind.kind}s"
    return NotFound(f"no {kind.noun} has the id or name {reference!r}", hint=hint)


def known_workload(workload: Workload) -> AlreadyExists:
    """Say that the name of a workload is taken."""
    message = f"{workload.noun} {workload.name!r} exists already"
    return AlreadyExists(message, problems=[Problem("metadata.name", message)], hint="delete it first, or rename this")


def taken_job(job: str, new: str, holder: str) -> Conflict:
    """Say that another set has a job of that name."""
    return Conflict(
        clash(job, new, holder), hint=f"rename one of its replicated jobs, or delete job set {holder} first"
    )


def gone_job(key: str) -> NotFound:
    """Say that a job that was read is there no more."""
    return NotFound(f"job {key!r} was deleted meanwhile")


def not_running(endpoint: ProgramEndpoint, state: str, attempt: int) -> Conflict:
    """Say that the attempt does not run which an endpoint is of."""
    if attempt != endpoint.attempt:
        return Conflict("another attempt of the job is the current one by now")
    return Conflict(f"the job is {state}: endpoints are those of a program that runs")


def too_many_endpoints(bounds: EndpointLimits) -> Refused:
    """Say that there is no room for one more endpoint."""
    message = f"there are too many endpoints: {bounds.of_a_run} of a run, {bounds.in_all:,} in all"
    return Refused(message, hint="unregister some")


def retried_already(key: str) -> Conflict:
    """Say that somebody else asked for a job to be retried, too."""
    return Conflict(f"job {key!r} is about to be retried already", hint=f"holdfast wait {key}")


def refuse_unmet(job: Job, after: Sequence[Dependency], standings: Sequence[AwaitedState]) -> None:
    """Check that what a job that is to be retried waits for has happened, or still can.

    Raises:
        Conflict: It would be cancelled again.
    """
    unmet = look(after, met_again(after, met_before(job, after), standings), standings)
    if unmet.unmet is OnUnmet.CANCEL:
        message = f"job {job.name!r} ({job.id}) cannot run: {unmet.reason}"
        hint = f"retry that first, or run this without waiting: holdfast retry {job.id} --set dependsOn="
        raise Conflict(message, hint=hint)


def gone_workload(key: str) -> NotFound:
    """Say that a workload that was read is there no more."""
    return NotFound(f"{key!r} was deleted meanwhile")


def reran_meanwhile() -> VersionConflict:
    """Say that another array runs tasks again that this one was to."""
    return VersionConflict("tasks were rerun at the same time", hint="look which, and rerun the others")


def gone_awaited(key: str) -> Conflict:
    """Say that something that is waited for is there no more, and that nobody knows how it ended."""
    return Conflict(f"{key!r}, which this waits for, was deleted meanwhile", hint="submit it again without waiting")


def pruned_meanwhile() -> VersionConflict:
    """Say that tasks that were to run again were deleted meanwhile."""
    return VersionConflict("tasks were deleted at the same time", hint="look which are left, and rerun those")


def tasks_among(ids: Iterable[str], needing: Iterable[Workload]) -> set[str]:
    """Return which of some jobs are tasks that arrays in progress take over, or wait for one by one."""
    arrays = {f"{key}-" for job in needing for key in arrays_needed_by(job)}
    return {key for key in ids if key.startswith(tuple(arrays))}


def may_have_files(places: Iterable[LedDirectory], since: float, until: float) -> list[str]:
    """Return which data directories may have files of a job of some time; where none may, any may."""
    return [
        place.id
        for place in places
        if place.came_at - _CLOCKS_DIFFER_S <= until
        and (place.left_at is None or since <= place.left_at + _CLOCKS_DIFFER_S)
    ] or [""]


def require_version(workload: Workload, version: int) -> None:
    """Check that a workload still has the version its reader knows.

    Raises:
        VersionConflict: It was changed since.
    """
    if workload.version != version:
        raise VersionConflict.of(workload.noun, workload.name, current=workload.resource_version)


def unknown_job() -> Internal:
    """Say that a commit changes a job that was never submitted, or is gone."""
    return Internal("a change is about a job that does not exist")


def unknown_workload() -> Internal:
    """Say that a commit changes a workload that was never submitted, or is gone."""
    return Internal("a change is about a workload that does not exist")


def kept_key(key: str, caller: Caller | None) -> str:
    """Return what an idempotency key is kept as: of users each has its own ones, and admins see whatever there is."""
    if caller is None or Role.ADMIN in caller.principal.roles:
        return key
    return f"{caller.actor}\n{key}"  # no key has a line break


def reused_key(key: str) -> Conflict:
    """Say that an idempotency key was used for another request."""
    return Conflict(f"idempotency key {key!r} was used for another request", hint="use a new key for a new request")


def no_such_notification(key: str) -> NotFound:
    """Say that no notification has an id."""
    return NotFound(f"no notification has the id {key!r}", hint="list them with: holdfast notify list")


def settled_events(changed: Iterable[Notification]) -> Iterator[EventRecord]:
    """Yield the events of notifications that were delivered or given up."""
    for notification in changed:
        at, about = notification.settled_at or 0.0, notification.report.id
        if notification.state is DeliveryState.DELIVERED:
            yield EventRecord(
                None, at, NotificationDelivered(notification.id, notification.to, about, notification.tries)
            )
        elif notification.state is DeliveryState.DEAD:
            yield EventRecord(
                None,
                at,
                NotificationDead(notification.id, notification.to, about, notification.tries, notification.error),
            )


def require_free_lease(owner: str, *, heir_of: str | None, holder: str, left_s: float) -> None:
    """Check that a writer may take the lease: it is its own, its dead predecessor's, or has expired.

    Raises:
        NotLeader: Another writer holds it.
    """
    inherited = heir_of is not None and holder.startswith(heir_of)
    if holder != owner and not inherited and left_s > 0:
        message = f"the database is led by {holder}"
        hint = f"stop that process; if it was killed, its lease ends by itself in {math.ceil(left_s)} s"
        raise NotLeader(message, hint=hint)


def require_own_work(account: Principal, others: Collection[str]) -> None:
    """Check that nobody else's work would run as an account, where each ran as who submitted it until now.

    Args:
        account: The one that would run all.
        others: Whose work there is, beside that one's.

    Raises:
        Refused: There is some; ended jobs count, as they can be retried.
    """
    if others:
        message = (
            f"work in this database belongs to accounts of its own ({', '.join(sorted(others)[:_SHOWN])}), and would"
            f" run as {account.name}"
        )
        hint = "start Holdfast as root with --run-as submitter, or HOLDFAST_RUN_AS=submitter, as it was before"
        raise Refused(message, hint=hint)


def overtaken(epoch: int, *, newest: int) -> Conflict:
    """Say that another writer took over."""
    message = f"another controller leads this database: its epoch is {newest}, this one's is {epoch}"
    return Conflict(message, hint="nothing was changed")


def request_of(submission: Submission) -> Request:
    """Return the controller request of a submission."""
    owner = submission.owner
    if owner is not None:
        return Request(RequestKind.SUBMIT, (owner.id,), owner.created_at)
    now = max((*(job.submitted_at for job in submission.jobs), *(workload.created_at for workload in submission.also)))
    return Request(RequestKind.SUBMIT, ids_of(submission), now)


def ends_of(submission: Submission) -> Iterator[tuple[Request, Caller | None]]:
    """Yield the requests to end what gives up its name to a job of a submission, each with who asks."""
    for job_id, name in submission.names.items():
        yield from ((request, submission.callers.get(job_id, submission.caller)) for request in name.ends)


def ids_of(submission: Submission) -> tuple[str, ...]:
    """Return the ids of all that a submission appends, but for a workload that its jobs belong to."""
    return (*(job.id for job in submission.jobs), *(workload.id for workload in submission.also))


def without(submission: Submission, existing: Collection[str]) -> Submission:
    """Return a submission without the jobs of these ids."""
    if not existing:
        return submission
    labels = {job_id: pairs for job_id, pairs in submission.labels.items() if job_id not in existing}
    names = {job_id: name for job_id, name in submission.names.items() if job_id not in existing}
    jobs = [job for job in submission.jobs if job.id not in existing]
    return evolve(submission, jobs=jobs, labels=labels, names=names)


def first_jobs(submission: Submission) -> list[str]:
    """Return the names of the first jobs of a set's replicated jobs: sets that share a job share one of these."""
    if submission.owner is None or submission.owner.kind != JOBSET:
        return []
    return [job.name for job in submission.jobs if job.child is not None and job.child.index == 0]


def queues_of(submission: Submission) -> set[str]:
    """Return the queues of all that is submitted."""
    owners = [*submission.also, *([] if submission.owner is None else [submission.owner])]
    return {*map(attrgetter("queue"), [*submission.jobs, *map(needs_of, owners)])} - {""}


def submission_events(submission: Submission) -> Iterator[EventRecord]:
    """Yield the events of a submission: its job set's, if it has one, and each job's."""
    owner = submission.owner
    if owner is not None and owner.kind == JOBSET:
        created = JobSetCreated(owner.id, owner.name, len(submission.jobs), owner.submitted_by)
        yield EventRecord(None, owner.created_at, created, owner.group, owner)
    yield from map(submitted, submission.jobs)


def audited_submission(submission: Submission) -> list[AuditedChange]:
    """Return the entries of a submission whose callers are known.

    It is one, with what came first and how much there is of each kind, or one for each job that came by itself.
    """
    owner = submission.owner
    if submission.callers:
        callers = ((job.id, submission.callers.get(job.id, submission.caller)) for job in submission.jobs)
        changes = (on_submission(caller, GANG, job_id, _counted(1, "job")) for job_id, caller in callers)
        return [change for change in changes if change is not None]
    counts = [_counted(len(submission.jobs), "job"), _counted(len(submission.also), "array")]
    key = ids_of(submission)[0] if owner is None else owner.id
    kind = owner.kind if owner is not None else GANG if submission.jobs else submission.also[0].kind
    change = on_submission(submission.caller, kind, key, ", ".join(filter(None, counts)))
    return [] if change is None else [change]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else ""


def audited_changes(request: Request, caller: Caller | None, named: Mapping[str, str]) -> list[AuditedChange]:
    """Return an audited change for each workload, if the caller is known; of submissions see ``audited_submission``.

    Args:
        request: What is asked for.
        caller: Who asks.
        named: The kinds of those that have names of their own, by id; the others are jobs.
    """
    kind, audited = request.kind, []
    for key in request.targets if caller is not None and kind in _ACTS else ():
        if kind in OF_DEVICES:
            audited.append(on_device(caller, _ACTS[kind], key.rpartition(" ")[2], request.reason))
        elif key in named:
            act = (_ACTS_WHERE_SUSPENDED if Act.SUSPEND in info_of(named[key]).acts else _ACTS)[kind]
            audited.append(on_workload(caller, act, named[key], key, request.reason))
        else:
            audited.append(on_job(caller, _ACTS[kind], key, request.reason))
    return [change for change in audited if change is not None]
