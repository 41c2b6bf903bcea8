"""Storage for the values of secret variables, which specifications only name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LARGEST_SECRET = 65_536
"""Bytes."""


class SecretUser(Struct, frozen=True):
    """The submitter and the queue of a job that uses secrets."""

    name: str = ""
    """The submitter; empty if unknown, as for the server's own work."""
    uid: int | None = None
    """The uid of the submitter's Unix account, if there is one."""
    queue: str = ""


NOBODY = SecretUser()


class Secrets(Protocol):
    """Secrets by name: those that operators put there, and those that were sent with jobs."""

    def keep(self, value: str, owner: SecretUser = NOBODY) -> str:
        """Store a secret for jobs that a user is about to submit, and for no other user's; returns its name.

        Raises:
            Unavailable: It cannot be written.
        """

    def refresh(self, names: Iterable[str]) -> frozenset[str]:
        """Return the secrets that exist, and renew their time."""

    def opens(self, name: str, user: SecretUser) -> bool:
        """Whether an existing secret may be used by a user, or by their queue."""

    def value(self, name: str, user: SecretUser = NOBODY) -> str | None:
        """Read a secret; ``None`` if it does not exist, cannot be read, or belongs to another user by now."""

    def kept(self, *, before: float) -> Collection[str]:
        """List the secrets sent with jobs that were last renewed before a time."""

    def discard(self, name: str) -> None:
        """Delete a secret, if it exists.

        Raises:
            Unavailable: It cannot be deleted.
        """
