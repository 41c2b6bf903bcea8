"""Storage for files that are sent with jobs, by sender and hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from holdfast.ports.secrets import SecretUser

LARGEST_BLOB = 64 << 20
"""Bytes."""
MOST_BLOBS = 4 << 30
"""Bytes of all of them."""


class Blobs(Protocol):
    """Files by their SHA-256, separately for each user: knowing a hash gives no access to another user's file."""

    def keep(self, data: bytes, owner: SecretUser) -> str:
        """Store a file durably, unless its owner already has it here; returns its name.

        Raises:
            Refused: The storage is full.
            Unavailable: It cannot be written.
        """

    def refresh(self, names: Iterable[str], owner: SecretUser) -> frozenset[str]:
        """Return the files that a user has here, and renew their time."""

    def path(self, name: str, owner: SecretUser) -> Path:
        """Return the path of a file, whether or not it exists."""

    def kept(self, *, before: float) -> Collection[str]:
        """List the files that were last renewed before a time."""

    def discard(self, names: Collection[str], *, before: float) -> None:
        """Delete the files, of all users, that have not been renewed since a time.

        Raises:
            Unavailable: One cannot be deleted.
        """
