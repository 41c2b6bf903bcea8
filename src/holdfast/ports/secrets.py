"""Where the values of secret variables are: specifications only name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LARGEST_SECRET = 65_536
"""Bytes."""


class Secrets(Protocol):
    """Secrets by name: those that somebody put there, and those that were sent along with jobs."""

    def keep(self, value: str, uid: int | None = None) -> str:
        """Keep a secret for jobs that an account is about to submit; returns the name it was given.

        Raises:
            Unavailable: It cannot be written.
        """
        ...

    def known(self, names: Iterable[str]) -> frozenset[str]:
        """Return those that are there; they are then as fresh as when they were kept."""
        ...

    def value(self, name: str, uid: int | None = None) -> str | None:
        """Read one; ``None`` if it is not there, or cannot be read, or not by the account whose number is given."""
        ...

    def kept(self, *, before: float) -> Collection[str]:
        """Name those that were sent along, and were fresh before that time for the last time."""
        ...

    def discard(self, name: str) -> None:
        """Delete one; one that is gone is fine.

        Raises:
            Unavailable: It cannot be deleted.
        """
        ...
