"""Finds the GPUs of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.devices import Device
from holdfast.engines.devices.nvml import found_by_nvml
from holdfast.engines.devices.rocm import found_by_rocm

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_devices() -> Sequence[Device]:
    """Find the GPUs of this machine: NVIDIA's, then AMD's."""
    return [*found_by_nvml(), *found_by_rocm()]


def numbered(count: int) -> Sequence[Device]:
    """Make so many devices that are known by their number alone."""
    return [Device(f"gpu-{index}", index) for index in range(count)]
