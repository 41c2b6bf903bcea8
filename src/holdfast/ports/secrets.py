"""Where the values of secret variables are: specifications only name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LARGEST_SECRET = 65_536
"""Bytes."""


class SecretUser(Struct, frozen=True):
    """Whose job is to be given secrets, and where it goes."""

    name: str = ""
    """Whose; empty where nobody is known, as of what the server itself runs."""
    uid: int | None = None
    """The number of that one's Unix account, where there is one."""
    queue: str = ""


NOBODY = SecretUser()


class Secrets(Protocol):
    """Secrets by name: those that somebody put there, and those that were sent along with jobs."""

    def keep(self, value: str, owner: SecretUser = NOBODY) -> str:
        """Keep a secret for jobs that somebody is about to submit, and for no one else's; returns its name.

        Raises:
            Unavailable: It cannot be written.
        """

    def refresh(self, names: Iterable[str]) -> frozenset[str]:
        """Return those that are there; they are then as fresh as when they were kept."""

    def opens(self, name: str, user: SecretUser) -> bool:
        """Whether one that is there is somebody's, or their queue's."""

    def value(self, name: str, user: SecretUser = NOBODY) -> str | None:
        """Read one; ``None`` if it is not there, cannot be read, or is somebody else's by now."""

    def kept(self, *, before: float) -> Collection[str]:
        """Name those that were sent along, and were fresh before that time for the last time."""

    def discard(self, name: str) -> None:
        """Delete one; one that is gone is fine.

        Raises:
            Unavailable: It cannot be deleted.
        """
