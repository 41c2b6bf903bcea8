"""Shortages: a node cannot start programs because it lacks disk, memory or the like, which is nobody's failure.

A node with a shortage gets one job at a time, to see whether it starts: at once after one that did, and after growing
delays if it did not. The shortage is over once nothing has been refused there for a while, so that a node does not seem
well each time that a program ends and leaves room for exactly one more. A node whose machine is seen to run out of
something (``placement.pressure``) gets no job at all.
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
    """Space on the disk for runs, or the disk quota."""
    INODES = "inodes"
    """Inodes of the disk for runs, which may still have space."""
    DESCRIPTORS = "descriptors"
    """Open files."""
    PROCESSES = "processes"
    """Processes and threads."""
    MEMORY = "memory"
    """Memory of the machine, not the run's own limit."""
    READ_ONLY = "read-only"
    """The disk for runs cannot be written."""

    @property
    def words(self) -> str:
        """Return ``short of disk space`` and the like."""
        return _IN_WORDS[self]


OF_REASON = {
    "DiskFull": Shortage.DISK,
    "OutOfInodes": Shortage.INODES,
    "OutOfFiles": Shortage.DESCRIPTORS,
    "OutOfProcesses": Shortage.PROCESSES,
    "OutOfMemory": Shortage.MEMORY,
    "ReadOnlyFileSystem": Shortage.READ_ONLY,
}
"""Shortages by the engine's reason why it could not start a program."""
_IN_WORDS = {
    Shortage.DISK: "short of disk space",
    Shortage.INODES: "short of inodes",
    Shortage.DESCRIPTORS: "short of file descriptors",
    Shortage.PROCESSES: "short of processes",
    Shortage.MEMORY: "short of memory",
    Shortage.READ_ONLY: "without a disk it can write to",
}
OVER_AFTER_S = 30.0
"""A shortage is over once nothing has been refused for this long."""
BACKOFF = Backoff(initial_s=1.0, max_s=15.0, multiplier=2.0)
"""Between jobs that are refused in a row; shorter than ``OVER_AFTER_S``, or the shortage would seem over in between."""

AGAIN_AT_ONCE = 3
"""After this many refusals in a row a job waits, so that others are tried."""
PATIENCE = Backoff(initial_s=5.0, max_s=60.0, multiplier=2.0)
"""Delays of a job that is refused again and again."""


class Short(Struct, frozen=True):
    """A node's shortage, and when the node gets the next job to see whether it is over."""

    of: Shortage
    since: float
    message: str
    """Why the last program could not be started, or what the machine had left."""
    refused_at: float
    """When ``message`` was reported."""
    next_at: float
    """When the node gets one more job."""
    refusals: int = 1
    """Refusals since a program was last started there; jobs that were placed together count as one."""
    trying: bool = False
    """Whether it has got that job, and the result is not known yet."""
    pressed: bool = False
    """Whether it was measured on the machine, which then evicts programs."""

    def in_words(self, node: str) -> str:
        """Return ``node n1 has been short of inodes since 2026-01-02T03:04:05Z``."""
        words = f"node {node} has been {self.of.words} since {format_instant(self.since)}"
        return f"{words}: {self.message}" if self.pressed else words

    def admits_one(self, now: float) -> bool:
        """Whether the node gets one more job now."""
        return now >= self.next_at and not self.pressed

    def is_over(self, now: float) -> bool:
        """Whether the shortage is over."""
        return now - self.refused_at >= OVER_AFTER_S


def shortage_of(ended: RunOutcome | Failure) -> Shortage | None:
    """Return the shortage that kept a run from starting, if one did."""
    if ended.started or FailureCondition.LAUNCH_FAILED not in ended.conditions:
        return None
    return next((OF_REASON[container.reason] for container in ended.containers if container.reason in OF_REASON), None)


def shortage_decision(of: Shortage, node: str | None, refusals: int = 1) -> Decision:
    """Return the decision about a run that met a shortage; policies have no say.

    Args:
        of: What its node lacked.
        node: The node's name, if known.
        refusals: How often in a row the program could not be started because of a shortage.
    """
    where, late = f"node {node}" if node else "its node", refusals - AGAIN_AT_ONCE
    if late <= 0:
        reason = f"{where} is {of.words}; the program starts once that is over"
        return Decision(Action.IGNORE, DecisionCode.SHORTAGE, reason)
    reason = f"{where} is {of.words}, and it could not be started {refusals} times in a row"
    return Decision(Action.IGNORE, DecisionCode.SHORTAGE, reason, delay_s=delay_s(PATIENCE, late, seed=""))


def after_refusal(short: Short | None, of: Shortage, message: str, now: float) -> Short:
    """Update a node's shortage after it refused a run.

    Args:
        short: The shortage before, if there was one.
        of: What the node lacked.
        message: Why the program could not be started.
        now: The time.
    """
    since, refusals = (now, 1) if short is None else (short.since, short.refusals + short.trying)
    return Short(of, since, message, now, now + delay_s(BACKOFF, max(1, refusals), seed=""), refusals)


def under_pressure(short: Short | None, of: Shortage, message: str, now: float) -> Short:
    """Update a node's shortage after its machine was seen to run out of something."""
    since = short.since if short is not None and short.of is of else now
    return Short(of, since, message, refused_at=now, next_at=now, pressed=True)


def after_trial(short: Short, now: float) -> Short:
    """Update a shortage after the node got one more job; without a result it gets another one later."""
    return evolve(short, trying=True, next_at=now + OVER_AFTER_S / 2)


def after_answer(short: Short, now: float, *, well: bool) -> Short:
    """Update a shortage after a run was not refused: the next one may follow at once.

    Args:
        short: The shortage before.
        now: The time.
        well: Whether the program started; one that failed to start for another reason proves nothing.
    """
    return evolve(short, trying=False, refusals=0 if well else short.refusals, next_at=now)


def restored(short: Short, now: float) -> Short:
    """Restore a stored shortage, whose times may come from a clock ahead of ours: the node gets a job at once."""
    # One that was measured is measured again soon.
    refused_at = now if short.pressed else min(short.refused_at, now)
    return evolve(short, since=min(short.since, now), refused_at=refused_at, next_at=now)
