"""The controller request of a submission, and the events and audit entries of requests, the same for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, on_job, on_job_set
from holdfast.domain.event_mapping import submitted
from holdfast.domain.events import EventRecord, JobSetCreated
from holdfast.domain.workloads.base import JOBSET
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.audit import AuditedChange, Caller
    from holdfast.ports.store import Submission

_TAKING_IN = {JOBSET: RequestKind.SET_SUBMIT}
_ACTS = {RequestKind.CANCEL: Act.CANCEL, RequestKind.HOLD: Act.HOLD, RequestKind.RELEASE: Act.RELEASE}
_SET_ACTS = {
    RequestKind.SET_UPDATE: Act.UPDATE,
    RequestKind.SET_SUSPEND: Act.SUSPEND,
    RequestKind.SET_RESUME: Act.RESUME,
    RequestKind.SET_RESTART: Act.RESTART,
    RequestKind.SET_DELETE: Act.DELETE,
}


def request_of(submission: Submission) -> Request:
    """Return the controller request of a submission."""
    owner = submission.owner
    if owner is not None:
        return Request(_TAKING_IN.get(owner.kind, RequestKind.SUBMIT), (owner.id,), owner.created_at)
    now = max(job.submitted_at for job in submission.jobs)
    return Request(RequestKind.SUBMIT, tuple(job.id for job in submission.jobs), now)


def submission_events(submission: Submission) -> Iterator[EventRecord]:
    """Yield the events of a submission: its job set's, if it has one, and each job's."""
    owner = submission.owner
    if owner is not None and owner.kind == JOBSET:
        yield EventRecord(None, owner.created_at, JobSetCreated(owner.id, owner.name, len(submission.jobs)))
    yield from map(submitted, submission.jobs)


def audited_changes(request: Request, by: Caller | None) -> list[AuditedChange]:
    """Return an audited change for each job or job set, if the caller is known; submissions have events only."""
    if request.kind in _SET_ACTS:
        audited = [on_job_set(by, _SET_ACTS[request.kind], set_id, request.reason) for set_id in request.targets]
    elif request.kind in _ACTS:
        audited = [on_job(by, _ACTS[request.kind], job_id, request.reason) for job_id in request.targets]
    else:
        audited = []
    return [change for change in audited if change is not None]
