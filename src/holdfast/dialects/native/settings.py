"""Reads and writes the operator's global settings: retries and the limits of handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.handler_limits import FIELD, read_handler_limits, write_handler_limits
from holdfast.dialects.native.policy import HIGHEST_LIMIT, read_backoff
from holdfast.dialects.native.policy_text import write_backoff
from holdfast.dialects.reading import Fields
from holdfast.domain.policy.model import RetrySettings
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_settings(value: Mapping[str, Any]) -> tuple[RetrySettings, str | None]:
    """Read the settings and the name of the default policy; what is left out has its default.

    Raises:
        InvalidRequest: With every problem found.
    """
    problems: list[Problem] = []
    fields = Fields(value, "", problems)
    limit = fields.integer("globalMaxRetries", low=0, high=HIGHEST_LIMIT)
    backoff = read_backoff(fields, "defaultBackoff")
    policy = fields.name("defaultPolicyName")
    handler_limits = read_handler_limits(fields)
    fields.finish()
    if problems:
        msg = "the settings are not valid"
        raise InvalidRequest(msg, problems=problems)
    default_backoff = RetrySettings().default_backoff if backoff is None else backoff
    return RetrySettings(limit, default_backoff, handler_limits), policy


def write_settings(settings: RetrySettings, default_policy: str | None) -> dict[str, Any]:
    """Write the settings in full; they read back equal."""
    return {
        "globalMaxRetries": settings.global_max_retries,
        "defaultBackoff": write_backoff(settings.default_backoff),
        "defaultPolicyName": default_policy,
        FIELD: write_handler_limits(settings.handler_limits),
    }
