"""Queue manifests under /queues: list, create, read, replace, delete."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import DryRun, MustExist, Name, created
from holdfast.domain.job import Queue
from holdfast.service.api.manifests import manifest_of
from holdfast.service.api.views import queue_view
from holdfast.wire.base import API
from holdfast.wire.catalogue import QueuePage, QueueView

router = APIRouter(prefix=f"{API}/queues", tags=["queues"])

_BODY = takes("manifest", "A manifest of kind Queue.", {"type": "object"})


@router.get("", summary="List queues", response_model=QueuePage, responses=refusals())
def list_all(use: Use) -> Response:
    """List all, by name."""
    return answer(QueuePage(items=[queue_view(entry) for entry in use.queues.list()]))


@router.post(
    "",
    summary="Create a queue",
    status_code=201,
    response_model=QueueView,
    responses=refusals(409, 413, 415),
    openapi_extra=_BODY,
)
def create(use: Use, by: By, body: BodyText, *, dry_run: DryRun = False) -> Response:
    """Create a queue; it must be new."""
    return answer(
        queue_view(use.queues.put(manifest_of(body, Queue), create=True, by=by, dry_run=dry_run)),
        status=created(dry_run=dry_run),
    )


@router.get("/{name}", summary="Read a queue", response_model=QueueView, responses=refusals(404))
def get(use: Use, name: Name) -> Response:
    """Read one."""
    return answer(queue_view(use.queues.get(name)))


@router.put(
    "/{name}",
    summary="Create or replace a queue",
    response_model=QueueView,
    responses=refusals(404, 413, 415),
    openapi_extra=_BODY,
)
def put(
    use: Use, by: By, name: Name, body: BodyText, *, must_exist: MustExist = False, dry_run: DryRun = False
) -> Response:
    """Create or replace a queue."""
    entry = manifest_of(body, Queue, name=name)
    return answer(queue_view(use.queues.put(entry, create=False if must_exist else None, by=by, dry_run=dry_run)))


@router.delete("/{name}", summary="Delete a queue", status_code=204, response_model=None, responses=refusals(404, 409))
def delete(use: Use, by: By, name: Name) -> Response:
    """Delete one that nothing needs."""
    use.queues.delete(name, by=by)
    return Response(status_code=204)
