"""Reads the part of Armada's configuration that concerns retries and failures; the rest is ignored.

``scheduling.retryPolicy`` belongs to the scheduler, ``application.errorCategories`` to the executor; one file can have
both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.categories import MOST_CATEGORIES, ErrorCategories, read_error_categories
from holdfast.dialects.native.policy import HIGHEST_LIMIT, read_backoff
from holdfast.dialects.reading import Fields
from holdfast.domain.file_settings import FileRetries, FileSettings
from holdfast.domain.policy.model import Backoff
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

DEFAULT_MAX_RETRIES = 20
DEFAULT_BACKOFF = Backoff(initial_s=0.0, max_s=600.0, multiplier=2.0)
"""The defaults of the design document."""
_RETRIES, _CATEGORIES = "scheduling.retryPolicy", "application.errorCategories"


def read_configuration(value: Mapping[str, Any], *, file: str, problems: list[Problem]) -> FileSettings | None:
    """Read a configuration; ``None`` if anything is wrong.

    Args:
        value: The whole file.
        file: Its name.
        problems: Where to add problems.
    """
    before = len(problems)
    root = Fields(value, "", problems)
    scheduling, application = root.nested("scheduling"), root.nested("application")
    retries = scheduling.nested("retryPolicy") if scheduling is not None else None
    categories = application.nested("errorCategories") if application is not None else None
    if len(problems) == before and retries is None and categories is None:
        root.problem("", f"has neither {_RETRIES} nor {_CATEGORIES}", allowed=(_RETRIES, _CATEGORIES))
    read = None
    if categories is not None:
        read = read_error_categories(categories.value, path=categories.path, problems=problems)
    retry_settings = _read_retries(retries) if retries is not None else None
    if len(problems) > before:
        return None
    chosen = read if read is not None and read.enabled else ErrorCategories()
    first = tuple(
        evolve(category, precedence=place - MOST_CATEGORIES) for place, category in enumerate(chosen.categories)
    )
    return FileSettings(file, retry_settings, first, chosen.default_category, chosen.default_subcategory)


def _read_retries(fields: Fields) -> FileRetries:
    """Read ``retryPolicy``; without ``enabled`` it is off, as upstream."""
    limit = fields.integer("globalMaxRetries", low=0, high=HIGHEST_LIMIT)
    backoff = read_backoff(fields, "defaultBackoff")
    retries = FileRetries(
        fields.flag("enabled"),
        DEFAULT_MAX_RETRIES if limit is None else limit,
        DEFAULT_BACKOFF if backoff is None else backoff,
        fields.name("defaultPolicyName"),
    )
    fields.finish()
    return retries
