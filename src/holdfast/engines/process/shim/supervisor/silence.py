"""How long a run has been silent: its output, its progress file and its GPUs, each against the limit its job sets."""

from __future__ import annotations

import ctypes

from .. import files, processes
from ..account import acting
from ..records import PROGRESS
from .stacks import StackDump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..records import SupervisedRun

EVERY_S = 1.0
"""How far apart looks are at most: a run is ended at most so much later than its limit."""
MOST_STEP_S = 5.0
"""What counts as silence at most between two looks: a machine that stood still did not let the run speak, either."""
_LIBRARY = "libnvidia-ml.so.1"
BUSY_PERCENT = 1
"""Of the driver's last sample period, up to a second, with a kernel running on the GPU; less is idle."""


class _Watched:
    """One thing that has to change now and then."""

    __slots__ = ("limit_s", "read", "seen", "silent_s", "words")

    def __init__(self, limit_s: float, words: str, read: Callable[[], object]) -> None:
        self.limit_s = limit_s
        self.words = words
        self.read = read
        self.seen = read()
        self.silent_s = 0.0


class Silence:
    """What is watched of one run, and for how long it has been as it is."""

    def __init__(self) -> None:
        """Begin with nothing to watch."""
        self.due = float("inf")
        """When to look next, on the monotonic clock."""
        self._watched: list[_Watched] = []
        self._looked_at = 0.0
        self._dump: StackDump | None = None
        """What is being written down of a run that stalled, before it is ended."""

    def begin(self, program: SupervisedRun, now: float) -> None:
        """Watch another run from now on, if its job asks for it."""
        limits: dict[str, tuple[float, str]] = program.order.get("stall") or {}
        readers: dict[str, Callable[[], object]] = {
            "output": lambda: _written(program),
            "progress": lambda: _progress(program),
        }
        if "device" in limits:
            readers["device"] = Devices(program.order["gpus"])
        self._watched = [_Watched(*limits[name], read) for name, read in readers.items() if name in limits]
        self._looked_at = now
        self._plan(now)

    def end(self) -> None:
        """Watch it no more: it has ended, or is to."""
        self._watched, self._dump = [], None
        self.due = float("inf")

    def look(self, program: SupervisedRun, now: float) -> str:
        """Look; returns what to say of a run that is to be ended for its silence, else nothing.

        A run that has been silent for too long is ended once it is written down where it is.
        """
        if self._dump is None:
            why = self._exceeded(program, now)
            if why:
                self._dump = StackDump(program, why, now)
        if self._dump is None:
            self._plan(now)
        elif self._dump.is_done(now):
            return self._dump.summary()
        else:
            self.due = self._dump.due
        return ""

    def _exceeded(self, program: SupervisedRun, now: float) -> str:
        """Count the silence; while its first process is suspended it does not count, as it could not say anything."""
        step_s = min(now - self._looked_at, MOST_STEP_S)
        self._looked_at = now
        suspended = processes.is_suspended(program.pid)
        with acting(program.account):
            readings = [limit.read() for limit in self._watched]
        for limit, seen in zip(self._watched, readings, strict=True):
            if seen != limit.seen:
                limit.seen, limit.silent_s = seen, 0.0
            elif not suspended:
                limit.silent_s += step_s
            if limit.silent_s >= limit.limit_s:
                return limit.words
        return ""

    def _plan(self, now: float) -> None:
        left = [limit.limit_s - limit.silent_s for limit in self._watched]
        self.due = now + min(EVERY_S, *left) if left else float("inf")


def _written(program: SupervisedRun) -> object:
    """Return what grows with every byte of output; what is cut off the beginning of a log leaves its size alone."""
    return [files.mark(program.path(name))[1] for name in program.logs]


def _progress(program: SupervisedRun) -> object:
    return files.last_line(program.path(PROGRESS))


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Devices:
    """The GPUs of a run, as NVIDIA's management library (NVML) sees them.

    Its value changes with each look that finds one of them busy, or cannot tell.
    """

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
