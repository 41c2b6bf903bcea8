"""POST /jobsets/{ref}/suspend, /resume and /restart, and DELETE /jobsets/{ref}."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import SetRef
from holdfast.api.rest.versions import IfMatch, tagged
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.service.api.views import set_summary
from holdfast.wire.base import API
from holdfast.wire.jobs import Reason
from holdfast.wire.jobsets import JobSetRestart, JobSetSummary

router = APIRouter(prefix=API + "/jobsets/{ref}", tags=["job sets"], responses=refusals(404, 409, 413))

Why = Annotated[Reason | None, Body()]
_LONGEST_REASON = 1000


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""


def _asked(job_set: JobSet) -> Response:
    return answer(set_summary(job_set), status=202, headers=tagged(job_set.resource_version))


@router.post("/suspend", summary="Suspend a job set", status_code=202, response_model=JobSetSummary)
def suspend(use: Use, by: By, ref: SetRef, match: IfMatch, reason: Why = None) -> Response:
    """Ask for a set to be stopped and kept."""
    return _asked(use.set_control.suspend(ref, _text(reason), by=by, if_match=match.versions))


@router.post("/resume", summary="Resume a suspended job set", status_code=202, response_model=JobSetSummary)
def resume(use: Use, by: By, ref: SetRef, match: IfMatch, reason: Why = None) -> Response:
    """Ask to resume a suspended set."""
    return _asked(use.set_control.resume(ref, _text(reason), by=by, if_match=match.versions))


@router.post("/restart", summary="Restart a job set", status_code=202, response_model=JobSetSummary)
def restart(
    use: Use, by: By, ref: SetRef, match: IfMatch, what: Annotated[JobSetRestart | None, Body()] = None
) -> Response:
    """Ask for a set, a replicated job or one of its jobs to run again; it counts against no limit."""
    what = what or JobSetRestart()
    group, index = what.replicated_job, what.index
    found = use.set_control.restart(ref, group=group, index=index, reason=what.reason, by=by, if_match=match.versions)
    return _asked(found)


@router.delete("", summary="Delete a job set", status_code=202, response_model=JobSetSummary)
def delete(
    use: Use, by: By, ref: SetRef, match: IfMatch, reason: Annotated[str, Query(max_length=_LONGEST_REASON)] = ""
) -> Response:
    """Ask for a set to be deleted; it goes when its programs have stopped, and its jobs stay as history."""
    return _asked(use.set_control.delete(ref, reason, by=by, if_match=match.versions))
