"""The names, states and actions of each kind of work, as people see them.

Messages, lists and their filters, commands, the audit log and notifications use these.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, NewType

from holdfast.domain.terms.states import JOB_TERMINAL, ArrayPhase, JobSetPhase, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping


SubjectName = NewType("SubjectName", str)
"""The name of a kind of object in the audit log and the table of rights."""


class KindInfo(NamedTuple):
    """One kind of work."""

    name: str
    """Its name in the store and for programs."""
    noun: str
    """Its name in messages."""
    plural: str
    """The name of the collection in addresses and on the command line."""
    spellings: tuple[str, ...]
    """Accepted spellings, without hyphens and in lower case; the first is printed."""
    subject: SubjectName
    """Its name in the audit log and the table of rights."""
    states: tuple[str, ...]
    """Its states, in their usual order."""
    success: str
    """The state after success."""
    ended: frozenset[str]
    """The final states."""
    paused: Mapping[str, str]
    """States in which it does not continue by itself, each with a message; ``{0}`` is its name."""
    aside: tuple[str, ...] = ()
    """States that nobody waits for, because it is being deleted, or run by another controller."""
    steered: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Actions on several unnamed ones, with the states in which they apply."""
    acts: tuple[str, ...] = ()
    """Actions on a named one, besides deletion, as in addresses and commands."""
    parts: str = ""
    """The name of its parts, if it is made of jobs."""
    manifest: str = ""
    """Its kind in manifests, if it has manifests of its own."""
    package: str = ""
    """The package of its code, if there is one: ``model`` with ``STORED``, ``rules`` with ``RULES``, ``manifest`` with
    ``read``, ``operations`` with ``OPERATIONS``, and ``views``."""

    @property
    def awaited(self) -> tuple[str, ...]:
        """The states that can be waited for."""
        return tuple(state for state in self.states if state not in self.aside)

    @property
    def moving(self) -> tuple[str, ...]:
        """The states that change without a user."""
        return tuple(state for state in self.states if state not in self.ended and state not in self.paused)


JOB = KindInfo(
    name="job",
    noun="job",
    plural="jobs",
    spellings=("job", "jobs", "j"),
    subject=SubjectName("job"),
    states=tuple(JobState),
    success=JobState.SUCCEEDED,
    ended=frozenset(JOB_TERMINAL),
    paused={JobState.HELD: "{0} is held; to release it: holdfast release {0}"},
    steered={
        "cancel": (JobState.QUEUED, JobState.RUNNING, JobState.BACKOFF, JobState.HELD, JobState.WAITING),
        "hold": (JobState.QUEUED, JobState.BACKOFF),
        "release": (JobState.HELD,),
        "retry": (JobState.FAILED, JobState.CANCELLED),
        "preempt": (JobState.RUNNING,),
        "reprioritize": (JobState.QUEUED, JobState.BACKOFF, JobState.HELD, JobState.WAITING, JobState.RUNNING),
    },
    acts=("cancel", "hold", "release", "retry", "preempt", "reprioritize"),
    manifest="Job",
)
ARRAY = KindInfo(
    name="array",
    noun="array",
    plural="arrays",
    spellings=("array", "arrays"),
    subject=SubjectName("array"),
    states=tuple(ArrayPhase),
    success=ArrayPhase.SUCCEEDED,
    ended=frozenset({ArrayPhase.SUCCEEDED, ArrayPhase.FAILED, ArrayPhase.CANCELLED}),
    paused={ArrayPhase.HELD: "{0} is held; to release it: holdfast release {0}"},
    aside=(ArrayPhase.DELETING,),
    steered={
        "cancel": (ArrayPhase.QUEUED, ArrayPhase.RUNNING, ArrayPhase.HELD, ArrayPhase.WAITING),
        "hold": (ArrayPhase.QUEUED, ArrayPhase.RUNNING, ArrayPhase.WAITING),
        "release": (ArrayPhase.HELD,),
    },
    acts=("cancel", "hold", "release", "preempt"),
    parts="tasks",
)
JOB_SET = KindInfo(
    name="jobset",
    noun="job set",
    plural="jobsets",
    spellings=("jobset", "jobsets", "js"),
    subject=SubjectName("job-set"),
    states=tuple(JobSetPhase),
    success=JobSetPhase.COMPLETED,
    ended=frozenset({JobSetPhase.COMPLETED, JobSetPhase.FAILED}),
    paused={
        JobSetPhase.SUSPENDED: "{0} is suspended; to resume it: holdfast resume jobset {0}",
        JobSetPhase.UNMANAGED: "{0} is not run by Holdfast: its manifest names another controller (managedBy)",
    },
    aside=(JobSetPhase.DELETING, JobSetPhase.UNMANAGED),
    acts=("suspend", "resume", "restart"),
    parts="jobs",
    manifest="JobSet",
)
KINDS = {kind.name: kind for kind in (JOB, ARRAY, JOB_SET)}
"""All kinds by name."""


def info_of(kind: str | None) -> KindInfo:
    """Return the info of a kind; for an unknown kind, as in damaged records, that of jobs."""
    return KINDS.get(kind or "", JOB)
