"""Groups: free text attached to submitted work, to find, follow and control it together.

Groups nest by ``/``: ``sweeps/7`` is below ``sweeps``.
"""

from __future__ import annotations

from holdfast.domain.record import Struct

LONGEST = 1023
"""Characters."""
BELOW = "/"


class Grouped(Struct, frozen=True):
    """Selects groups."""

    name: str
    below: bool = False
    """Whether groups below it are included."""

    @classmethod
    def read(cls, text: str) -> Grouped:
        """Parse a group; a slash at the end includes the groups below it."""
        return cls(text.removesuffix(BELOW), below=True) if text.endswith(BELOW) else cls(text)

    @property
    def begins(self) -> str:
        """The prefix of the names of groups below."""
        return self.name + BELOW

    @property
    def beyond(self) -> str:
        """The first text that sorts after every text with that prefix, byte by byte."""
        return self.name + chr(ord(BELOW) + 1)

    def holds(self, group: str) -> bool:
        """Whether a group is selected."""
        return group == self.name or (self.below and group.startswith(self.begins))
