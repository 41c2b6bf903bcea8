"""A reader of logs that does not know when anything was written."""

from __future__ import annotations

from holdfast.ports.logs import LogTimes


class Untimed:
    """For readers that only read."""

    def times(self, *_: object, **__: object) -> LogTimes:
        """Know nothing."""
        return LogTimes()
