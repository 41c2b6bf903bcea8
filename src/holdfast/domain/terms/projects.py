"""What operators write about sessions besides queues, which are their projects."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from typing import Any

from holdfast.domain.record import Struct, field

DEFAULT_DOMAIN = "default"
"""The domain of queues that name none."""


class Domain(Struct, frozen=True):
    """A group of queues with common defaults."""

    name: str
    description: str = ""
    active: bool = True
    """Whether its queues accept sessions."""
    session_retry: Mapping[str, Any] = field(default_factory=dict)
    """The fields that it sets of its sessions' retry policy, as they were written."""
