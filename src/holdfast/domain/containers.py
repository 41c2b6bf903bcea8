"""The containers, ports and volumes of a run, and the capabilities an engine needs for them."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks fields' types up
from enum import StrEnum
from typing import Any

from holdfast.domain.record import Struct, field


class Capability(StrEnum):
    """What an engine can do beyond running one program in a place the controller chose."""

    IMAGES = "images"
    """Runs programs in images; other engines run the command directly on the machine."""
    VOLUMES = "volumes"
    """Mounts volumes; without it, programs see the machine's own files."""
    CONTAINERS = "containers"
    """Runs several containers together, sidecars among them."""
    INIT_CONTAINERS = "init-containers"
    """Runs init containers, one after the other, before the main ones."""
    DEVICES = "devices"
    """Assigns devices other than GPUs, by the names of their resources."""
    PREPARING = "preparing"
    """Prepares a run (pulls images, creates volumes) before starting it, and reports the progress."""
    PLACEMENT = "placement"
    """Chooses nodes itself: it offers one place, and reports on which node a run was placed."""


class EngineInfo(Struct, frozen=True):
    """What an engine reports about itself before it gets any work."""

    name: str = ""
    """The name of its kind: ``process``."""
    capabilities: frozenset[Capability] = frozenset()
    offers: frozenset[str] = frozenset()
    """Names of further resources of its nodes or of the whole cluster; used when work is admitted."""


UNKNOWN = EngineInfo()
LOCAL = EngineInfo("process")
"""The engine assumed if no other is known: local processes."""


class ContainerRole(StrEnum):
    """What a container is for."""

    INIT = "init"
    """Ends before the next begins, and before the main ones do."""
    MAIN = "main"
    """The run is over when all of these are."""
    SIDECAR = "sidecar"
    """Started before the main ones, restarted whenever it ends, stopped after them; how it ends does not matter."""


class Port(Struct, frozen=True):
    """A port a container listens on."""

    number: int
    name: str = ""
    protocol: str = "TCP"


class Mount(Struct, frozen=True):
    """A volume in a container."""

    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


class Volume(Struct, frozen=True):
    """A volume of a run."""

    name: str
    source: Mapping[str, Any] = field(default_factory=dict)
    """As in the manifest, keyed by its kind: ``{"emptyDir": {}}``."""
