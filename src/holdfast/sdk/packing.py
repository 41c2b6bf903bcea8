"""``holdfast.PackedExecutor``: calls submitted one by one, several of them in each job."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import Executor as StandardExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from holdfast.client.forking import after_fork
from holdfast.sdk.calls.folder import pickled
from holdfast.sdk.calls.worker import calls
from holdfast.sdk.executor import Executor
from holdfast.sdk.futures import SubmittedFuture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from holdfast.sdk.calls.outcome import CallOutcome
    from holdfast.sdk.client import Client
    from holdfast.sdk.futures import JobFuture
    from holdfast.sdk.job import Job
    from holdfast.sdk.manifest import Options

P = ParamSpec("P")
T = TypeVar("T")


class PackedFuture(SubmittedFuture[T, "JobFuture[list[CallOutcome]]"], Generic[T]):
    """A future whose call is part of a job; it counts as running once that is sent."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def attach(self, carrier: JobFuture[list[CallOutcome]] | None) -> None:
        """Note the future of its job; ``None`` if there never will be one."""
        self.data = b""
        self.submitted(carrier)

    def job(self, timeout: float | None = None) -> Job[Any]:
        """Return the job it is part of, once that is submitted.

        Raises:
            TimeoutError: It is not submitted within ``timeout`` seconds.
            Exception: Why it was never submitted.
        """
        return self._once_submitted(timeout).job(timeout)


class PackedExecutor(StandardExecutor):
    """Runs short calls as jobs of several calls each: starting a Python costs more than such a call.

    What a call raises is its future's, and fails neither the others nor the job; so it is not retried. A job that fails
    as a whole, as when its node is lost or a call ends the process, is retried by policy with all its calls.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        calls_per_job: int = 20,
        window_s: float = 0.02,
        **options: Unpack[Options],
    ) -> None:
        """Check that such jobs would be accepted.

        Args:
            client: The client to submit with; default ``Client.from_env()``, closed with the executor.
            calls_per_job: The most calls in a job, one after the other.
            window_s: How long a call waits for others to share its job with.
            **options: Options of every job; see ``Client.submit``.

        Raises:
            ValueError: ``calls_per_job`` is less than 1.
            InvalidRequest: Jobs with such options would be refused.
        """
        if calls_per_job < 1:
            msg = "calls_per_job must be at least 1"
            raise ValueError(msg)
        self._executor = Executor(client, **options)
        self._most, self._window_s = calls_per_job, window_s
        self._stopping = False
        self._begin()
        after_fork(self, PackedExecutor._begin)

    def _begin(self) -> None:
        """Begin with no calls; those there were belong to the process that this one was forked from."""
        self._turn, self._sending = threading.Lock(), threading.Lock()
        self._loose: list[PackedFuture[Any]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> PackedFuture[T]:
        """Submit a call.

        Raises:
            RuntimeError: The executor was shut down.
            TypeError: The function or an argument cannot be pickled.
        """
        future: PackedFuture[T] = PackedFuture(pickled(fn, args, kwargs))
        with self._turn:
            if self._stopping:
                msg = "cannot schedule new futures after shutdown"
                raise RuntimeError(msg)
            self._loose.append(future)
            first, full = len(self._loose) == 1, len(self._loose) >= self._most
            if first:
                self._executor.expect(more=True)
        if full:
            self._flush()
        elif first:
            threading.Timer(self._window_s, self._flush).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its parent
        """Accept no more calls; submitted ones are made.

        Args:
            wait: Whether to wait until all jobs have ended.
            cancel_futures: Whether to cancel those that have not begun.
        """
        with self._turn:
            self._stopping = True
            loose = [*self._loose] if cancel_futures else []
        for future in loose:
            future.cancel()
        self._flush()
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _flush(self) -> None:
        """Send what waits; once this returns, no other thread is about to send any of it either."""
        with self._sending:
            with self._turn:
                pack, self._loose = self._loose, []
            if pack:
                self._send_all(pack)

    def _send_all(self, pack: Sequence[PackedFuture[Any]]) -> None:
        chosen = []
        for future in pack:
            if future.set_running_or_notify_cancel():
                chosen.append(future)
            else:
                future.attach(None)
        try:
            if chosen:
                self._send(chosen)
        finally:
            self._executor.expect(more=False)

    def _send(self, pack: Sequence[PackedFuture[Any]]) -> None:
        try:
            carrier = self._executor.submit(calls, [future.data for future in pack], self._executor.max_bytes)
        except Exception as error:  # noqa: BLE001 - a timer's thread has nobody to tell but those who wait
            for future in pack:
                future.set_exception(error)
                future.attach(None)
            return
        for future in pack:
            future.attach(carrier)
        carrier.add_done_callback(partial(_deal, pack))


def _deal(pack: Sequence[PackedFuture[Any]], carrier: Future[list[CallOutcome]]) -> None:
    """Complete each future with the outcome of its call, or of the job."""
    error: BaseException | None = None
    outcomes: Sequence[CallOutcome | None] = [None] * len(pack)
    if carrier.cancelled():
        error = CancelledError("its job was cancelled")
    elif (error := carrier.exception()) is None:
        outcomes = carrier.result()
    for future, outcome in zip(pack, outcomes, strict=True):
        try:
            value = None if outcome is None else outcome.value()
        except Exception as raised:  # noqa: BLE001 - whatever the call raised is the future's
            future.set_exception(raised)
        else:
            future.set_result(value) if error is None else future.set_exception(error)
