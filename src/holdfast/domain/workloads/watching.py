"""What is watched during a run: stalls, and the warning ahead of its end."""

from __future__ import annotations

import signal

from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration


class StallLimits(Struct, frozen=True):
    """How long a run may be silent before it counts as stalled, in seconds; ``None`` is no limit."""

    no_output_s: float | None = None
    """Without output on stdout and stderr."""
    no_progress_s: float | None = None
    """Without a change of its progress file."""
    idle_device_s: float | None = None
    """Without work on any of its GPUs."""

    def in_words(self) -> dict[str, tuple[float, str]]:
        """Return each limit that is set, by what is watched, with the message for a run that exceeds it."""
        limits = {}
        if self.no_output_s is not None:
            limits["output"] = (self.no_output_s, f"no output for {format_duration(self.no_output_s)}")
        if self.no_progress_s is not None:
            limits["progress"] = (self.no_progress_s, f"no progress for {format_duration(self.no_progress_s)}")
        if self.idle_device_s is not None:
            limits["device"] = (self.idle_device_s, f"GPUs idle for {format_duration(self.idle_device_s)}")
        return limits


DEFAULT_SIGNAL = "TERM"
"""Not USR1, which NCCL uses itself."""
CHECKPOINTED = 85
"""The default exit code of a run that has saved its work and is to run again, for jobs with an early warning."""


class EarlyWarning(Struct, frozen=True):
    """A signal that warns a run of its end."""

    before_s: float
    """How long before SIGTERM."""
    signal: str = DEFAULT_SIGNAL
    """Its name without ``SIG``; only processes that handle it get it."""

    @property
    def number(self) -> int:
        """The signal's number."""
        return int(signal.Signals[f"SIG{self.signal}"])
