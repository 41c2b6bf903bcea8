"""Tunes Python's garbage collector for a process that keeps many long-lived records.

Without this, a million waiting jobs would cost seconds at start-up and pauses afterwards.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_YOUNG = 20_000
"""New objects before a first look; a tick with thousands of records makes that many."""


@contextmanager
def loading() -> Iterator[None]:
    """Do not collect while a store is read into memory, and leave alone afterwards what was read."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG, 20, 50)
        if was_enabled:
            gc.enable()
