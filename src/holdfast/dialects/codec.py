"""Canonical JSON of catalogue entries, for storing them; equal values give equal text."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from holdfast.dialects.native.catalogue import read_queue_manifest, read_settings, write_queue, write_settings
from holdfast.dialects.native.category import read_category_manifest, write_category
from holdfast.dialects.native.policy import read_policy
from holdfast.dialects.native.writing import write_policy
from holdfast.errors import Internal

if TYPE_CHECKING:
    from holdfast.domain.category import FailureCategory
    from holdfast.domain.job import Queue
    from holdfast.domain.policy.model import RetryPolicy, RetrySettings
    from holdfast.errors import Problem

T = TypeVar("T")
_CACHED = 16_384


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def dump_policy(policy: RetryPolicy) -> str:
    """Write a policy with its name, without its revision, as canonical JSON."""
    return _compact({"name": policy.name, **write_policy(policy)})


@lru_cache(maxsize=_CACHED)
def load_policy(text: str) -> RetryPolicy:
    """Read a policy written by ``dump_policy``; its revision is 1."""
    problems: list[Problem] = []
    return _sound(read_policy(json.loads(text), path="", name=None, problems=problems), problems)


def dump_queue(queue: Queue) -> str:
    """Write a queue as canonical JSON."""
    return _compact({"metadata": {"name": queue.name}, "spec": write_queue(queue)})


def load_queue(text: str) -> Queue:
    """Read a queue written by ``dump_queue``."""
    problems: list[Problem] = []
    return _sound(read_queue_manifest(json.loads(text), path="", problems=problems), problems)


def dump_category(category: FailureCategory) -> str:
    """Write a failure category as canonical JSON."""
    return _compact({"metadata": {"name": category.name}, "spec": write_category(category)})


def load_category(text: str) -> FailureCategory:
    """Read a failure category written by ``dump_category``."""
    problems: list[Problem] = []
    return _sound(read_category_manifest(json.loads(text), path="", problems=problems), problems)


def dump_settings(settings: RetrySettings, default_policy: str | None) -> str:
    """Write the operator's settings as canonical JSON."""
    return _compact(write_settings(settings, default_policy))


def load_settings(text: str) -> tuple[RetrySettings, str | None]:
    """Read settings written by ``dump_settings``."""
    return read_settings(json.loads(text))


def _sound(value: T | None, problems: list[Problem]) -> T:
    if value is None:
        msg = "a stored record cannot be read"
        raise Internal(msg, problems=problems)
    return value
