"""What operators write for sessions besides queues: domains, resource groups, images and keypairs."""

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


DEFAULT_GROUP = "default"
"""The resource group of sessions that name none."""


class ResourceGroup(Struct, frozen=True):
    """A named set of nodes."""

    name: str
    description: str = ""
    active: bool = True
    """Whether it accepts sessions."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """The labels of its nodes; without any it has all nodes."""


class Image(Struct, frozen=True):
    """What programs of sessions run in; for local processes variables and a command around theirs."""

    name: str
    reference: str
    """Its canonical name, such as ``python:3.11-ubuntu22.04``."""
    architecture: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    """The words before a program's own, such as ``apptainer exec python.sif``."""


DEFAULT_IMAGE = Image("default", "local/process:latest")
"""The image of plain local processes."""


class KeyPair(Struct, frozen=True):
    """The access key by which a user signs calls; its secret is made from it, and stored nowhere."""

    name: str
    """The access key."""
    owner: str
    """The user whose calls it signs."""
    admin: bool = False
    """Whether its calls have all rights of their owner, also those of more than the role ``user``."""
    active: bool = True
    description: str = ""
    created_at: float = 0.0
