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
