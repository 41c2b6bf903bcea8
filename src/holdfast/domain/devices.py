"""GPUs as individual devices, and which of them suit a run."""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.domain.record import Struct
from holdfast.domain.units import format_memory

WHOLE_M = 1000
"""A whole device, in thousandths."""
MAKERS = ("nvidia", "amd")
"""Makers whose devices are recognised; their names begin the names of their models."""


class DeviceCordon(Struct, frozen=True):
    """Why a device is cordoned until an operator uncordons it."""

    reason: str
    at: float
    job: str = ""
    """The name of the job whose run showed the fault; empty if a person decided."""
    by: str = ""
    """The person who decided, if one did."""

    def __str__(self) -> str:
        return f"{self.reason} (job {self.job})" if self.job else self.reason or f"by {self.by}"


class Device(Struct, frozen=True):
    """One GPU of a node, as its executor reports it."""

    id: str
    """Unique on its node: its UUID if it has one, else ``gpu-<index>``."""
    index: int
    """Its index among the devices of the machine, in the order of the bus."""
    type: str = ""
    """The name of its model: ``NVIDIA A100-SXM4-80GB``."""
    memory: int = 0
    """Bytes; 0 if unknown."""
    maker: str = ""
    """One of ``MAKERS``, or empty if unknown."""
    health: str = ""
    """What is wrong with it, if anything; it is not assigned then."""
    used_by: str = ""
    """Foreign programs that use it, if any; it is not assigned then."""
    bus: str = ""
    """Its PCI address, ``00000000:3B:00.0``, if known; errors of the driver name it by this."""
    cordon: DeviceCordon | None = None
    """Set by the controller, not by executors."""

    @property
    def trouble(self) -> str:
        """Why it cannot be assigned; empty if it can."""
        if self.cordon is not None:
            return f"cordoned: {self.cordon}"
        return self.health or (f"used by {self.used_by}" if self.used_by else "")


class GpuSelector(Struct, frozen=True):
    """Selects suitable devices."""

    type: str = ""
    """A pattern of the model's name, with ``*`` and ``?``, ignoring case, with or without the maker."""
    memory: int = 0
    """Minimum memory in bytes."""

    def admits(self, device: Device) -> bool:
        """Whether a device is suitable."""
        return device.memory >= self.memory and (not self.type or is_of_type(device, self.type))

    def __str__(self) -> str:
        """Return the text that follows ``1 gpu``."""
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
