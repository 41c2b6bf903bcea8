"""A reader of logs that does not know when anything was written, and has no results."""

from __future__ import annotations

from holdfast.ports.logs import LogTimes


class Untimed:
    """For readers that only read."""

    def result(self, *_: object, **__: object) -> bytes | None:
        """Have none."""
        return None

    def times(self, *_: object, **__: object) -> LogTimes:
        """Know nothing."""
        return LogTimes()
