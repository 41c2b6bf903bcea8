"""POST /jobs: one manifest or many."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText, bulk_items, documents_of, written_job
from holdfast.api.rest.context import Use, UseCases
from holdfast.api.rest.errors import details_of
from holdfast.errors import HoldfastError
from holdfast.service.submit import LONGEST_KEY, MOST_JOBS, Outcome, Written
from holdfast.wire.base import API
from holdfast.wire.jobs import BulkItem, BulkResult, JobSummary
from holdfast.wire.render_jobs import job_summary

router = APIRouter(prefix=API, tags=["jobs"])

_MANIFEST = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string", "enum": ["holdfast.dev/v1"]},
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

Key = Annotated[str | None, Header(max_length=LONGEST_KEY, description="Sending the same again stores nothing.")]


@router.post(
    "/jobs",
    summary="Submit one job, or up to 10,000",
    response_model=BulkResult,
    responses={201: {"model": JobSummary, "description": "The one job submitted."}, **refusals(403, 409, 413, 415)},
    openapi_extra=takes(
        "manifests", 'A manifest of kind Job; or many: as `{"items": [...]}`, YAML documents or JSON lines.', _BODY
    ),
)
def submit(
    use: Use,
    body: BodyText,
    atomic: Annotated[bool, Query(description="Many: all or none; else what is valid.")] = True,  # noqa: FBT002 - a query parameter
    dry_run: Annotated[bool, Query(description="Check everything and store nothing.")] = False,  # noqa: FBT002 - a query parameter
    idempotency_key: Key = None,
) -> Response:
    """Submit jobs: 201 with the job for one manifest, 200 with an outcome each for many or for a dry run."""
    documents = documents_of(body)
    items = bulk_items(documents)
    if dry_run:
        names = use.submitter.check_many([written_job(documents[0])] if items is None else items)
        valid = [BulkItem(index=index, status="valid", name=name) for index, name in enumerate(names)]
        return answer(BulkResult(items=valid))
    if items is not None:
        return _many(use, items, atomic=atomic, key=idempotency_key)
    job = use.submitter.submit(written_job(documents[0]), key=idempotency_key)
    use.metrics.submitted.inc()
    return answer(job_summary(job), status=201, headers={"Location": f"{API}/jobs/{job.id}"})


def _many(use: UseCases, items: list[Written | HoldfastError], *, atomic: bool, key: str | None) -> Response:
    outcomes = use.submitter.submit_many(items, atomic=atomic, key=key)
    created = sum(outcome.job is not None for outcome in outcomes)
    use.metrics.submitted.inc(created)
    use.metrics.rejected.inc(len(outcomes) - created)
    return answer(BulkResult(items=[_item(outcome) for outcome in outcomes]))


def _item(outcome: Outcome) -> BulkItem:
    if outcome.job is None:
        error = details_of(outcome.error) if outcome.error else None
        return BulkItem(index=outcome.index, status="rejected", name=outcome.name, error=error)
    return BulkItem(index=outcome.index, status="created", id=outcome.job.id, name=outcome.job.name)
