"""What an agent may do: only read, or also change jobs; in which queues, which jobs, and how many."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.wire.arrays import ArrayView
    from holdfast.wire.jobs import JobSummary


class ToolLimits(Struct, frozen=True):
    """Limits that are set when the tools are started."""

    read_only: bool = False
    queues: Sequence[str] = ()
    """Queues whose jobs can be seen and submitted; the first is the default. Empty allows all."""
    labels: Mapping[str, str] = {}
    """Labels that each submitted job gets, and that a job must have to be changed."""
    any_job: bool = False
    """Whether it may change jobs without these labels, too."""
    per_call: int = 20
    """Jobs it may submit at once."""
    per_session: int = 100
    """Jobs it may submit in all."""

    def queue_of(self, queue: str | None, path: str) -> str | None:
        """Return the queue for a job, ``None`` for the usual one.

        Raises:
            InvalidRequest: The requested queue is not allowed.
        """
        if not self.queues or queue in self.queues:
            return queue
        if queue is None:
            return self.queues[0]
        raise InvalidRequest(problems=[Problem(path, f"queue {queue!r} is not allowed", allowed=tuple(self.queues))])

    def require_sight(self, job: JobSummary | ArrayView, noun: str = "job") -> None:
        """Make sure that a job, or an array, may be looked at.

        Raises:
            Refused: It is in a queue that these tools do not see.
        """
        if self.queues and job.queue not in self.queues:
            message = f"{noun} {job.id} is in queue {job.queue}, and these tools see only {', '.join(self.queues)}"
            raise Refused(message)

    def require_change(self, job: JobSummary | ArrayView, labels: Mapping[str, str], noun: str = "job") -> None:
        """Make sure that a job, or an array, may be changed.

        Raises:
            Refused: It was not submitted with these tools.
        """
        self.require_sight(job, noun)
        missing = [f"{name}={value}" for name, value in self.labels.items() if labels.get(name) != value]
        if missing and not self.any_job:
            message = f"{noun} {job.id} was not submitted with these tools: it lacks the label {', '.join(missing)}"
            raise Refused(message, hint="a person can do it with the command line, or start the tools with --any-job")


class Allowance:
    """How many jobs may still be submitted; safe for several threads."""

    def __init__(self, limits: ToolLimits) -> None:
        self._limits = limits
        self._left = limits.per_session
        self._turn = threading.Lock()

    def take(self, count: int) -> None:
        """Count jobs that are to be submitted.

        Raises:
            Refused: There are too many at once, or in all.
        """
        if count > self._limits.per_call:
            message = f"{count} jobs are too many for one call; at most {self._limits.per_call}"
            raise Refused(message, hint="submit fewer; a person can raise --max-per-call")
        with self._turn:
            if count > self._left:
                message = f"only {self._left} of {self._limits.per_session} jobs of this session are left, not {count}"
                raise Refused(message, hint="a person can raise --max-jobs, or start another session")
            self._left -= count

    def give_back(self, count: int) -> None:
        """Return jobs that were not submitted."""
        with self._turn:
            self._left += count
