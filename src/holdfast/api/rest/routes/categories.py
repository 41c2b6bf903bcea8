"""FailureCategory manifests under /failure-categories: list, create, read, replace, delete."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import DryRun, MustExist, Name, created
from holdfast.domain.category import FailureCategory
from holdfast.service.api.manifests import manifest_of
from holdfast.service.api.views import category_view
from holdfast.wire.base import API
from holdfast.wire.catalogue import CategoryPage, CategoryView

router = APIRouter(prefix=f"{API}/failure-categories", tags=["failure categories"])

_BODY = takes("manifest", "A manifest of kind FailureCategory.", {"type": "object"})


@router.get("", summary="List failure categories", response_model=CategoryPage, responses=refusals())
def list_all(use: Use) -> Response:
    """List all, in order of evaluation."""
    return answer(CategoryPage(items=[category_view(entry) for entry in use.categories.list()]))


@router.post(
    "",
    summary="Create a failure category",
    status_code=201,
    response_model=CategoryView,
    responses=refusals(409, 413, 415),
    openapi_extra=_BODY,
)
def create(use: Use, by: By, body: BodyText, *, dry_run: DryRun = False) -> Response:
    """Create a failure category; it must be new."""
    return answer(
        category_view(use.categories.put(manifest_of(body, FailureCategory), create=True, by=by, dry_run=dry_run)),
        status=created(dry_run=dry_run),
    )


@router.get("/{name}", summary="Read a failure category", response_model=CategoryView, responses=refusals(404))
def get(use: Use, name: Name) -> Response:
    """Read one."""
    return answer(category_view(use.categories.get(name)))


@router.put(
    "/{name}",
    summary="Create or replace a failure category",
    response_model=CategoryView,
    responses=refusals(404, 413, 415),
    openapi_extra=_BODY,
)
def put(
    use: Use, by: By, name: Name, body: BodyText, *, must_exist: MustExist = False, dry_run: DryRun = False
) -> Response:
    """Create or replace a failure category."""
    entry = manifest_of(body, FailureCategory, name=name)
    return answer(
        category_view(use.categories.put(entry, create=False if must_exist else None, by=by, dry_run=dry_run))
    )


@router.delete(
    "/{name}", summary="Delete a failure category", status_code=204, response_model=None, responses=refusals(404, 409)
)
def delete(use: Use, by: By, name: Name) -> Response:
    """Delete one that nothing needs."""
    use.categories.delete(name, by=by)
    return Response(status_code=204)
