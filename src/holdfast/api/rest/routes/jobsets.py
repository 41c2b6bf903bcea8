"""Job sets under /jobsets: list, create, read, apply, and what belongs to one."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Process, Use
from holdfast.api.rest.pages import DEFAULT_PAGE, Word
from holdfast.api.rest.parameters import DryRun, Key, Lenient, MustExist, SetRef
from holdfast.api.rest.versions import IfMatch, tagged
from holdfast.service.api.cursors import LARGEST_SEQ, read_name, read_number, write_cursor
from holdfast.service.api.manifests import document_named, one_document
from holdfast.service.api.views import applied_set, children_of, full_set, set_summary, set_why
from holdfast.service.jobsets.sets import LARGEST_PAGE, Applied
from holdfast.wire.base import API
from holdfast.wire.jobsets import ChildPage, JobSetApplied, JobSetLog, JobSetPage, JobSetView, JobSetWhy
from holdfast.wire.render_jobsets import log_entry

router = APIRouter(prefix=f"{API}/jobsets", tags=["job sets"])

_BODY = takes(
    "manifest",
    "A job set: kind JobSet of `jobset.x-k8s.io/v1alpha2` or of `holdfast.dev/v1`.",
    {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "enum": ["jobset.x-k8s.io/v1alpha2", "holdfast.dev/v1"]},
            "kind": {"type": "string", "enum": ["JobSet"]},
            "metadata": {"type": "object"},
            "spec": {"type": "object"},
        },
    },
)
_IN_A_VIEW = 100
_LIST = "job sets"

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]


def _applied(found: Applied) -> Response:
    view = applied_set(found)
    tag = tagged(view.resource_version) if found.job_set.id else {}
    if found.result != "created":
        return answer(view, headers=tag)
    return answer(view, status=201, headers={"Location": f"{API}/jobsets/{found.job_set.id}", **tag})


@router.get("", summary="List job sets", response_model=JobSetPage, responses=refusals())
def list_all(use: Use, limit: Limit = DEFAULT_PAGE, cursor: Word = None) -> Response:
    """List job sets by name."""
    page = use.job_sets.page(after=read_name(cursor, _LIST), limit=limit)
    items = [set_summary(job_set) for job_set in page.sets]
    return answer(JobSetPage(items=items, next_cursor=write_cursor(page.next_after, _LIST)))


@router.post(
    "",
    summary="Create a job set",
    response_model=JobSetApplied,
    responses={
        201: {"model": JobSetApplied, "description": "The job set created."},
        **refusals(403, 409, 413, 415),
    },
    openapi_extra=_BODY,
)
def create(  # noqa: PLR0913 - the framework's way to declare parameters
    use: Use,
    process: Process,
    by: By,
    body: BodyText,
    *,
    lenient: Lenient = False,
    dry_run: DryRun = False,
    idempotency_key: Key = None,
) -> Response:
    """Create a job set with all of its jobs, 201; it must be new. 200 for a dry run."""
    document = one_document(body, lenient=lenient)
    found = use.job_sets.create(document, lenient=lenient, by=by, key=idempotency_key, dry_run=dry_run)
    if found.result == "created":
        process.metrics.submitted.inc(found.spec.replicas)
    return _applied(found)


@router.get("/{ref}", summary="Read a job set", response_model=JobSetView, responses=refusals(404))
def get(use: Use, ref: SetRef) -> Response:
    """Read a job set with its conditions, its replicated jobs and the first 100 of its jobs."""
    job_set = use.job_sets.get(ref)
    view = full_set(job_set, use.job_sets.children(job_set, limit=_IN_A_VIEW).children)
    return answer(view, headers=tagged(view.resource_version))


@router.put(
    "/{ref}",
    summary="Create or change a job set",
    response_model=JobSetApplied,
    responses={
        201: {"model": JobSetApplied, "description": "The job set created."},
        **refusals(403, 404, 409, 413, 415),
    },
    openapi_extra=_BODY,
)
def put(  # noqa: PLR0913 - the framework's way to declare parameters
    use: Use,
    by: By,
    ref: SetRef,
    body: BodyText,
    match: IfMatch,
    *,
    must_exist: MustExist = False,
    lenient: Lenient = False,
    dry_run: DryRun = False,
) -> Response:
    """Create a job set, 201, or change the one there is, 200; what may change is what may change upstream.

    Of several requests the last one accepted counts; with `If-Match` only what has not changed since is changed.
    """
    document = document_named(body, ref, lenient=lenient)
    create_new = False if must_exist or match.exists else None
    found = use.job_sets.put(
        document, lenient=lenient, create=create_new, by=by, dry_run=dry_run, if_match=match.versions
    )
    return _applied(found)


@router.get("/{ref}/jobs", summary="List a set's jobs", response_model=ChildPage, responses=refusals(404))
def list_jobs(use: Use, ref: SetRef, limit: Limit = DEFAULT_PAGE, cursor: Word = None) -> Response:
    """List a set's jobs with their pods, by replicated job and index."""
    job_set = use.job_sets.get(ref)
    mark = f"jobs of {job_set.id}"
    page = use.job_sets.children(job_set, after=read_number(cursor, mark), limit=limit)
    items = children_of(job_set, page.children)
    return answer(ChildPage(items=items, next_cursor=write_cursor(page.next_after, mark)))


@router.get("/{ref}/log", summary="Read a set's log", response_model=JobSetLog, responses=refusals(404))
def get_log(
    use: Use,
    ref: SetRef,
    *,
    after: Annotated[int, Query(ge=0, le=LARGEST_SEQ, description="The last entry already seen.")] = 0,
    limit: Limit = DEFAULT_PAGE,
    tail: Annotated[int | None, Query(ge=1, le=LARGEST_PAGE, description="The newest ones, instead of after.")] = None,
) -> Response:
    """Read what was decided about a set's failed jobs, and what else there is to know, in order."""
    job_set = use.job_sets.get(ref)
    entries = (
        use.job_sets.log(job_set, after=after, limit=limit) if tail is None else use.job_sets.last_log(job_set, tail)
    )
    items = [log_entry(entry) for entry in entries]
    return answer(JobSetLog(items=items, next=items[-1].seq if items else after))


@router.get("/{ref}/why", summary="Explain a job set", response_model=JobSetWhy, responses=refusals(404))
def get_why(
    use: Use,
    ref: SetRef,
    job: Annotated[str | None, Query(max_length=255, description="Only decisions about the job of this name.")] = None,
) -> Response:
    """Explain why a set is where it is, by how it stands and by the decisions about its failed jobs."""
    return answer(set_why(use.set_explainer.why(ref, job=job)))
