"""Job sets under /jobsets: list, create, read, apply, change, explain, and their jobs and logs."""

from collections.abc import Iterable
from typing import Annotated

from holdfast.api.http.endpoints.endpoint import (
    LONGEST_NAME,
    DryRun,
    Endpoints,
    IfMatch,
    Key,
    Lenient,
    MustExist,
    Param,
    Reply,
    Takes,
    Word,
)
from holdfast.api.http.endpoints.parameters import LARGEST_SEQ, read_match, read_number, write_cursor
from holdfast.api.http.endpoints.workloads import DEFAULT_PAGE, LARGEST_PAGE, Limit, Presentation
from holdfast.compiled.codec import set_spec_of
from holdfast.domain.audit import Act, Caller
from holdfast.domain.terms import kinds
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.jobsets import Applied, JobOfSet, JobSetOperations
from holdfast.wire import render_jobsets
from holdfast.wire.base import API
from holdfast.wire.jobsets import (
    ChildPage,
    ChildView,
    JobSetApplied,
    JobSetLog,
    JobSetPage,
    JobSetRestart,
    JobSetSummary,
    JobSetView,
    JobSetWhy,
)

_SETS = Endpoints("job sets")
ENDPOINTS = (_SETS,)

_TAKES = Takes(
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
_CREATED = (JobSetApplied, "The job set created.")
_IN_A_VIEW = 100

SetRef = Annotated[str, Param("A job set's name or id.", max_length=LONGEST_NAME)]


def _applied(applied: Applied) -> Reply:
    view = render_jobsets.set_applied(
        applied.job_set, applied.spec, queue=applied.spec.queue_name, result=applied.result, warnings=applied.warnings
    )
    version = view.resource_version if applied.job_set.id else None
    if applied.result != "created":
        return Reply(view, version=version)
    return Reply(view, 201, f"{API}/jobsets/{applied.job_set.id}", version)


def _summary(job_set: JobSet) -> JobSetSummary:
    spec = set_spec_of(job_set)
    return render_jobsets.set_summary(job_set, spec, queue=spec.queue_name)


_PRESENTATION = Presentation(
    info=kinds.JOB_SET,
    group=_SETS,
    operations=JobSetOperations,
    page=JobSetPage,
    listed=lambda page: ((row, row.phase(set_spec_of(row)), set_spec_of(row).labels) for row in page.rows),
    view=_summary,
    accepted=lambda _backend, _caller, row: Reply(_summary(row), version=row.resource_version),
    answer=JobSetSummary,
    versioned=True,
)
_PRESENTATION.add_list("list_sets")


@_SETS.add("POST", "/jobsets", JobSetApplied, 403, 409, summary="Create a job set", created=_CREATED, takes=_TAKES)
def create_set(
    backend: Backend,
    caller: Caller,
    body: Text,
    *,
    lenient: Lenient = False,
    dry_run: DryRun = False,
    idempotency_key: Key = None,
) -> Reply:
    """Create a job set with all of its jobs: 201, or 200 for a dry run. Its name must be new."""
    return _applied(
        JobSetOperations(backend).create(caller, body, lenient=lenient, key=idempotency_key, dry_run=dry_run)
    )


@_SETS.add("GET", "/jobsets/{ref}", JobSetView, 404, summary="Read a job set")
def get_set(backend: Backend, caller: Caller, ref: SetRef) -> Reply:
    """Read a job set with its conditions, its replicated jobs and the first 100 of its jobs."""
    sets = JobSetOperations(backend)
    job_set = sets.get(caller, ref)
    spec = set_spec_of(job_set)
    view = render_jobsets.set_view(
        job_set,
        spec,
        queue=spec.queue_name,
        manifest=sets.manifest(caller, job_set),
        children=_children(job_set, sets.children(caller, job_set, limit=_IN_A_VIEW).children),
    )
    return Reply(view, version=view.resource_version)


@_SETS.add(
    "PUT",
    "/jobsets/{ref}",
    JobSetApplied,
    403,
    404,
    409,
    summary="Create or change a job set",
    created=_CREATED,
    takes=_TAKES,
)
def put_set(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    ref: SetRef,
    body: Text,
    *,
    if_match: IfMatch = None,
    must_exist: MustExist = False,
    lenient: Lenient = False,
    dry_run: DryRun = False,
) -> Reply:
    """Create a job set (201) or change the existing one (200), in the fields that upstream lets change.

    The last accepted request wins; with `If-Match`, only one that is based on the current version is accepted.
    """
    match = read_match(if_match)
    return _applied(
        JobSetOperations(backend).apply(
            caller,
            ref,
            body,
            must_exist=must_exist or match.exists,
            if_match=match.versions,
            lenient=lenient,
            dry_run=dry_run,
        )
    )


@_SETS.add("GET", "/jobsets/{ref}/jobs", ChildPage, 404, summary="List a set's jobs")
def list_children(
    backend: Backend, caller: Caller, ref: SetRef, *, limit: Limit = DEFAULT_PAGE, cursor: Word = None
) -> ChildPage:
    """List a set's jobs with their pods, by replicated job and index."""
    sets = JobSetOperations(backend)
    job_set = sets.get(caller, ref)
    mark = f"jobs of {job_set.id}"
    page = sets.children(caller, job_set, after=read_number(cursor, mark), limit=limit)
    return ChildPage(items=_children(job_set, page.children), next_cursor=write_cursor(page.next_after, mark))


@_SETS.add("GET", "/jobsets/{ref}/log", JobSetLog, 404, summary="Read a set's log")
def get_log(
    backend: Backend,
    caller: Caller,
    ref: SetRef,
    *,
    after: Annotated[int, Param("The last entry already seen.", ge=0, le=LARGEST_SEQ)] = 0,
    limit: Limit = DEFAULT_PAGE,
    tail: Annotated[
        int | None, Param("This many of the newest entries, instead of `after`.", ge=1, le=LARGEST_PAGE)
    ] = None,
) -> JobSetLog:
    """Read a set's log in order: the decisions about its failed jobs, and what else happened to it."""
    entries = JobSetOperations(backend).log(caller, ref, after=after, limit=limit, tail=tail)
    items = list(map(render_jobsets.log_entry, entries))
    return JobSetLog(items=items, next=items[-1].seq if items else after)


@_SETS.add("GET", "/jobsets/{ref}/why", JobSetWhy, 404, summary="Explain a job set")
def get_why(
    backend: Backend,
    caller: Caller,
    ref: SetRef,
    *,
    job: Annotated[str | None, Param("Only decisions about the job with this name.", max_length=LONGEST_NAME)] = None,
) -> JobSetWhy:
    """Explain a set's state by its status and by the decisions about its failed jobs."""
    explanation = JobSetOperations(backend).why(caller, ref, job=job)
    return render_jobsets.set_why(explanation, set_spec_of(explanation.of))


_PRESENTATION.add_verb(
    Act.SUSPEND, "suspend", "Suspend a job set", "Stop a set's jobs, and keep the set.", *(404, 409, 413)
)
_PRESENTATION.add_verb(
    Act.RESUME, "resume", "Resume a suspended job set", "Start the jobs of a suspended set again.", *(404, 409, 413)
)


@_SETS.add("POST", "/jobsets/{ref}/restart", JobSetSummary, 404, 409, 413, summary="Restart a job set", status=202)
def restart(
    backend: Backend, caller: Caller, ref: SetRef, what: JobSetRestart | None = None, *, if_match: IfMatch = None
) -> Reply:
    """Restart a set, a replicated job or one of its jobs; this counts against no limit."""
    what = what or JobSetRestart()
    part = {"group": what.replicated_job, "index": what.index}
    versions = read_match(if_match).versions
    row = JobSetOperations(backend).ask(caller, Act.RESTART, ref, what.reason, if_match=versions, what=part)
    return _PRESENTATION.accepted(backend, caller, row)


_PRESENTATION.add_verb(
    Act.DELETE,
    "delete_set",
    "Delete a job set",
    "Delete a set as soon as its programs have stopped; its jobs stay as history.",
    *(404, 409, 413),
)


def _children(job_set: JobSet, children: Iterable[JobOfSet]) -> list[ChildView]:
    spec = set_spec_of(job_set)
    return [render_jobsets.child_view(child.job, child.at, job_set, spec, child.pods) for child in children]
