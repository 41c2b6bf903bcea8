"""How long a run has been silent: its output, its progress file and its GPUs, each against its job's limit."""

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
"""Longest time between looks, in seconds: a run is ended at most that much after its limit."""
MOST_STEP_S = 5.0
"""The most silence that counts between two looks: while the machine stood still the run could not speak."""
_LIBRARY = "libnvidia-ml.so.1"
BUSY_PERCENT = 1
"""Percent of the driver's last sample period, up to a second, with a kernel on the GPU; less is idle."""


class _Watched:
    """One thing that must change now and then."""

    __slots__ = ("limit_s", "read", "seen", "silent_s", "words")

    def __init__(self, limit_s: float, words: str, read: Callable[[], object]) -> None:
        self.limit_s = limit_s
        self.words = words
        self.read = read
        self.seen = read()
        self.silent_s = 0.0


class Silence:
    """What is watched of a run, and since when it has not changed."""

    def __init__(self) -> None:
        self.due = float("inf")
        """When to look next, by the monotonic clock."""
        self._watched: list[_Watched] = []
        self._looked_at = 0.0
        self._dump: StackDump | None = None
        """The stack dump of a stalled run that is about to be ended."""

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
        """Stop watching: the run has ended or is about to."""
        self._watched, self._dump = [], None
        self.due = float("inf")

    def look(self, program: SupervisedRun, now: float) -> str:
        """Look; returns the message about a run that is to be ended for its silence, otherwise an empty text.

        Before such a run is ended, its stacks are written down.
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
        """Measure the silence; time in which its first process is suspended does not count."""
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
    """Return a number that grows with every byte of output; cutting off a log's beginning does not change its size."""
    return [files.mark(program.path(name))[1] for name in program.logs]


def _progress(program: SupervisedRun) -> object:
    return files.last_line(program.path(PROGRESS))


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Devices:
    """The GPUs of a run, read with NVIDIA's management library (NVML).

    The value changes with each look that finds one of them busy or cannot tell.
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
