"""GET /jobs/{ref}/attempts, /decisions and /why."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import AttemptNumber, Ref, WhichAttempt
from holdfast.service.api.views import attempts_of, decisions_of
from holdfast.service.naming import find_attempt
from holdfast.wire.base import API
from holdfast.wire.decisions import DecisionPage, Why
from holdfast.wire.jobs import AttemptPage, AttemptView
from holdfast.wire.render_why import why_view

router = APIRouter(prefix=API + "/jobs/{ref}", tags=["attempts"])


@router.get("/attempts", summary="List a job's attempts", response_model=AttemptPage, responses=refusals(404))
def list_attempts(use: Use, ref: Ref) -> Response:
    """List a job's attempts, by number."""
    return answer(AttemptPage(items=attempts_of(use.queries.detail(ref))))


@router.get("/attempts/{number}", summary="Read an attempt", response_model=AttemptView, responses=refusals(404))
def get_attempt(use: Use, ref: Ref, number: AttemptNumber) -> Response:
    """Read one attempt with its runs and decision."""
    detail = use.queries.detail(ref)
    attempt = find_attempt(detail.job, detail.attempts, number)
    return answer(attempts_of(detail)[detail.attempts.index(attempt)])


@router.get("/decisions", summary="List a job's decisions", response_model=DecisionPage, responses=refusals(404))
def list_decisions(use: Use, ref: Ref) -> Response:
    """List what was decided about a job's failures, by attempt."""
    return answer(DecisionPage(items=decisions_of(use.queries.detail(ref))))


@router.get("/why", summary="Explain a job", response_model=Why, responses=refusals(404))
def get_why(use: Use, ref: Ref, attempt: WhichAttempt = None) -> Response:
    """Explain why a job is where it is, by its last decision or that of an attempt."""
    explanation = use.explainer.why(ref, attempt)
    return answer(
        why_view(
            explanation.job,
            attempt=explanation.attempt,
            headline=explanation.headline,
            summary=explanation.summary,
        )
    )
