"""The part of the storage port about what other systems call jobs: any text, of which each is one job's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ExternalName(Struct, frozen=True):
    """What another system calls a job that is submitted."""

    name: str
    """Begins with the system's and a slash; further slashes make one that is below another."""
    digest: bytes = b""
    """Of what it is submitted with, and by whom: what tells one that is sent again from another of its name."""


class NamedJob(Struct, frozen=True):
    """Whose a name is."""

    name: str
    job_id: str
    digest: bytes
    taken_at: float


class NameStore(Protocol):
    """What other systems call jobs; a name is free again when its job is deleted."""

    def named(self, names: Sequence[str]) -> Mapping[str, NamedJob]:
        """Return whose names are, by name; those of nobody are left out."""

    def names_of(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs, by their ids; those that have none are left out."""
