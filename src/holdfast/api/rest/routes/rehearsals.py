"""POST /dry-run: manifests of any kinds, checked together."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import Lenient
from holdfast.service.api.manifests import documents_of, several
from holdfast.service.api.rehearsal import Verb
from holdfast.wire.base import API
from holdfast.wire.jobs import BulkItem, BulkResult
from holdfast.wire.render_problems import problem_entry

router = APIRouter(prefix=API, tags=["system"])


@router.post(
    "/dry-run",
    summary="Check manifests as if they were written, and write none",
    response_model=BulkResult,
    responses=refusals(403, 404, 409, 413, 415),
    openapi_extra=takes("manifests", "Manifests of any kinds, as for `POST /jobs`.", {"type": "object"}),
)
def check(use: Use, body: BodyText, verb: Verb = Verb.APPLY, *, lenient: Lenient = False) -> Response:
    """Check manifests in the order they would be written: policies, queues, categories, job sets, jobs.

    Each may name what comes before it. What is refused is answered as writing it would be.
    """
    documents = documents_of(body, lenient=lenient)
    items = several(documents)
    found = use.rehearsal.check(documents if items is None else items, verb=verb, lenient=lenient)
    return answer(
        BulkResult(
            items=[
                BulkItem(index=index, status="valid", name=one.name, warnings=[problem_entry(w) for w in one.warnings])
                for index, one in enumerate(found)
            ]
        )
    )
