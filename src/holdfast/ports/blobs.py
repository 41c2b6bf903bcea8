"""Where what is sent along with jobs is kept: by whom it was sent, under the hash of what it is."""

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
    """Files by their SHA-256, each person's apart: to know a hash opens nothing of anybody else's."""

    def keep(self, data: bytes, owner: SecretUser) -> str:
        """Keep something, unless its owner has it here already; returns its name. It is on the disk then.

        Raises:
            Refused: There is no room among all that is kept.
            Unavailable: It cannot be written.
        """

    def refresh(self, names: Iterable[str], owner: SecretUser) -> frozenset[str]:
        """Return those that somebody has here; they are then as fresh as when they were kept."""

    def path(self, name: str, owner: SecretUser) -> Path:
        """Return where one is, if it is there."""

    def kept(self, *, before: float) -> Collection[str]:
        """Name those that were fresh before that time for the last time."""

    def discard(self, names: Collection[str], *, before: float) -> None:
        """Delete those that have not been fresh since that time, whosever they are.

        Raises:
            Unavailable: One cannot be deleted.
        """
