"""What a node is short of, so that it cannot start programs: shown by those it refused or by its machine; no failure.

A node that is short gets no new work but one job at a time, to see whether that starts: at once after one that did, and
ever later after ones that did not. It is short no longer once nothing has been refused there for a while; so it does
not seem well each time that a program ends and leaves room for exactly one more. One whose machine is seen to run out
of something (``placement.pressure``) gets none at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import delay_s
from holdfast.domain.policy.model import Action, Backoff, Decision
from holdfast.domain.record import Struct, evolve
from holdfast.domain.units import format_instant

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure, RunOutcome


class Shortage(StrEnum):
    """What a node can be short of."""

    DISK = "disk"
    """Space on the disk for runs, or its owner's quota there."""
    INODES = "inodes"
    """Files that the disk for runs can still have; it may have space."""
    DESCRIPTORS = "descriptors"
    """Files that may be open at once."""
    PROCESSES = "processes"
    """Processes and threads that may exist at once."""
    MEMORY = "memory"
    """Memory of the machine, not of the run's own limit."""
    READ_ONLY = "read-only"
    """The disk for runs cannot be written at all."""

    @property
    def words(self) -> str:
        """Say what a node is: ``short of disk space``."""
        return _IN_WORDS[self]


OF_REASON = {
    "DiskFull": Shortage.DISK,
    "OutOfInodes": Shortage.INODES,
    "OutOfFiles": Shortage.DESCRIPTORS,
    "OutOfProcesses": Shortage.PROCESSES,
    "OutOfMemory": Shortage.MEMORY,
    "ReadOnlyFileSystem": Shortage.READ_ONLY,
}
"""By the engine's word for why it could not start a program."""
_IN_WORDS = {
    Shortage.DISK: "short of disk space",
    Shortage.INODES: "short of inodes",
    Shortage.DESCRIPTORS: "short of file descriptors",
    Shortage.PROCESSES: "short of processes",
    Shortage.MEMORY: "short of memory",
    Shortage.READ_ONLY: "without a disk it can write to",
}
OVER_AFTER_S = 30.0
"""A node is short no longer once nothing has been refused there for so long."""
BACKOFF = Backoff(initial_s=1.0, max_s=15.0, multiplier=2.0)
"""Between jobs that are refused one after the other; shorter than the time above, or it would seem over in between."""

AGAIN_AT_ONCE = 3
"""So often in a row a job is refused before it waits: others may start meanwhile, and it is to let them be tried."""
PATIENCE = Backoff(initial_s=5.0, max_s=60.0, multiplier=2.0)
"""Of a job that is refused again and again."""


class Short(Struct, frozen=True):
    """Since when a node is short, and when it gets the next job to see whether it still is."""

    of: Shortage
    since: float
    message: str
    """Why the last program could not be started, or what its machine had left."""
    refused_at: float
    """When that was."""
    next_at: float
    """When it gets one more job."""
    refusals: int = 1
    """How often it has refused since a program was started there; all that were placed together count as one."""
    trying: bool = False
    """Whether it has got that job, and nothing has been heard of it."""
    pressed: bool = False
    """Whether that was seen by looking at its machine, which evicts programs."""

    def in_words(self, node: str) -> str:
        """Say so: ``node n1 has been short of inodes since 2026-01-02T03:04:05Z``."""
        words = f"node {node} has been {self.of.words} since {format_instant(self.since)}"
        return f"{words}: {self.message}" if self.pressed else words

    def admits_one(self, now: float) -> bool:
        """Whether the node gets one more job now."""
        return now >= self.next_at and not self.pressed

    def is_over(self, now: float) -> bool:
        """Whether it is short no longer."""
        return now - self.refused_at >= OVER_AFTER_S


def met(ended: RunOutcome | Failure) -> Shortage | None:
    """Return what kept a run's program from being started, if that was a shortage of its node."""
    if ended.started or FailureCondition.LAUNCH_FAILED not in ended.conditions:
        return None
    return next((OF_REASON[container.reason] for container in ended.containers if container.reason in OF_REASON), None)


def uncounted(of: Shortage, node: str | None, refusals: int = 1) -> Decision:
    """Return the decision about a run that met a shortage, whatever policies say.

    Args:
        of: What its node lacked.
        node: Its name, if it is known.
        refusals: How often in a row its program could not be started for such a reason.
    """
    where, late = f"node {node}" if node else "its node", refusals - AGAIN_AT_ONCE
    if late <= 0:
        reason = f"{where} is {of.words}; it is started once that is over"
        return Decision(Action.IGNORE, DecisionCode.SHORTAGE, reason)
    reason = f"{where} is {of.words}, and it could not be started {refusals} times in a row"
    return Decision(Action.IGNORE, DecisionCode.SHORTAGE, reason, delay_s=delay_s(PATIENCE, late, seed=""))


def refused(short: Short | None, of: Shortage, message: str, now: float) -> Short:
    """Return how a node is once it has refused a run.

    Args:
        short: How it was; ``None`` if it was not short.
        of: What it lacked.
        message: Why the program could not be started.
        now: The time.
    """
    since, refusals = (now, 1) if short is None else (short.since, short.refusals + short.trying)
    return Short(of, since, message, now, now + delay_s(BACKOFF, max(1, refusals), seed=""), refusals)


def pressed(short: Short | None, of: Shortage, message: str, now: float) -> Short:
    """Return how a node is whose machine has been seen to run out of something."""
    since = short.since if short is not None and short.of is of else now
    return Short(of, since, message, refused_at=now, next_at=now, pressed=True)


def tried(short: Short, now: float) -> Short:
    """Return it once it has got one more job; if nothing is heard of that it gets another after a while."""
    return evolve(short, trying=True, next_at=now + OVER_AFTER_S / 2)


def answered(short: Short, now: float, *, well: bool) -> Short:
    """Return it once a run was not refused for this: the next one may come at once.

    Args:
        short: How it was.
        now: The time.
        well: Whether the program was started; one that could not be for a reason of its own says nothing.
    """
    return evolve(short, trying=False, refusals=0 if well else short.refusals, next_at=now)


def restored(short: Short, now: float) -> Short:
    """Return one that was stored, perhaps by a clock that was ahead of ours: it gets a job at once."""
    refused_at = now if short.pressed else min(short.refused_at, now)  # it is looked at anew meanwhile
    return evolve(short, since=min(short.since, now), refused_at=refused_at, next_at=now)
