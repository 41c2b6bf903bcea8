"""Finds NVIDIA's GPUs by the driver's management library (NVML), and reads their state."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.devices import Device
from holdfast.engines.devices.visible import NVIDIA
from holdfast.engines.devices.watch import DeviceReading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

_LIBRARY = "libnvidia-ml.so.1"
_LOST = "it has fallen off the bus"
"""NVML: "the GPU has fallen off the bus or has otherwise become inaccessible" (``NVML_ERROR_GPU_IS_LOST``)."""


def found_by_nvml() -> Sequence[Device]:
    """List NVIDIA's GPUs; none if there is no driver or it does not answer."""
    nvml = _library()
    if nvml is None:
        return ()
    try:
        nvml.nvmlInit()
        try:
            return [_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError:
        return ()


def has_driver() -> bool:
    """Whether this machine has NVIDIA's driver."""
    return _library() is not None


class NvmlLook:
    """Reads the state of devices in a session with the driver that stays open: opening one may take seconds."""

    def __init__(self, devices: Sequence[Device]) -> None:
        """Remember the devices; the first call opens the session."""
        self._ids = [device.id for device in devices]
        self._open = False

    def __call__(self) -> Mapping[str, DeviceReading]:
        """Return a reading per device that the driver knows; none if it does not answer."""
        nvml = _library()
        if nvml is None:
            return {}
        try:
            if not self._open:
                nvml.nvmlInit()
                self._open = True
            return {name: seen for name in self._ids if (seen := _seen(nvml, name)) is not None}
        except nvml.NVMLError:
            self._open = False
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
            return {}


def _seen(nvml: ModuleType, name: str) -> DeviceReading | None:
    """Read one device; errors that concern it alone become its health."""
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(name)
    except nvml.NVMLError_NotFound:
        return None
    except nvml.NVMLError_GpuIsLost:
        return DeviceReading(_LOST)
    try:
        return DeviceReading(pids=tuple(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)))
    except nvml.NVMLError_GpuIsLost:
        return DeviceReading(_LOST)
    except nvml.NVMLError:
        return DeviceReading()  # Some GPUs do not report this, and others not to everybody.


def _library() -> ModuleType | None:
    """Return NVML if the machine has it."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    import pynvml  # noqa: PLC0415 - start-up time: few machines have the driver

    library: ModuleType = pynvml
    return library


def _device(nvml: ModuleType, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    try:
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        memory = 0  # Some GPUs have no UUID of their own.
    try:
        bus = str(nvml.nvmlDeviceGetPciInfo(handle).busId)
    except nvml.NVMLError:
        bus = ""
    uuid, name = str(nvml.nvmlDeviceGetUUID(handle)), str(nvml.nvmlDeviceGetName(handle))
    return Device(uuid, index, name, memory, NVIDIA, bus=bus)
