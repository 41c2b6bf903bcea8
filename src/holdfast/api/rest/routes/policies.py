"""RetryPolicy manifests under /retry-policies: list, create, read, replace, delete."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import DryRun, MustExist, Name, created
from holdfast.api.rest.versions import IfMatch, tagged
from holdfast.domain.policy.model import RetryPolicy
from holdfast.service.api.manifests import manifest_of
from holdfast.service.api.views import policy_view
from holdfast.wire.base import API
from holdfast.wire.catalogue import PolicyPage, PolicyView

router = APIRouter(prefix=f"{API}/retry-policies", tags=["retry policies"])

_BODY = takes("manifest", "A manifest of kind RetryPolicy.", {"type": "object"})


def _one(entry: RetryPolicy, *, status: int = 200) -> Response:
    return answer(policy_view(entry), status=status, headers=tagged(str(entry.revision)))


@router.get("", summary="List retry policies", response_model=PolicyPage, responses=refusals())
def list_all(use: Use) -> Response:
    """List all, by name."""
    return answer(PolicyPage(items=[policy_view(entry) for entry in use.policies.list()]))


@router.post(
    "",
    summary="Create a retry policy",
    status_code=201,
    response_model=PolicyView,
    responses=refusals(409, 413, 415),
    openapi_extra=_BODY,
)
def create(use: Use, by: By, body: BodyText, *, dry_run: DryRun = False) -> Response:
    """Create a retry policy; it must be new."""
    return _one(
        use.policies.put(manifest_of(body, RetryPolicy), create=True, by=by, dry_run=dry_run),
        status=created(dry_run=dry_run),
    )


@router.get("/{name}", summary="Read a retry policy", response_model=PolicyView, responses=refusals(404))
def get(use: Use, name: Name) -> Response:
    """Read one."""
    return _one(use.policies.get(name))


@router.put(
    "/{name}",
    summary="Create or replace a retry policy",
    response_model=PolicyView,
    responses=refusals(404, 409, 413, 415),
    openapi_extra=_BODY,
)
def put(  # noqa: PLR0913 - the framework's way to declare parameters
    use: Use,
    by: By,
    name: Name,
    body: BodyText,
    match: IfMatch,
    *,
    must_exist: MustExist = False,
    dry_run: DryRun = False,
) -> Response:
    """Create or replace a retry policy."""
    entry = manifest_of(body, RetryPolicy, name=name)
    create_new = False if must_exist or match.exists else None
    return _one(use.policies.put(entry, create=create_new, by=by, if_match=match.versions, dry_run=dry_run))


@router.delete(
    "/{name}", summary="Delete a retry policy", status_code=204, response_model=None, responses=refusals(404, 409)
)
def delete(use: Use, by: By, name: Name, match: IfMatch) -> Response:
    """Delete one that nothing needs."""
    use.policies.delete(name, by=by, if_match=match.versions)
    return Response(status_code=204)
