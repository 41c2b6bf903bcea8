"""What is done before a run's own program is started, each time anew."""

from __future__ import annotations

from holdfast.domain.record import Struct

DEFAULT_TIMEOUT_S = 600.0


class Preparation(Struct, frozen=True):
    """A program that makes ready what the run's own one needs: that is started when this has ended with code 0.

    Otherwise the run could not be launched, whatever its own program would have done.
    """

    command: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    """How long it may take."""
