"""POST /jobs: one manifest or many; PUT /jobs/{ref}: a Kubernetes Job."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Health, Process, Use
from holdfast.api.rest.errors import details_of
from holdfast.api.rest.parameters import DryRun, Key, Lenient, Ref
from holdfast.errors import HoldfastError
from holdfast.service.api.manifests import bulk_items, document_named, documents_of, written_job
from holdfast.service.api.use_cases import UseCases
from holdfast.service.submit import MOST_JOBS, Outcome, Written
from holdfast.wire.base import API
from holdfast.wire.jobs import BulkItem, BulkResult, JobAccepted, JobApplied
from holdfast.wire.problems import ProblemEntry
from holdfast.wire.render_jobs import job_accepted, job_applied
from holdfast.wire.render_problems import problem_entry

router = APIRouter(prefix=API, tags=["jobs"])

_MANIFEST = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string", "enum": ["holdfast.dev/v1", "batch/v1"]},
        "kind": {"type": "string", "enum": ["Job"]},
        "metadata": {"type": "object"},
        "spec": {"type": "object"},
    },
}
_BODY = {
    "oneOf": [
        _MANIFEST,
        {
            "type": "object",
            "required": ["items"],
            "additionalProperties": False,
            "properties": {"items": {"type": "array", "items": _MANIFEST, "maxItems": MOST_JOBS}},
        },
    ]
}


@router.post(
    "/jobs",
    summary="Submit one job, or up to 10,000",
    response_model=BulkResult,
    responses={201: {"model": JobAccepted, "description": "The one job submitted."}, **refusals(403, 409, 413, 415)},
    openapi_extra=takes(
        "manifests", 'A manifest of kind Job; or many: as `{"items": [...]}`, YAML documents or JSON lines.', _BODY
    ),
)
def submit(  # noqa: PLR0913 - the framework's way to declare parameters
    use: Use,
    process: Process,
    body: BodyText,
    *,
    atomic: Annotated[bool, Query(description="Many: all or none; else what is valid.")] = True,
    dry_run: DryRun = False,
    lenient: Lenient = False,
    idempotency_key: Key = None,
) -> Response:
    """Submit jobs: 201 with the job for one manifest, 200 with an outcome each for many or for a dry run."""
    documents = documents_of(body, lenient=lenient)
    items = bulk_items(documents, lenient=lenient)
    if dry_run:
        return _checked(use, [written_job(documents[0], lenient=lenient)] if items is None else items)
    if items is not None:
        return _many(use, process, items, atomic=atomic, key=idempotency_key)
    written = written_job(documents[0], lenient=lenient)
    job = use.submitter.submit(written, key=idempotency_key)
    process.metrics.submitted.inc()
    return answer(job_accepted(job, written.warnings), status=201, headers={"Location": f"{API}/jobs/{job.id}"})


@router.put(
    "/jobs/{ref}",
    summary="Apply a Kubernetes Job",
    response_model=JobApplied,
    responses={201: {"model": JobApplied, "description": "The job submitted."}, **refusals(403, 413, 415)},
    openapi_extra=takes("manifest", "A manifest of kind Job, batch/v1.", _MANIFEST),
)
def apply(use: Use, process: Process, by: By, ref: Ref, body: BodyText, *, lenient: Lenient = False) -> Response:
    """Submit a Kubernetes Job, 201, unless the newest one of its name is the same; suspend or resume that, 200."""
    found = use.applier.apply(written_job(document_named(body, ref, lenient=lenient), lenient=lenient), by=by)
    process.metrics.submitted.inc(found.result == "created")
    return answer(
        job_applied(found.job, found.result, found.warnings), status=201 if found.result == "created" else 200
    )


def _checked(use: UseCases, items: Sequence[Written | HoldfastError]) -> Response:
    names = use.submitter.check_many(items)
    valid = [
        BulkItem(index=index, status="valid", name=name, warnings=_warnings(item))
        for index, (name, item) in enumerate(zip(names, items, strict=True))
    ]
    return answer(BulkResult(items=valid))


def _warnings(item: Written | HoldfastError | Outcome) -> list[ProblemEntry]:
    return [] if isinstance(item, HoldfastError) else [problem_entry(warning) for warning in item.warnings]


def _many(
    use: UseCases, process: Health, items: list[Written | HoldfastError], *, atomic: bool, key: str | None
) -> Response:
    outcomes = use.submitter.submit_many(items, atomic=atomic, key=key)
    created = sum(outcome.job is not None for outcome in outcomes)
    process.metrics.submitted.inc(created)
    process.metrics.rejected.inc(len(outcomes) - created)
    return answer(BulkResult(items=[_item(outcome) for outcome in outcomes]))


def _item(outcome: Outcome) -> BulkItem:
    if outcome.job is None:
        error = details_of(outcome.error) if outcome.error else None
        return BulkItem(index=outcome.index, status="rejected", name=outcome.name, error=error)
    return BulkItem(
        index=outcome.index,
        status="created",
        id=outcome.job.id,
        name=outcome.job.name,
        warnings=_warnings(outcome),
    )
