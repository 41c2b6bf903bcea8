"""What a run is made of beyond one program, and what an engine must be able to do for it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks fields' types up
from enum import StrEnum
from typing import Any

from holdfast.domain.record import Struct, field


class Capability(StrEnum):
    """What an engine can do beyond running one program in a place the controller chose."""

    IMAGES = "images"
    """Runs programs in images; others run the command as it is, on the machine itself."""
    VOLUMES = "volumes"
    """Mounts volumes; elsewhere programs see the machine's own files."""
    CONTAINERS = "containers"
    """Runs several containers together, sidecars among them."""
    INIT_CONTAINERS = "init-containers"
    """Runs containers one after the other before the main ones."""
    DEVICES = "devices"
    """Hands out devices by the names of their resources, beside GPUs."""
    PREPARING = "preparing"
    """Prepares a run (pulls images, makes volumes) apart from starting it, and reports how far that is."""
    PLACEMENT = "placement"
    """Chooses the node itself: it offers one place, and reports where a run landed."""


class EngineInfo(Struct, frozen=True):
    """What is known about an engine before it is given any work."""

    name: str = ""
    """Of its kind: ``process``."""
    capabilities: frozenset[Capability] = frozenset()
    offers: frozenset[str] = frozenset()
    """Names of what else can be had there, of its nodes or of the whole cluster; known to those who admit work."""


UNKNOWN = EngineInfo()
LOCAL = EngineInfo("process")
"""What runs programs where nothing else is known to: local processes."""


class ContainerRole(StrEnum):
    """What a container is for."""

    INIT = "init"
    """Ends before the next begins, and before the main ones do."""
    MAIN = "main"
    """The run is over when all of these are."""
    SIDECAR = "sidecar"
    """Started before the main ones, restarted whenever it ends, stopped after them; its end decides nothing."""


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
    """As written, by its kind: ``{"emptyDir": {}}``."""
