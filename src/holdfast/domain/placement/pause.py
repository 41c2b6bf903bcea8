"""A pause of the whole server: nothing is started, while what runs goes on."""

from __future__ import annotations

from holdfast.domain.record import Struct


class Pause(Struct, frozen=True):
    """Since when nothing is started, and why."""

    since: float
    reason: str
    """For people, as ``the database was restored from friday.db``."""

    def in_words(self) -> str:
        """Say so, and what ends it."""
        return f"nothing is started until `holdfast db resume`: {self.reason}"
