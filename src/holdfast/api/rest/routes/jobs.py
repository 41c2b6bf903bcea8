"""GET /jobs, /jobs/{ref} and what belongs to one job as a whole."""

from typing import Literal

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Use
from holdfast.api.rest.pages import Paging
from holdfast.api.rest.parameters import Ref
from holdfast.service.api.views import full_job
from holdfast.wire.base import API
from holdfast.wire.jobs import HistoryPage, JobPage, JobStates, JobView, StatesQuery
from holdfast.wire.render_jobs import history_entry, job_summary

router = APIRouter(prefix=API, tags=["jobs"])


@router.get("/jobs", summary="List jobs, oldest first", response_model=JobPage, responses=refusals(404))
def list_jobs(use: Use, paging: Paging, fields: Literal["summary", "full"] = "summary") -> Response:
    """List jobs in order of submission; jobs submitted meanwhile appear on later pages."""
    page = use.queries.page(paging.where, after=paging.after, limit=paging.limit)
    if fields == "full":
        items = [full_job(use.queries.detail_of(job)) for job in page.jobs]
        return answer(JobPage(items=items, next_cursor=paging.cursor(page.next_after)))
    summaries = [job_summary(job) for job in page.jobs]
    return answer(JobPage(items=summaries, next_cursor=paging.cursor(page.next_after)))


@router.post("/jobs/states", summary="Read the states of many jobs", response_model=JobStates, responses=refusals(413))
def job_states(use: Use, query: StatesQuery) -> Response:
    """Read states by id; unknown ids are left out."""
    states = use.queries.states(query.ids)
    return answer(JobStates(states={job_id: str(state) for job_id, state in states.items()}))


@router.get("/jobs/{ref}", summary="Read a job", response_model=JobView, responses=refusals(404))
def get_job(use: Use, ref: Ref) -> Response:
    """Read a job with its attempts, runs and decisions."""
    return answer(full_job(use.queries.detail(ref)))


@router.get("/jobs/{ref}/history", summary="Read a job's history", response_model=HistoryPage, responses=refusals(404))
def get_history(use: Use, ref: Ref) -> Response:
    """List the phases a job's attempts went through."""
    return answer(HistoryPage(items=[history_entry(row) for row in use.queries.history(ref)]))
