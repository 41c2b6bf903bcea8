"""Writes what operators keep as its manifest says it, for whoever shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.manifests import format_of
from holdfast.dialects.native import catalogue
from holdfast.ports.entries import kind_of_entry

if TYPE_CHECKING:
    from holdfast.domain.access.grants import Access
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.ports.entries import Entry


def spec_of(entry: Entry) -> dict[str, Any]:
    """Return the fields of ``spec``."""
    return format_of(kind_of_entry(entry).info).write(entry)


def settings_of(settings: RetrySettings, default_policy: str | None, access: Access) -> dict[str, Any]:
    """Return the fields of the operator's settings."""
    return catalogue.write_settings(settings, default_policy, access)
