"""Text that is written as on a terminal, and drawn when it is complete."""

from __future__ import annotations

import io


class Sheet(io.StringIO):
    """A stream that says it is a terminal, so that whoever writes there uses its colours and its width."""

    def isatty(self) -> bool:
        """Say so."""
        return True

    @property
    def lines(self) -> list[str]:
        """What was written, line by line."""
        return self.getvalue().splitlines()
