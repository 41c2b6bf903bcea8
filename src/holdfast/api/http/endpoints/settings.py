"""/settings: the settings that hold for everyone."""

from collections.abc import Sequence

from holdfast.api.http.endpoints.endpoint import DryRun, Endpoints, Takes
from holdfast.domain.access.grants import Access, Sight
from holdfast.domain.audit import Caller
from holdfast.domain.policy.model import BuiltIn, RetrySettings
from holdfast.errors import Problem
from holdfast.service.manifests.reading import read_settings
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.settings import SettingsOperations, settings_of
from holdfast.wire.catalogue import ConfigurationView, SettingsView
from holdfast.wire.problems import problem_entry

_SETTINGS = Endpoints("settings")
ENDPOINTS = (_SETTINGS,)

_ALL_SETTINGS = Takes(
    "All settings; one left out gets its default, but `access` and `othersSee` stay as they are.",
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "globalMaxRetries": {"type": ["integer", "null"], "minimum": 0},
            "defaultBackoff": {"type": ["object", "null"]},
            "defaultPolicyName": {"type": ["string", "null"]},
            "handlerLimits": {"type": ["object", "null"]},
            "resources": {"type": ["object", "null"]},
            "retryShare": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            "builtinPolicy": {"type": ["string", "null"], "enum": [*map(str, BuiltIn), None]},
            "fluster": {"type": ["object", "null"]},
            "sessionRetryDefault": {"type": ["object", "null"]},
            "sessionRetries": {"type": ["boolean", "null"]},
            "access": {"type": ["object", "null"]},
            "othersSee": {"type": ["string", "null"], "enum": [*map(str, Sight), None]},
        },
    },
)


def _settings_view(
    settings: RetrySettings, default_policy: str | None, access: Access, warnings: Sequence[Problem]
) -> SettingsView:
    entries = [problem_entry(warning) for warning in warnings]
    return SettingsView.model_validate({**settings_of(settings, default_policy, access), "warnings": entries})


@_SETTINGS.add("GET", "/settings", SettingsView, summary="Read the settings")
def get_settings(backend: Backend, caller: Caller) -> SettingsView:
    """Read the settings that hold for everyone."""
    settings, policy, access = SettingsOperations(backend.store).get(caller)
    return _settings_view(
        settings, policy, access, SettingsOperations(backend.store).warnings(caller, access, backend.is_group)
    )


@_SETTINGS.add("PUT", "/settings", SettingsView, summary="Replace the settings", takes=_ALL_SETTINGS)
def put_settings(backend: Backend, caller: Caller, body: Text, *, dry_run: DryRun = False) -> SettingsView:
    """Replace the settings; they apply to decisions from now on."""
    settings, policy, access = read_settings(body)
    access = SettingsOperations(backend.store).put(caller, settings, policy, access, dry_run=dry_run)
    return _settings_view(
        settings, policy, access, SettingsOperations(backend.store).warnings(caller, access, backend.is_group)
    )


@_SETTINGS.add("POST", "/settings/reload", ConfigurationView, 409, 422, summary="Read the configuration file again")
def reload_settings(backend: Backend, caller: Caller) -> ConfigurationView:
    """Read the file that HOLDFAST_ARMADA_CONFIG names again; an invalid file changes nothing."""
    operations = SettingsOperations(backend.store)
    configured, changed = operations.reload(caller, backend.reload)
    retries = configured.retries
    return ConfigurationView(
        file=configured.file,
        changed=changed,
        enabled=None if retries is None else retries.enabled,
        global_max_retries=None if retries is None else retries.global_max_retries,
        default_policy_name=None if retries is None else retries.default_policy,
        categories=[category.name for category in configured.categories],
        warnings=list(map(problem_entry, operations.warnings(caller, Access(), backend.is_group))),
    )
