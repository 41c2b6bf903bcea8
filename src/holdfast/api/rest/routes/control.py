"""POST /jobs/{ref}/cancel, /hold and /release."""

from typing import Annotated

from fastapi import APIRouter, Body, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import Ref
from holdfast.wire.base import API
from holdfast.wire.jobs import JobSummary, Reason
from holdfast.wire.render_jobs import job_summary

router = APIRouter(prefix=API + "/jobs/{ref}", tags=["control"], responses=refusals(404, 409, 413))

Why = Annotated[Reason | None, Body()]


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""


@router.post("/cancel", summary="Cancel a job", status_code=202, response_model=JobSummary)
def cancel(use: Use, by: By, ref: Ref, reason: Why = None) -> Response:
    """Ask for a job to be cancelled; its runs are stopped, and it is never retried."""
    return answer(job_summary(use.control.cancel(ref, _text(reason), by=by)), status=202)


@router.post("/hold", summary="Hold a waiting job", status_code=202, response_model=JobSummary)
def hold(use: Use, by: By, ref: Ref, reason: Why = None) -> Response:
    """Ask for a waiting job to be held until it is released."""
    return answer(job_summary(use.control.hold(ref, _text(reason), by=by)), status=202)


@router.post("/release", summary="Release a held job", status_code=202, response_model=JobSummary)
def release(use: Use, by: By, ref: Ref, reason: Why = None) -> Response:
    """Ask to release a held job."""
    return answer(job_summary(use.control.release(ref, _text(reason), by=by)), status=202)
