"""Who calls: a person or a program, by one name wherever it comes from."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct


class Via(StrEnum):
    """How somebody came in."""

    PROCESS = "in-process"
    """Opened the data directory; the operating system knows who that is."""
    TOKEN = "token"  # noqa: S105 - a word, not a secret
    """Showed a token over HTTP."""
    SOCKET = "socket"
    """Connected to a Unix socket; the operating system knows who that is."""


class Principal(Struct, frozen=True):
    """Who calls."""

    name: str
    """In one name space: names of Unix accounts and of tokens' users are bare, others have a prefix."""
    groups: tuple[str, ...] = ()
    """Names of its groups, in the same name space."""
    via: Via = Via.PROCESS
    uid: int | None = None
    """Of a Unix account, its number: an account that is made again under the same name is somebody else."""
