"""The part of the storage port about what other systems call jobs: any text, of which each is one job's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import JobState
    from holdfast.ports.requests import Request


class ExternalName(Struct, frozen=True):
    """What another system calls a job that is submitted."""

    name: str
    """Begins with the system's and a slash; further slashes make one that is below another."""
    digest: bytes = b""
    """Of what it is submitted with, and by whom: what tells one that is sent again from another of its name."""
    replaces: str = ""
    """Id of the job that gives the name up to it, and with it those of all below, if it still has it; empty: none."""
    ends: tuple[Request, ...] = ()
    """Asks for the end of that job and of those below; appended with the job that takes the name, or not at all."""
    parent: str = ""
    """The name of the job that it is a child of, if there is such a one; empty: of none."""


class NamedJob(Struct, frozen=True):
    """Whose a name is."""

    name: str
    job_id: str
    digest: bytes
    taken_at: float


class ListedName(Struct, frozen=True):
    """A name in a list, with what lists are ordered and filtered by before any job is read."""

    name: str
    job_id: str
    seq: int
    """Of its job: in order of submission."""
    state: JobState


class NameStore(Protocol):
    """What other systems call jobs; a name is free again when its job is deleted, or gives it up."""

    def named(self, names: Sequence[str]) -> Mapping[str, NamedJob]:
        """Return whose names are, by name; those of nobody are left out."""

    def names_of(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs, by their ids; those that have none are left out."""

    def beginning(self, prefix: str, *, seen: Seen | None = None) -> Sequence[ListedName]:
        """List the names that begin with a text, wherever that ends, in order of submission of their jobs.

        Args:
            prefix: The text.
            seen: Only of jobs that somebody may know of; ``None``: of all.
        """
