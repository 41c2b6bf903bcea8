"""What commands of Armada's users get: a message of the door, or a failure with its sentence."""

from __future__ import annotations

from typing import Any, TypeAlias

Told: TypeAlias = Any
"""A message that the door sends: the method that is called says of which kind."""


class Failed(Exception):
    """A command could not do what it was asked."""

    def __init__(self, message: str, *more: str) -> None:
        """Remember the sentence, and the lines that follow it."""
        super().__init__(message)
        self.message, self.more = message, more
