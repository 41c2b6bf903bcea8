"""Users: those of whom the server knows something."""

from uuid import UUID

from holdfast.api.backendai.listing import list_rows, paginated
from holdfast.api.backendai.models.entries import SearchUsersRequest
from holdfast.api.backendai.models.entry_views import UserAnswer, UserBasics, UserOrganization, UserView
from holdfast.api.backendai.models.parts import PaginatedAnswer
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.views import named_uuid
from holdfast.domain.terms.projects import DEFAULT_DOMAIN
from holdfast.errors import NotFound
from holdfast.service.operations.sessions import SessionOperations
from holdfast.service.sessions.directory import USER

PATH = "/v2/users"


def _email(name: str) -> str:
    """Return the address of a user, which clients expect: the name itself, if it is one."""
    return name if "@" in name else f"{name}@localhost"


_FIELDS = {
    "id": lambda name: named_uuid(USER, name),
    "uuid": lambda name: named_uuid(USER, name),
    "username": lambda name: name,
    "email": _email,
    "domain_name": lambda _: DEFAULT_DOMAIN,
}


@ROUTES.add("POST", f"{PATH}/search", "user_search")
def search(call: BackendAiCall, body: SearchUsersRequest) -> PaginatedAnswer[UserView]:
    """Search among the users."""
    users = SessionOperations(call.backend).directory(call.caller).users
    return paginated(body, list_rows(body, body.filter, sorted(users), _FIELDS, lambda name: _view(call, name)))


@ROUTES.add("GET", f"{PATH}/{{user_id}}", "user_read")
def read(call: BackendAiCall, user_id: UUID) -> UserAnswer:
    """Read a user."""
    for name in SessionOperations(call.backend).directory(call.caller).users:
        if named_uuid(USER, name) == user_id:
            return UserAnswer(user=_view(call, name))
    msg = f"there is no user {user_id}"
    raise NotFound(msg)


def _view(call: BackendAiCall, name: str) -> UserView:
    id_ = named_uuid(USER, name)
    return UserView(
        id=id_,
        entity_id=id_,
        basic_info=UserBasics(username=name, email=_email(name)),
        organization=UserOrganization(
            domain_name=DEFAULT_DOMAIN, role="superadmin" if name == call.backend.owner.name else "user"
        ),
    )
