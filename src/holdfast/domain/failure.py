"""The facts of how a run ended, and the failure that is classified from them."""

from __future__ import annotations

import signal
from enum import StrEnum
from operator import attrgetter

from holdfast.domain.record import Struct


class FailureCondition(StrEnum):
    """Platform conditions that rules can name; any other name in a policy is an error."""

    OOM_KILLED = "OOMKilled"
    """It exceeded its memory limit, with evidence (cgroup event, kubelet reason, engine flag); 137 is not enough."""
    EVICTED = "Evicted"
    """The node evicted the run, because it was under pressure or is being drained."""
    PREEMPTED = "Preempted"
    """The scheduler gave its place to more important work, or the machine was reclaimed."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """It ran longer than its deadline."""
    UNSCHEDULABLE = "Unschedulable"
    """No node could ever run it, or none was free within the scheduling timeout."""
    IMAGE_PULL_FAILED = "ImagePullFailed"
    """Its image could not be fetched."""
    NODE_LOST = "NodeLost"
    """The node stopped answering."""
    EXECUTOR_LOST = "ExecutorLost"
    """The executor was silent for longer than its lease."""
    END_UNKNOWN = "EndUnknown"
    """How the program ended, or whether it ran at all, is unknown: everything that watched it is gone. Always together
    with `ExecutorLost` or `NodeLost`."""
    LAUNCH_FAILED = "LaunchFailed"
    """The program could not be started."""
    STALLED = "Stalled"
    """It printed or did nothing for longer than its ``stall`` allows."""
    APP_ERROR = "AppError"
    """The program itself ended with a non-zero exit code or by its own signal."""


LOST = frozenset({FailureCondition.NODE_LOST, FailureCondition.EXECUTOR_LOST})
"""Conditions under which a run is lost with its node or executor."""


class Cause(StrEnum):
    """The one cause of a failure, in the words of Backend.AI's BEP "Native Session Retry", and stalls."""

    AGENT_TRANSIENT = "agent_transient"
    """The place failed, not the program: it was lost, preempted, evicted, or could not start the program."""
    SCHEDULER_TIMEOUT = "scheduler_timeout"
    """No place was found in time, or the node did not start it in time."""
    IMAGE_PULL_FAILURE = "image_pull_failure"
    """Its image could not be fetched."""
    KERNEL_NONZERO_EXIT = "kernel_nonzero_exit"
    """The program ended with a non-zero exit code or by its own signal."""
    OOM_KILLED = "oom_killed"
    """It used more memory than it requested, with evidence."""
    EXECUTION_TIMEOUT = "execution_timeout"
    """It ran longer than its deadline."""
    STALLED = "stalled"
    """It printed or did nothing for longer than its ``stall`` allows."""
    UNKNOWN = "unknown"
    """The facts fit no other cause."""
    USER_CANCELLED = "user_cancelled"
    """A user cancelled the job, or held it while it ran; not a failure, and never retried automatically."""
    VALIDATION_ERROR = "validation_error"
    """The request is impossible, such as a program that does not exist; never retried."""
    QUOTA_EXCEEDED = "quota_exceeded"
    """A quota forbids it; never retried."""


NEVER_RETRIED = frozenset({Cause.USER_CANCELLED, Cause.VALIDATION_ERROR, Cause.QUOTA_EXCEEDED})
"""Causes no policy can opt into retry."""


class EndedBy(StrEnum):
    """What ended a run."""

    ITSELF = "itself"
    """The program ended by itself, successfully or not."""
    USER = "user"
    """A user cancelled the job."""
    DEADLINE = "deadline"
    """It ran for longer than its job allows."""
    STALL = "stall"
    """It was silent for longer than its job allows."""
    MEMORY = "memory"
    """The memory limit, enforced by the kernel, or by Holdfast's watcher with evidence."""
    PREEMPTION = "preemption"
    """It was preempted by more important work."""
    SUSPENSION = "suspension"
    """A user held its job, or suspended the set or Job it belongs to."""
    DRAIN = "drain"
    """Its node is being drained."""
    EVICTION = "eviction"
    """Its machine ran out of memory or disk."""
    LOST = "lost"
    """Its end was not observed: its executor or node was lost."""
    CASCADE = "cascade"
    """Holdfast stopped it because another run of its attempt failed; it is not counted."""


DELIBERATE = frozenset({EndedBy.USER, EndedBy.SUSPENSION, EndedBy.DRAIN, EndedBy.PREEMPTION})
"""Deliberate stops: figures count neither these as failures nor what follows as a retry or a recovery."""


class ContainerResult(Struct, frozen=True):
    """How one container (or the one local process) of a run ended."""

    exit_code: int | None
    """The program's own code, or 128 + signal when a signal ended it; ``None`` if it never ended by itself."""
    name: str = "main"
    signal: int | None = None
    """The signal that ended it; ``None`` if it exited, which distinguishes an exit code of 137 from a SIGKILL."""
    reason: str = ""
    """The platform's reason: ``OOMKilled``, ``Error``, ``Completed``, ``CommandNotFound``."""
    message: str = ""
    """Its termination message, bounded by the engine, or the last lines of its log if it left none."""
    message_from_log: bool = False
    """Whether ``message`` is the last lines of the log."""
    init: bool = False
    log_tail: tuple[str, ...] = ()
    """The last lines of its own log, if containers have separate logs."""

    @property
    def failed(self) -> bool:
        """Whether it ended with a non-zero code."""
        return self.exit_code is not None and self.exit_code != 0


