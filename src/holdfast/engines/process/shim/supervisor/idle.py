"""Whether the GPUs of a run do anything, as NVIDIA's management library (NVML) says; only runs that ask for it pay."""

from __future__ import annotations

import ctypes

_LIBRARY = "libnvidia-ml.so.1"
BUSY_PERCENT = 1
"""Of the driver's last sample period, up to a second, with a kernel running on the GPU; less is idle."""


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Devices:
    """The GPUs of a run; its value changes with each look that finds one of them busy, or cannot tell."""

    def __init__(self, names: list[str]) -> None:
        """Open a session with the driver, if there is one."""
        self._busy = 0
        self._names = [name.encode() for name in names]
        try:
            self._nvml = ctypes.CDLL(_LIBRARY) if names else None
        except OSError:
            self._nvml = None
        if self._nvml is not None and self._nvml.nvmlInit_v2() != 0:
            self._nvml = None

    def __call__(self) -> int:
        """Look once."""
        if self._nvml is None or any(map(self._is_busy, self._names)):
            self._busy += 1
        return self._busy

    def _is_busy(self, name: bytes) -> bool:
        handle, utilisation = ctypes.c_void_p(), _Utilisation()
        library = self._nvml
        if library is None or library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)) != 0:
            return True
        failed = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(utilisation)) != 0
        return bool(failed or utilisation.gpu >= BUSY_PERCENT)
