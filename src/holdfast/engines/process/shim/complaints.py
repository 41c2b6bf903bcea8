"""Writes to the shim's log, on stderr; a disk that refuses it stops nobody."""

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
    """Write the traceback of the present exception."""
    complain(traceback.format_exc())


class Complaint:
    """One lasting fault: logged when it begins and when it is over, however often it recurs meanwhile."""

    def __init__(self, over: str) -> None:
        """Begin without a fault; ``over`` is logged at its end."""
        self._over, self._is_said = over, False

    def begins(self, what: str) -> None:
        """Log the fault, unless that was done."""
        if not self._is_said:
            complain(what)
        self._is_said = True

    def ends(self) -> None:
        """Log that the fault is over, if there was one."""
        if self._is_said:
            complain(self._over)
        self._is_said = False
