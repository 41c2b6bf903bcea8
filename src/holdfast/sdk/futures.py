"""The futures of an executor, which know their jobs."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from holdfast.client.forking import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.sdk.calls.folder import Call
    from holdfast.sdk.job import Job
    from holdfast.sdk.manifest import Manifest

T = TypeVar("T")
M = TypeVar("M")


class SubmittedFuture(Future[T], Generic[T, M]):
    """A future whose job, or the future that carries it, is known once it is submitted."""

    def __init__(self) -> None:
        super().__init__()
        self._submitted = threading.Event()
        self._carrier: M | None = None
        after_fork(self, SubmittedFuture._leave)

    def submitted(self, future: M | None) -> None:
        """Note what it was submitted as; ``None`` ends the wait for that."""
        self._carrier = future or self._carrier
        self._submitted.set()

    def _leave(self) -> None:
        """Leave an unfinished future to the parent process: nobody completes it here."""
        self._condition = threading.Condition()
        if self._state in {"PENDING", "RUNNING"}:
            super().__init__()
            self.set_exception(RuntimeError("the call's result goes to the process that this one was forked from"))
        self._submitted = threading.Event()
        self._submitted.set()

    def _once_submitted(self, timeout: float | None) -> M:
        """Wait until it is submitted.

        Raises:
            TimeoutError: It is not submitted within ``timeout`` seconds.
            Exception: Why it was never submitted.
        """
        if not self._submitted.wait(timeout):
            msg = f"the job is not submitted within {timeout} s"
            raise TimeoutError(msg)
        if self._carrier is None:
            self.result(0)
            msg = "the call was cancelled before it was submitted"
            raise RuntimeError(msg)
        return self._carrier


class Canceller(Protocol):
    """Cancels futures whose calls have not begun."""

    def cancel(self, futures: Iterable[JobFuture[Any]]) -> None:
        """Cancel futures, at once or soon."""
        ...

    def wait_until_decided(self, future: JobFuture[Any]) -> None:
        """Wait, for a while, until the call of a future has begun or never will."""
        ...


class JobFuture(SubmittedFuture[T, "Job[T]"], Generic[T]):
    """A future whose call is a job."""

    def __init__(self, canceller: Canceller, call: Call, manifest: Manifest) -> None:
        super().__init__()
        self._canceller = canceller
        self._begun: bool | None = None
        self.call = call
        self.manifest = manifest
        self.submission_begun = False
        """Whether its job is being submitted, or was."""
        self.to_cancel = False
        """Whether the request to cancel its job unless it has begun is still open."""
        self.over = False
        """Whether it is finished."""

    def job(self, timeout: float | None = None) -> Job[T]:
        """Return the job, once it is submitted.

        Raises:
            TimeoutError: It is not submitted within ``timeout`` seconds.
            Exception: Why it was never submitted.
        """
        return self._once_submitted(timeout)

    def cancel(self) -> bool:
        """Cancel the job unless it has begun, as its server decides; ``job().cancel()`` also ends one that runs.

        A job has begun with its first attempt, also while it waits for the next one.

        Returns:
            Whether it is cancelled, so that the call is never made. It is also ``False`` if that is not known within
            10 s, as when the server does not answer, and in a callback of an event loop or of another future, which
            cannot wait for it; the future may still be cancelled later.
        """
        if not self.is_decided:
            self._canceller.cancel([self])
            self._canceller.wait_until_decided(self)
        return self.cancelled()

    @property
    def is_decided(self) -> bool:
        """Whether its call has begun, or never will."""
        return self.running() or self.done()

    def withdraw(self) -> bool:
        """Mark it as cancelled unless it has begun; returns whether it is."""
        return super().cancel() and not self.begin()

    def begin(self) -> bool:
        """Mark it as running; returns whether it is, and was not cancelled before."""
        if self._begun is None:
            self._begun = self.set_running_or_notify_cancel()
        return self._begun
