"""POST /jobs: one manifest or many; PUT /jobs/{ref}: a Kubernetes Job; POST /dry-run: manifests of any kinds."""

from collections.abc import Sequence
from typing import Annotated

from holdfast.api.http.endpoints.endpoint import DryRun, Endpoints, Key, Lenient, Param, Ref, Reply, Takes
from holdfast.domain.audit import Caller
from holdfast.domain.workloads.array.model import Array
from holdfast.errors import HoldfastError
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.submissions import MOST_JOBS, ItemOutcome, Submissions, Verb, WrittenJob, decoded
from holdfast.wire.base import API
from holdfast.wire.jobs import (
    BlobBody,
    BlobKept,
    BulkItem,
    BulkResult,
    JobAccepted,
    JobApplied,
    SecretBody,
    SecretKept,
)
from holdfast.wire.problems import ProblemEntry, details_of, problem_entry
from holdfast.wire.render_jobs import job_accepted, job_applied

_JOBS = Endpoints("jobs")
_SYSTEM = Endpoints("system")
ENDPOINTS = (_JOBS, _SYSTEM)

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
_TAKES = (
    'A manifest of kind Job, or many, arrays included: as `{"items": [...]}`, YAML documents or JSON lines. They may '
    "depend on each other by name."
)


@_JOBS.add(
    "POST",
    "/jobs",
    BulkResult,
    403,
    409,
    summary="Submit one job, or up to 10,000",
    created=(JobAccepted, "The one job submitted."),
    takes=Takes(_TAKES, _BODY, many=True),
)
def submit(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    body: Text,
    *,
    atomic: Annotated[bool, Param("Of many, store all or none; if false, the valid ones.")] = True,
    dry_run: DryRun = False,
    lenient: Lenient = False,
    idempotency_key: Key = None,
) -> Reply:
    """Submit jobs: 201 with the job for one manifest; 200 with an outcome for each of many, or for a dry run."""
    submissions = Submissions(backend)
    written = submissions.read(caller, body, lenient=lenient, key=idempotency_key)
    items = [written] if isinstance(written, WrittenJob) else written
    if dry_run:
        return Reply(_checked(submissions.check(caller, items), items))
    if isinstance(written, WrittenJob):
        job = submissions.submit(caller, written, key=idempotency_key)
        return Reply(job_accepted(job, written.warnings), 201, f"{API}/jobs/{job.id}")
    outcomes = submissions.submit_many(caller, items, atomic=atomic, key=idempotency_key)
    return Reply(BulkResult(items=[_item(outcome) for outcome in outcomes]))


@_JOBS.add(
    "PUT",
    "/jobs/{ref}",
    JobApplied,
    403,
    409,
    summary="Apply a Kubernetes Job",
    created=(JobApplied, "The job submitted."),
    takes=Takes("A manifest of kind Job, batch/v1.", _MANIFEST),
)
def apply(backend: Backend, caller: Caller, ref: Ref, body: Text, *, lenient: Lenient = False) -> Reply:
    """Submit a Kubernetes Job (201), or suspend or resume the newest of its name if nothing else differs (200)."""
    applied = Submissions(backend).apply(caller, ref, body, lenient=lenient)
    status = 201 if applied.result == "created" else 200
    return Reply(job_applied(applied.job, applied.result, applied.warnings), status)


def _checked(names: Sequence[str | None], items: Sequence[WrittenJob | HoldfastError]) -> BulkResult:
    return BulkResult(
        items=[
            BulkItem(index=index, status="valid", name=name, warnings=_warnings(item))
            for index, (name, item) in enumerate(zip(names, items, strict=True))
        ]
    )


def _warnings(item: WrittenJob | HoldfastError | ItemOutcome) -> list[ProblemEntry]:
    return [] if isinstance(item, HoldfastError) else [problem_entry(warning) for warning in item.warnings]


def _item(outcome: ItemOutcome) -> BulkItem:
    if outcome.created is None:
        error = details_of(outcome.error) if outcome.error else None
        return BulkItem(index=outcome.index, status="rejected", name=outcome.name, error=error)
    return BulkItem(
        index=outcome.index,
        status="created",
        id=outcome.created.id,
        name=outcome.created.name,
        kind="array" if isinstance(outcome.created, Array) else "job",
        warnings=_warnings(outcome),
    )


@_JOBS.add(
    "POST", "/blobs", BlobKept, 403, 413, 422, summary="Store a file or an archive before submitting", status=201
)
def keep_blob(backend: Backend, caller: Caller, body: BlobBody) -> BlobKept:
    """Store a file or an archive for `inputs` of jobs submitted within an hour; it is kept as long as those jobs."""
    return BlobKept(blob=Submissions(backend).keep_blob(caller, decoded(body.data), archive=body.unpack))


@_JOBS.add("POST", "/secrets", SecretKept, 403, 413, 422, summary="Store a secret before submitting", status=201)
def keep_secret(backend: Backend, caller: Caller, body: SecretBody) -> SecretKept:
    """Store a secret for jobs submitted within an hour; it is kept as long as those jobs, and never shown."""
    return SecretKept(name=Submissions(backend).keep_secret(caller, body.value))


@_SYSTEM.add(
    "POST",
    "/dry-run",
    BulkResult,
    403,
    404,
    409,
    summary="Check manifests without storing them",
    takes=Takes("Manifests of any kinds, as for `POST /jobs`.", many=True),
)
def check(
    backend: Backend, caller: Caller, body: Text, verb: Verb = Verb.APPLY, *, lenient: Lenient = False
) -> BulkResult:
    """Check manifests in the order in which they would be stored: policies, queues, categories, job sets, jobs.

    Each may refer to earlier ones. A refusal is the one that storing the manifest would get.
    """
    checked = Submissions(backend).rehearse(caller, body, verb=verb, lenient=lenient)
    return BulkResult(
        items=[
            BulkItem(
                index=index,
                status="valid",
                name=checked_item.name,
                warnings=[problem_entry(w) for w in checked_item.warnings],
            )
            for index, checked_item in enumerate(checked)
        ]
    )
