"""GPUs, one by one: what they are, and which of them a run will take."""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.domain.record import Struct
from holdfast.domain.units import format_memory

WHOLE_M = 1000
"""All of a device."""
MAKERS = ("nvidia", "amd")
"""Whose devices are told apart; the names of their models begin with theirs."""


class DeviceCordon(Struct, frozen=True):
    """Why a device is cordoned until an operator lifts that."""

    reason: str
    at: float
    job: str = ""
    """The name of the job whose run told of it; empty where a person decided."""
    by: str = ""
    """Who decided, if a person did."""

    def __str__(self) -> str:
        """Say why, and who says so."""
        return f"{self.reason} (job {self.job})" if self.job else self.reason or f"by {self.by}"


class Device(Struct, frozen=True):
    """One GPU of a node, as its executor sees it."""

    id: str
    """Unique on its node: its UUID where it has one, else ``gpu-<index>``."""
    index: int
    """Among the devices of the machine, in the order of the bus."""
    type: str = ""
    """The name of its model: ``NVIDIA A100-SXM4-80GB``."""
    memory: int = 0
    """Bytes; 0 where it is not known."""
    maker: str = ""
    """One of ``MAKERS``, or empty where it is not known."""
    health: str = ""
    """What is wrong with it, if anything; it is given to nobody then."""
    used_by: str = ""
    """Which programs that Holdfast did not start use it, if any; it is given to nobody then."""
    bus: str = ""
    """Where it is on the PCI bus, ``00000000:3B:00.0``, if that is known; errors of the driver name it by that."""
    cordon: DeviceCordon | None = None
    """Set by the controller, not by executors."""

    @property
    def trouble(self) -> str:
        """Why it is given to nobody, if so."""
        if self.cordon is not None:
            return f"cordoned: {self.cordon}"
        return self.health or (f"used by {self.used_by}" if self.used_by else "")


class GpuSelector(Struct, frozen=True):
    """Which devices are suitable."""

    type: str = ""
    """A pattern of the name of the model, with ``*`` and ``?``, whatever its case and with or without the maker."""
    memory: int = 0
    """Bytes it must have at least."""

    def admits(self, device: Device) -> bool:
        """Whether a device is one of those."""
        return device.memory >= self.memory and (not self.type or is_of_type(device, self.type))

    def __str__(self) -> str:
        """Say it the way it follows ``1 gpu``."""
        of = f" of type {self.type}" if self.type else ""
        return f"{of} with {format_memory(self.memory)}" if self.memory else of


ANY = GpuSelector()


def is_of_type(device: Device, pattern: str) -> bool:
    """Whether the name of a device's model matches a pattern."""
    type_pattern = _compiled(pattern)
    maker, _, model = device.type.partition(" ")
    return type_pattern.fullmatch(device.type) is not None or (
        maker.lower() in MAKERS and type_pattern.fullmatch(model) is not None
    )


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
