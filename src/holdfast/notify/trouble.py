"""Why a try failed."""

from __future__ import annotations


class Undelivered(Exception):
    """A try failed; the message is for people, and holds no secret."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        """Remember what went wrong, and whether to try again would be of no use."""
        super().__init__(message)
        self.final = final
