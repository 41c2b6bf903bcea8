"""What a request to the controller leaves behind in the audit log, for every store alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, on_job
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller, Deed

_ACTS = {RequestKind.CANCEL: Act.CANCEL, RequestKind.HOLD: Act.HOLD, RequestKind.RELEASE: Act.RELEASE}


def deeds_of(request: Request, by: Caller | None) -> list[Deed]:
    """Return one deed for each job, if there is somebody to name; a submission is told by the jobs' own events."""
    act = _ACTS.get(request.kind)
    if act is None:
        return []
    deeds = (on_job(by, act, job_id, request.reason) for job_id in request.job_ids)
    return [deed for deed in deeds if deed is not None]
