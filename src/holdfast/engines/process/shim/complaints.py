"""Writes into the shim's log, on standard error; a disk that does not take it keeps nobody from going on."""

from __future__ import annotations

import os
import traceback


def complain(what: str) -> None:
    """Write a line."""
    try:
        os.write(2, f"{what}\n".encode(errors="backslashreplace"))
    except OSError:
        return


def complain_of_exception() -> None:
    """Write the traceback of what is being handled."""
    complain(traceback.format_exc())


class Complaint:
    """One thing that goes wrong for a while: said when it begins and when it is over, however often it is tried."""

    def __init__(self, over: str) -> None:
        """Begin with nothing wrong; ``over`` is said at the end."""
        self._over, self._is_said = over, False

    def begins(self, what: str) -> None:
        """Say what goes wrong, unless that was said."""
        if not self._is_said:
            complain(what)
        self._is_said = True

    def ends(self) -> None:
        """Say that it is over, if it had begun."""
        if self._is_said:
            complain(self._over)
        self._is_said = False
