"""What Ctrl-C says while a command is in the middle of saying something else."""

from __future__ import annotations

import io
import signal
from typing import TYPE_CHECKING

from holdfast.cli.watching.interrupts import Interrupts

if TYPE_CHECKING:
    import pytest


class Interrupted(io.RawIOBase):
    """A terminal at which somebody presses Ctrl-C just when the first line is written."""

    def __init__(self) -> None:
        """Press it once."""
        self.pressed = False
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # a buffer, of which only bytes() is asked
        if not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)
        self.written += bytes(data)
        return len(data)


def test_ctrl_c_while_a_line_is_written_is_answered_beside_it(capfd: pytest.CaptureFixture[str]) -> None:
    terminal = Interrupted()
    stderr = io.TextIOWrapper(io.BufferedWriter(terminal))  # type: ignore[type-var]  # as files do, it counts bytes

    def say(line: str) -> None:
        stderr.write(f"{line}\n")
        stderr.flush()

    with Interrupts(say, "the job") as interrupts:
        interrupts.submitted("job j1")
        say("job j1 is queued")
        assert not interrupts.wants_cancel()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.wants_cancel()
    assert terminal.written.decode().splitlines() == [
        "job j1 is queued",
        "cancelling job j1; press Ctrl-C once more to leave without waiting for its end",
    ]
    assert capfd.readouterr().err == "job j1 is still running; press Ctrl-C again to cancel it\n"
