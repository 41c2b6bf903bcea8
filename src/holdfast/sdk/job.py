"""A submitted job: its state, its result, its log, and the explanation of its state."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from holdfast.errors import NotFound
from holdfast.sdk.calls.outcome import CallOutcome, RemoteTraceback
from holdfast.sdk.notebook import html_of
from holdfast.sdk.states import ENDED, State
from holdfast.sdk.waiting import as_completed, patiently

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client as Api
    from holdfast.sdk.calls.folder import Call
    from holdfast.wire.decisions import Why
    from holdfast.wire.jobs import JobView, LogChunk

T_co = TypeVar("T_co", covariant=True)
_SOON_S, _LATER_S, _SLOWER = 0.02, 0.5, 1.5


class JobFailed(RuntimeError):
    """A job failed without an exception of its own; ``why`` explains it."""

    def __init__(self, job_id: str, headline: str, summary: tuple[str, ...] = ()) -> None:
        super().__init__(job_id, headline, summary)
        self.job_id = job_id
        self.headline = headline
        self.summary = summary

    def __str__(self) -> str:
        """Return the explanation, and the command that shows more."""
        return "\n".join([self.headline, *self.summary, f"more: holdfast why {self.job_id}"])


class JobCancelled(JobFailed, CancelledError):
    """A job was cancelled; also an error of ``concurrent.futures``."""


class Job(Generic[T_co]):
    """A job; its result is what the function of a call returned, or ``None`` for a command."""

    def __init__(self, api: Api, job_id: str, name: str, call: Call | None = None) -> None:
        self._api = api
        self._call = call
        self.id = job_id
        self.name = name

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook as it is now."""
        return html_of(self.view())

    @property
    def api(self) -> Api:
        """The client it was submitted with."""
        return self._api

    @property
    def call(self) -> Call | None:
        """The call it makes, if it is one."""
        return self._call

    @property
    def state(self) -> State:
        """Its present state; the server is asked each time."""
        return cast("State", self._api.job(self.id).state)

    def view(self) -> JobView:
        """Read all that is known about it: its attempts, their runs, and the decisions."""
        return self._api.job(self.id)

    def why(self, *, attempt: int | None = None) -> Why:
        """Explain its state."""
        return self._api.why(self.id, attempt=attempt)

    def cancel(self, reason: str = "", *, unless_started: bool = False) -> None:
        """Request its cancellation, also while it runs; with ``unless_started`` only if no attempt has begun.

        Raises:
            Conflict: It has ended, or has started despite ``unless_started``.
        """
        self._api.cancel(self.id, reason=reason, unless_started=unless_started)

    def reprioritize(self, priority: int) -> None:
        """Request another priority by which it waits; higher ones go first."""
        self._api.reprioritize(self.id, priority)

    def preempt(self, reason: str = "") -> None:
        """Request its preemption while it runs; policies decide whether it runs again."""
        self._api.preempt(self.id, reason=reason)

    def wait(self, timeout: float | None = None) -> State:
        """Wait until it has ended, and return its state.

        Raises:
            TimeoutError: It has not ended within ``timeout`` seconds.
        """
        for _ in as_completed([self], timeout):
            break
        return cast("State", self._view().state)

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for its result.

        Raises:
            TimeoutError: It has not ended within ``timeout`` seconds.
            JobFailed: It failed, or (``JobCancelled``) was cancelled.
            Exception: What the function raised, with the run's traceback as its cause.
        """
        self.wait(timeout)
        return cast("T_co", self.outcome())

    def outcome(self, rank: int = 0) -> Any:
        """Return or raise the outcome of one rank of the ended job."""
        view = self._view()
        if view.state == "Succeeded" and self._call is None:
            return None
        left = self._left(view, rank) if view.state in {"Succeeded", "Failed"} else None
        if left is None or (left.ok and view.state == "Failed"):
            raise self._failed(view)
        return left.value()

    def _view(self) -> JobView:
        """Read it once its server answers."""
        return patiently(self._api, self.view)

    def _left(self, view: JobView, rank: int) -> CallOutcome | None:
        """Find the outcome of the last attempt; for a failed gang, that of the rank that failed."""
        if self._call is None:
            return None
        ranks = [rank] if view.state == "Succeeded" else [rank, *(other for other in range(view.gang) if other != rank)]
        outcomes = [left for other in ranks if (left := self._call.outcome(view.attempt, other))]
        return next((left for left in outcomes if not left.ok), outcomes[0] if outcomes else None)

    def _failed(self, view: JobView) -> JobFailed:
        why = patiently(self._api, self.why)
        kind = JobCancelled if view.state == "Cancelled" else JobFailed
        headline = why.headline
        if view.state == "Succeeded":
            headline = f"{view.name} succeeded, but its result is gone"
        error = kind(self.id, headline, tuple(why.summary))
        tail = [line for attempt in view.attempts[-1:] for run in attempt.runs[:1] for line in run.log_tail]
        if tail:
            error.__cause__ = RemoteTraceback("the end of its log:\n" + "\n".join(tail) + "\n")
        return error

    def logs(self, *, attempt: int | None = None, rank: int = 0, stderr: bool = False) -> str:
        """Read what it has printed so far, in its last attempt or another one.

        ``stderr`` reads standard error, of jobs whose ``logs`` are ``separate``.
        """
        return "".join(self._log(attempt, rank, stderr=stderr))

    def _log(self, attempt: int | None, rank: int, *, stderr: bool) -> Iterator[str]:
        offset, more = 0, True
        while more:
            chunk = self._api.logs(self.id, attempt=attempt, rank=rank, offset=offset, stderr=stderr)
            yield chunk.text
            offset, more = chunk.next_offset, bool(chunk.text) and not chunk.finished

    def follow(self, *, attempt: int | None = None, rank: int = 0) -> Iterator[str]:
        """Read what one attempt prints while it prints it, until that attempt ends."""
        offset, rest_s = 0, _SOON_S
        number = attempt or self._first_attempt()
        while True:
            chunk = self._chunk(number, rank, offset)
            if chunk is not None and chunk.text:
                offset, rest_s = chunk.next_offset, _SOON_S
                yield chunk.text
            elif chunk is not None and chunk.finished:
                return
            else:
                time.sleep(rest_s)
                rest_s = min(rest_s * _SLOWER, _LATER_S)

    def _chunk(self, attempt: int, rank: int, offset: int) -> LogChunk | None:
        """Read on in a log; a run that has not been placed has none yet."""
        try:
            read = partial(self._api.logs, self.id, attempt=attempt, rank=rank, offset=offset)
            return patiently(self._api, read)
        except NotFound:
            return None

    def _first_attempt(self) -> int:
        """Wait until there is an attempt to follow."""
        rest_s = _SOON_S
        while True:
            view = self._view()
            if view.attempt:
                return view.attempt
            if view.state in ENDED:
                raise self._failed(view)
            time.sleep(rest_s)
            rest_s = min(rest_s * _SLOWER, _LATER_S)
