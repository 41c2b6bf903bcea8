"""Keypairs: issue, read, change and revoke them. A secret is in the answer to whoever issues it, and nowhere else."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from holdfast.api.backendai.listing import list_rows, paginated
from holdfast.api.backendai.models.entries import SearchKeypairsRequest
from holdfast.api.backendai.models.parts import AnswerModel, PaginatedAnswer, RequestModel, moment
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.domain.sessions.model import named_id
from holdfast.domain.terms.projects import KeyPair
from holdfast.service.operations.tokens import IssuedKeypairs, KeypairChange

PATH, MY_PATH = "/v2/keypairs", "/v2/keypairs/my"
_RATE_LIMIT, _RESOURCE_POLICY = 30_000, "default"
"""What answers have in place of limits of keypairs: queues and users have limits here."""
AccessKey = Annotated[str, Field(min_length=1, max_length=64)]


class CreateKeypairRequest(RequestModel):
    """A new keypair of a user."""

    user_id: UUID
    resource_policy: str = _RESOURCE_POLICY
    is_active: bool = True
    is_admin: bool = False
    rate_limit: int = _RATE_LIMIT


class UpdateKeypairRequest(RequestModel):
    """What to change of a keypair."""

    access_key: AccessKey
    is_active: bool | None = None
    is_admin: bool | None = None


class UpdateMyKeypairRequest(RequestModel):
    """What to change of a keypair of the caller."""

    access_key: AccessKey
    is_active: bool


class NamedKeypairRequest(RequestModel):
    """A keypair of the caller."""

    access_key: AccessKey


class KeypairNode(AnswerModel):
    """A keypair without its secret."""

    id: str
    field_id: UUID
    access_key: str
    is_active: bool
    is_admin: bool
    is_default: bool = False
    created_at: datetime
    modified_at: datetime | None = None
    last_used: datetime | None = None
    rate_limit: int = _RATE_LIMIT
    num_queries: int = 0
    resource_policy: str = _RESOURCE_POLICY
    ssh_public_key: str | None = None
    user_id: UUID


class KeypairAnswer(AnswerModel):
    """A keypair."""

    keypair: KeypairNode


class IssuedKeypairAnswer(KeypairAnswer):
    """A new keypair, with its secret."""

    secret_key: str


class RevokedKeypairAnswer(AnswerModel):
    """A keypair of the caller was revoked."""

    success: bool


class DeletedKeypairAnswer(AnswerModel):
    """A keypair was deleted."""

    access_key: str


@ROUTES.add("POST", f"{MY_PATH}/search", "keypair_search")
def search_mine(call: BackendAiCall, body: SearchKeypairsRequest) -> PaginatedAnswer[KeypairNode]:
    """Search among the keypairs of the caller."""
    name = call.caller.principal.name
    return _search(
        body, [keypair for keypair in IssuedKeypairs(call.backend).list(call.caller) if keypair.owner == name]
    )


@ROUTES.add("POST", f"{PATH}/search", "keypair_search")
def search(call: BackendAiCall, body: SearchKeypairsRequest) -> PaginatedAnswer[KeypairNode]:
    """Search among all keypairs that the caller may see."""
    return _search(body, IssuedKeypairs(call.backend).list(call.caller))


@ROUTES.add("POST", f"{MY_PATH}/issue", "keypair_create", status=201)
def issue(call: BackendAiCall) -> IssuedKeypairAnswer:
    """Issue a keypair of the caller."""
    return _issued(call, IssuedKeypairs(call.backend).issue(call.caller))


@ROUTES.add("POST", f"{MY_PATH}/revoke", "keypair_purge")
def revoke(call: BackendAiCall, body: NamedKeypairRequest) -> RevokedKeypairAnswer:
    """Revoke a keypair of the caller."""
    IssuedKeypairs(call.backend).revoke(call.caller, body.access_key)
    return RevokedKeypairAnswer(success=True)


@ROUTES.add("PATCH", MY_PATH, "keypair_update")
def update_mine(call: BackendAiCall, body: UpdateMyKeypairRequest) -> KeypairAnswer:
    """Switch a keypair of the caller on or off."""
    change = KeypairChange(active=body.is_active)
    return KeypairAnswer(keypair=_view(IssuedKeypairs(call.backend).update(call.caller, body.access_key, change)))


@ROUTES.add("POST", PATH, "keypair_create", status=201)
def create(call: BackendAiCall, body: CreateKeypairRequest) -> IssuedKeypairAnswer:
    """Issue a keypair of a user."""
    operations = IssuedKeypairs(call.backend)
    owner = operations.user_of(call.caller, str(body.user_id))
    return _issued(call, operations.issue(call.caller, owner, KeypairChange(body.is_active, body.is_admin)))


@ROUTES.add("GET", f"{PATH}/{{access_key}}", "keypair_read")
def read(call: BackendAiCall, access_key: str) -> KeypairNode:
    """Read a keypair."""
    return _view(IssuedKeypairs(call.backend).get(call.caller, access_key))


@ROUTES.add("PATCH", PATH, "keypair_update")
def update(call: BackendAiCall, body: UpdateKeypairRequest) -> KeypairAnswer:
    """Change a keypair."""
    change = KeypairChange(body.is_active, body.is_admin)
    return KeypairAnswer(keypair=_view(IssuedKeypairs(call.backend).update(call.caller, body.access_key, change)))


@ROUTES.add("DELETE", f"{PATH}/{{access_key}}", "keypair_purge")
def delete(call: BackendAiCall, access_key: str) -> DeletedKeypairAnswer:
    """Delete a keypair."""
    return DeletedKeypairAnswer(access_key=IssuedKeypairs(call.backend).revoke(call.caller, access_key).name)


def _search(body: SearchKeypairsRequest, keypairs: Sequence[KeyPair]) -> PaginatedAnswer[KeypairNode]:
    fields: dict[str, Callable[[KeyPair], Any]] = {
        "id": lambda keypair: keypair.name,
        "access_key": lambda keypair: keypair.name,
        "is_active": lambda keypair: keypair.active,
        "is_admin": lambda keypair: keypair.admin,
        "is_default": lambda _: False,
        "resource_policy": lambda _: _RESOURCE_POLICY,
        "user_id": lambda keypair: UUID(named_id("user", keypair.owner)),
        "created_at": lambda keypair: keypair.created_at,
    }
    return paginated(body, list_rows(body, body.filter, keypairs, fields, _view))


def _issued(call: BackendAiCall, keypair: KeyPair) -> IssuedKeypairAnswer:
    return IssuedKeypairAnswer(keypair=_view(keypair), secret_key=call.door.secret_of(keypair.name, keypair.owner))


def _view(keypair: KeyPair) -> KeypairNode:
    return KeypairNode(
        id=keypair.name,
        field_id=UUID(named_id("keypair", keypair.name)),
        access_key=keypair.name,
        is_active=keypair.active,
        is_admin=keypair.admin,
        created_at=moment(keypair.created_at),
        user_id=UUID(named_id("user", keypair.owner)),
    )
