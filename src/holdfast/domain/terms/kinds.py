"""What each kind of work is called, where it can be, and how it ends: everything that people meet of a kind.

Messages, lists and their filters, commands, the audit log and notifications read it here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, NewType

from holdfast.domain.terms.states import JOB_TERMINAL, ArrayPhase, JobSetPhase, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping


SubjectName = NewType("SubjectName", str)
"""What the audit log and the table of rights call a kind of thing."""


class KindInfo(NamedTuple):
    """One kind of work."""

    name: str
    """As it is stored, and as programs are told."""
    noun: str
    """What messages call one."""
    plural: str
    """Of the collection: in addresses, and on the command line."""
    spellings: tuple[str, ...]
    """How a person may write it, without hyphens and in lower case; the first is how it is printed."""
    subject: SubjectName
    """In the audit log, and in the table of rights."""
    states: tuple[str, ...]
    """Where one can be, in the order it usually comes through them."""
    success: str
    """How one ends well."""
    ended: frozenset[str]
    """How one ends."""
    paused: Mapping[str, str]
    """States in which it does not go on by itself, each with what is said of it; ``{0}`` is its name."""
    aside: tuple[str, ...] = ()
    """States that nobody waits for: of what goes away, or is not ours to run."""
    steered: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What a person can ask of several that nobody named, and of those in which states."""
    acts: tuple[str, ...] = ()
    """What can be asked of one that is named, beside to delete it, in the words of addresses and commands."""
    parts: str = ""
    """What it is made of, if of others."""
    manifest: str = ""
    """Its kind in manifests, if it is written as a whole."""
    package: str = ""
    """Where its code is, if in one place: ``model`` with ``STORED``, ``rules`` with ``RULES``, ``manifest`` with
    ``read``, ``operations`` with ``OPERATIONS``, and ``views``."""

    @property
    def awaited(self) -> tuple[str, ...]:
        """States that can be waited for."""
        return tuple(state for state in self.states if state not in self.aside)

    @property
    def moving(self) -> tuple[str, ...]:
        """States that a server would change."""
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
"""Every kind, by its name."""


def info_of(kind: str | None) -> KindInfo:
    """Return what is known of a kind; of one that nobody knows, as damage may say, what is known of jobs."""
    return KINDS.get(kind or "", JOB)
