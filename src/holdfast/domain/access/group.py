"""Groups: free text that people and doors put on what they submit, to find, follow and steer it together.

Groups nest by ``/``: ``sweeps/7`` is below ``sweeps``.
"""

from __future__ import annotations

from holdfast.domain.record import Struct

LONGEST = 1023
"""Characters."""
BELOW = "/"


class Grouped(Struct, frozen=True):
    """Which groups are meant."""

    name: str
    below: bool = False
    """Also those below it."""

    @classmethod
    def read(cls, text: str) -> Grouped:
        """Return what a person means: a group, or with a slash at its end also those below it."""
        return cls(text.removesuffix(BELOW), below=True) if text.endswith(BELOW) else cls(text)

    @property
    def begins(self) -> str:
        """What the names of those below begin with."""
        return self.name + BELOW

    @property
    def beyond(self) -> str:
        """The first text after all that begin so, byte by byte."""
        return self.name + chr(ord(BELOW) + 1)

    def holds(self, group: str) -> bool:
        """Whether a group is among them."""
        return group == self.name or (self.below and group.startswith(self.begins))
