"""What clients ask of the system itself: the versions, and the announcement."""

from typing import TYPE_CHECKING

from pydantic import BaseModel
from starlette.responses import JSONResponse

from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.wire.backendai.signatures import API_VERSION

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MANAGER_VERSION = "26.9.6"
"""The version of the manager that it answers as."""


async def hello(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer with the versions; clients ask for them before they sign anything."""
    await JSONResponse({"version": API_VERSION, "manager": MANAGER_VERSION})(scope, receive, send)


class Announcement(BaseModel):
    """What the operators announce."""

    enabled: bool
    message: str


@ROUTES.add("GET", "/manager/announcement", "backendai_read")
def announcement(_: BackendAiCall) -> Announcement:
    """Return that nothing is announced."""
    return Announcement(enabled=False, message="")
