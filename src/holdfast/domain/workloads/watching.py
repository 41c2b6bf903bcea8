"""What is watched during a run: whether it prints or does anything, and how much time it has left."""

from __future__ import annotations

import signal

from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration


class StallLimits(Struct, frozen=True):
    """How long a run may be silent before it counts as stalled, in seconds; ``None`` is forever."""

    no_output_s: float | None = None
    """Without a byte on stdout and stderr."""
    no_progress_s: float | None = None
    """Without a change of what its progress file says."""
    idle_device_s: float | None = None
    """Without work on any of its GPUs."""

    def in_words(self) -> dict[str, tuple[float, str]]:
        """Return each limit that is set, by what is watched, with what is said of a run that exceeds it."""
        limits = {}
        if self.no_output_s is not None:
            limits["output"] = (self.no_output_s, f"no output for {format_duration(self.no_output_s)}")
        if self.no_progress_s is not None:
            limits["progress"] = (self.no_progress_s, f"no progress for {format_duration(self.no_progress_s)}")
        if self.idle_device_s is not None:
            limits["device"] = (self.idle_device_s, f"GPUs idle for {format_duration(self.idle_device_s)}")
        return limits


DEFAULT_SIGNAL = "TERM"
"""Not USR1, which NCCL takes for itself."""
CHECKPOINTED = 85
"""The exit code of a run that has saved what it has and is to be run again, of jobs that ask for a warning."""


class EarlyWarning(Struct, frozen=True):
    """A warning before the end."""

    before_s: float
    """How long before SIGTERM."""
    signal: str = DEFAULT_SIGNAL
    """Its name without ``SIG``; only processes that handle it are sent it."""

    @property
    def number(self) -> int:
        """Return the signal's number."""
        return int(signal.Signals[f"SIG{self.signal}"])