class PodEvent(Struct, frozen=True):
    """An engine's event about a run, as in Kubernetes."""

    type: str
    """``Normal`` or ``Warning``."""
    message: str
    reason: str = ""


class LogMatch(Struct, frozen=True):
    """A pattern of a policy or category that was found in a run's output."""

    pattern: str
    line: str
    """The line where it was found, bounded."""


class RunOutcome(Struct, frozen=True):
    """The facts of how a run ended, recorded before they are judged."""

    containers: tuple[ContainerResult, ...] = ()
    conditions: frozenset[str] = frozenset()
    """Conditions the engine has evidence for (values of ``FailureCondition``)."""
    ended_by: EndedBy = EndedBy.ITSELF
    started: bool = True
    """Whether the program started, or may have started: then ``started_at`` is ``None``."""
    started_at: float | None = None
    ended_at: float = 0.0
    warned_at: float | None = None
    """When it got the early warning that its job asks for."""
    node: str | None = None
    executor: str | None = None
    message: str = ""
    """The platform's message, for example why it could not be started."""
    log_tail: tuple[str, ...] = ()
    """The last lines of the log, for classification and explanation."""
    log: str = ""
    """The last 64 KiB of its output, as delivered by its engine; searched at once and never stored."""
    log_matches: tuple[LogMatch, ...] = ()
    """The patterns of policies and categories that were found in it."""
    error_line: str = ""
    """The line of its output that says what went wrong, bounded."""
    events: tuple[PodEvent, ...] = ()
    progress: str = ""
    """The last progress report, as the program wrote it."""
    peak_memory: int | None = None
    """Bytes, if the engine measured it."""

    @property
    def succeeded(self) -> bool:
        """Whether every container exited with 0 and nothing else ended the run."""
        return (
            self.started
            and not self.conditions
            and self.ended_by is EndedBy.ITSELF
            and set(map(attrgetter("exit_code"), self.containers)) == {0}
        )

    @property
    def lost(self) -> bool:
        """Whether it was lost with its node or executor."""
        return self.ended_by is EndedBy.LOST or bool(self.conditions & LOST)

    @property
    def end_unknown(self) -> bool:
        """Whether its end is unknown: it may have succeeded."""
        seen = self.containers and None not in map(attrgetter("exit_code"), self.containers)
        return self.started and self.lost and not seen

    @property
    def ran_s(self) -> float | None:
        """How long the program ran, in seconds."""
        if self.started_at is None:
            return None
        return max(0.0, self.ended_at - self.started_at)


class Failure(Struct, frozen=True):
    """A classified failure: the facts of the judged run and what they mean."""

    cause: Cause
    conditions: frozenset[str]
    """Every condition that holds, reported by the engine or derived (``AppError``, ...)."""
    containers: tuple[ContainerResult, ...] = ()
    category: str = ""
    subcategory: str = ""
    hint: str = ""
    """The category's advice for the user."""
    suggestion: str = ""
    """The action that the category suggests."""
    rank: int = 0
    node: str | None = None
    executor: str | None = None
    devices: tuple[str, ...] = ()
    """Ids of the GPUs the run had."""
    started: bool = True
    ran_s: float | None = None
    failed_at: float = 0.0
    message: str = ""
    ended_by: EndedBy = EndedBy.ITSELF
    error_line: str = ""
    """The line of its output that says what went wrong."""
    log_matches: tuple[LogMatch, ...] = ()
    """The patterns that were found in its output."""

    @property
    def failed_containers(self) -> tuple[ContainerResult, ...]:
        """Containers that ended with a non-zero code, in order."""
        return tuple(container for container in self.containers if container.failed)

    @property
    def first_failed(self) -> ContainerResult | None:
        """The first container that ended with a non-zero code."""
        for container in self.containers:
            if container.exit_code:
                return container
        return None


_LOUD = (
    FailureCondition.OOM_KILLED,
    FailureCondition.STALLED,
    FailureCondition.DEADLINE_EXCEEDED,
    FailureCondition.PREEMPTED,
    FailureCondition.EVICTED,
    FailureCondition.NODE_LOST,
    FailureCondition.EXECUTOR_LOST,
    FailureCondition.LAUNCH_FAILED,
    FailureCondition.IMAGE_PULL_FAILED,
    FailureCondition.UNSCHEDULABLE,
)


def failure_in_words(failure: Failure) -> str:
    """Describe a failure in a few words: ``exit code 3: ValueError: no such key``, ``killed by SIGSEGV``, ...."""
    for condition in _LOUD:
        if condition in failure.conditions:
            quiet = (
                condition in {FailureCondition.OOM_KILLED, FailureCondition.DEADLINE_EXCEEDED} or not failure.message
            )
            return str(condition) if quiet else f"{condition}: {failure.message}"
    container = failure.first_failed
    if container is None:
        return failure.message or str(failure.cause)
    how = (
        f"exit code {container.exit_code}" if container.signal is None else f"killed by {signal_name(container.signal)}"
    )
    return f"{how}: {failure.error_line}" if failure.error_line else how


def failure_in_full(failure: Failure) -> str:
    """Describe a failure with the platform's message: ``OOMKilled: exceeded its memory limit of 64Mi``."""
    short = failure_in_words(failure)
    is_told = failure.conditions <= {FailureCondition.APP_ERROR} or failure.message in short
    return short if is_told else f"{short}: {failure.message}"


def signal_name(number: int) -> str:
    """Return a signal's name: ``SIGTERM``, or ``signal 63`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
