"""GET and PUT /settings."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals, takes
from holdfast.api.rest.bodies import BodyText, one_document
from holdfast.api.rest.callers import By
from holdfast.api.rest.context import Use
from holdfast.dialects.native.settings import read_settings, write_settings
from holdfast.errors import InvalidRequest, InvalidSetting
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


def _view(use: Use) -> SettingsView:
    return SettingsView.model_validate(write_settings(*use.settings.get()))


@router.get("", summary="Read the settings", response_model=SettingsView, responses=refusals())
def get(use: Use) -> Response:
    """Read what the operator set for everyone."""
    return answer(_view(use))


@router.put(
    "",
    summary="Replace the settings",
    response_model=SettingsView,
    responses=refusals(413, 415),
    openapi_extra=takes("manifest", "All settings; one left out gets its default.", _SCHEMA),
)
def put(use: Use, by: By, body: BodyText) -> Response:
    """Replace the settings; they apply to what is judged from now on."""
    try:
        settings, default_policy = read_settings(one_document(body).value)
    except InvalidRequest as error:
        raise InvalidSetting(problems=error.problems) from error
    use.settings.put(settings, default_policy, by=by)
    return answer(_view(use))
