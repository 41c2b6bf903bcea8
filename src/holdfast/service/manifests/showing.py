"""Writes what operators keep as its manifest says it, for whoever shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from holdfast.dialects.manifests import manifest_warnings
from holdfast.dialects.native import catalogue
from holdfast.dialects.native.category import write_category
from holdfast.dialects.native.notify import write_notifier
from holdfast.dialects.native.writing import write_policy
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy

if TYPE_CHECKING:
    from holdfast.domain.access.grants import Access
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.errors import Problem


def spec_of(thing: RetryPolicy | Queue | FailureCategory | Notifier) -> dict[str, Any]:
    """Return the fields of ``spec``."""
    match thing:
        case RetryPolicy():
            return write_policy(thing)
        case Queue():
            return catalogue.write_queue(thing)
        case FailureCategory():
            return write_category(thing)
        case Notifier():
            return write_notifier(thing)
        case _:
            assert_never(thing)


def warnings_of(thing: FailureCategory) -> tuple[Problem, ...]:
    """Say what is dubious in it."""
    return manifest_warnings(thing)


def settings_of(settings: RetrySettings, default_policy: str | None, access: Access) -> dict[str, Any]:
    """Return the fields of the operator's settings."""
    return catalogue.write_settings(settings, default_policy, access)
