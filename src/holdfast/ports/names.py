"""The part of the storage port about names that other systems give to jobs: any text, unique to one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import JobState
    from holdfast.ports.requests import Request


class ExternalName(Struct, frozen=True):
    """The name that another system gives to a job that is submitted."""

    name: str
    """Begins with the system's name and a slash; further slashes put names below others."""
    digest: bytes = b""
    """A digest of the request and its caller, which tells a repeated request from another one of the same name."""
    replaces: str = ""
    """Id of the job that gives the name up to it, and with it those of all below, if it still has it; empty: none."""
    ends: tuple[Request, ...] = ()
    """Asks for the end of that job and of those below; appended with the job that takes the name, or not at all."""
    parent: str = ""
    """The name of the job that it is a child of, if there is such a one; empty: of none."""


class NamedJob(Struct, frozen=True):
    """The job that has a name."""

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
        """Return the jobs that have names, by name; unused names are left out."""

    def names_of(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs by their ids; jobs without one are left out."""

    def beginning(self, prefix: str, *, seen: Seen | None = None) -> Sequence[ListedName]:
        """List the names that begin with a text, in order of submission of their jobs.

        Args:
            prefix: The text.
            seen: Only names of these jobs; ``None``: all.
        """
