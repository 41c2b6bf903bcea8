"""GET and PUT /settings."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import DryRun
from holdfast.service.api.manifests import read_settings
from holdfast.service.api.views import settings_view
from holdfast.wire.base import API
from holdfast.wire.catalogue import SettingsView

router = APIRouter(prefix=f"{API}/settings", tags=["settings"])

_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "globalMaxRetries": {"type": ["integer", "null"], "minimum": 0},
        "defaultBackoff": {"type": ["object", "null"]},
        "defaultPolicyName": {"type": ["string", "null"]},
        "handlerLimits": {"type": ["object", "null"]},
    },
}


@router.get("", summary="Read the settings", response_model=SettingsView, responses=refusals())
def get(use: Use) -> Response:
    """Read what the operator set for everyone."""
    return answer(settings_view(*use.settings.get()))


@router.put(
    "",
    summary="Replace the settings",
    response_model=SettingsView,
    responses=refusals(413, 415),
    openapi_extra=takes("manifest", "All settings; one left out gets its default.", _SCHEMA),
)
def put(use: Use, by: By, body: BodyText, *, dry_run: DryRun = False) -> Response:
    """Replace the settings; they apply to what is judged from now on."""
    wanted = read_settings(body)
    use.settings.put(*wanted, by=by, dry_run=dry_run)
    return answer(settings_view(*wanted))
