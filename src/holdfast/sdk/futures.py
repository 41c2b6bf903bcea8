"""The futures of an executor, and the thread that submits their jobs and brings back what became of them.

One request submits all calls that wait, one asks for the states of all jobs that are not over.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.client.connection import new_key
from holdfast.client.errors import of_details
from holdfast.client.forking import after_fork
from holdfast.client.silence import Outage
from holdfast.errors import Conflict, Internal, NotFound, Unavailable
from holdfast.sdk.job import Job
from holdfast.sdk.states import ENDED
from holdfast.sdk.waiting import GONE, Rests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.sdk.calls.folder import Call
    from holdfast.sdk.client import Client
    from holdfast.sdk.manifest import Manifest

T = TypeVar("T")
M = TypeVar("M")
_MOST_AT_ONCE = 1000
_IDLE_S = 1.0
"""How soon it is noticed that the program is at its end."""
_log = logging.getLogger("holdfast.sdk")


class SubmittedFuture(Future[T], Generic[T, M]):
    """A future whose call is submitted as something that is known a little later."""

    def __init__(self) -> None:
        """Begin before it is submitted."""
        super().__init__()
        self._submitted = threading.Event()
        self._made: M | None = None
        after_fork(self, SubmittedFuture._leave)

    def submitted(self, made: M | None) -> None:
        """Take note of what it was submitted as, or that nothing will come of it if nothing has."""
        self._made = made or self._made
        self._submitted.set()

    def _leave(self) -> None:
        """Leave what is not over to the process that this one was forked from: nobody completes it here."""
        self._condition = threading.Condition()
        if self._state in {"PENDING", "RUNNING"}:
            super().__init__()
            self.set_exception(RuntimeError("the call's result goes to the process that this one was forked from"))
        self._submitted = threading.Event()
        self._submitted.set()

    def _once_submitted(self, timeout: float | None) -> M:
        """Wait for that.

        Raises:
            TimeoutError: It is not submitted within so many seconds.
            Exception: Why it was never submitted.
        """
        if not self._submitted.wait(timeout):
            msg = f"the job is not submitted within {timeout} s"
            raise TimeoutError(msg)
        if self._made is None:
            self.result(0)
            msg = "the call was cancelled before it was submitted"
            raise RuntimeError(msg)
        return self._made


class JobFuture(SubmittedFuture[T, "Job[T]"], Generic[T]):
    """A future whose call is a job."""

    def __init__(self, pump: Pump, call: Call, manifest: Manifest) -> None:
        """Begin before it is submitted."""
        super().__init__()
        self._pump = pump
        self._begun: bool | None = None
        self.call = call
        self.manifest = manifest
        self.over = False
        """Whether nothing more will become of it."""

    def job(self, timeout: float | None = None) -> Job[T]:
        """Return the job, once it is submitted.

        Raises:
            TimeoutError: It is not within so many seconds.
            Exception: Why it was never submitted.
        """
        return self._once_submitted(timeout)

    def cancel(self) -> bool:
        """Cancel the job unless it has begun; ``job().cancel()`` also ends one that runs."""
        if not super().cancel():
            return False
        self._pump.cancelled(self)
        return True

    def begin(self) -> bool:
        """Count as running from now on; returns whether it does, and was not cancelled before."""
        if self._begun is None:
            self._begun = self.set_running_or_notify_cancel()
        return self._begun


class Pump:
    """Submits what was added and completes futures; ends when it was stopped, or the program did, and all are over."""

    def __init__(self, client: Client, *, owned: bool) -> None:
        """Begin.

        Args:
            client: By which to submit.
            owned: Whether to close it at the end.
        """
        self._client = client
        self._owned = owned
        self.stopping = False
        self._begin()
        after_fork(self, Pump._begin)

    def _begin(self) -> None:
        """Begin with no futures; those there were belong to the process that this one was forked from."""
        self._changed = threading.Condition()
        self._fresh: deque[JobFuture[Any]] = deque()
        self._cancelled: deque[JobFuture[Any]] = deque()
        self._batch: list[JobFuture[Any]] = []
        """What is being submitted, with ``_key``."""
        self._key = ""
        self._waiting: dict[str, JobFuture[Any]] = {}
        self._held: set[str] = set()
        self._silence = Outage(self._client.api.connection.patience_s)
        self._is_away = False
        """Whether the server did not answer when it was last asked."""
        self._expected = 0
        """How many futures are about to be added."""
        self._thread: threading.Thread | None = None

    def add(self, future: JobFuture[Any]) -> None:
        """Submit a future's job soon."""
        with self._changed:
            self._fresh.append(future)
            self._go_on()

    def expect(self, more: int) -> None:
        """Do not end before so many more futures are added, or that many fewer."""
        with self._changed:
            self._expected += more
            self._go_on()

    def _go_on(self) -> None:
        if self._thread is None:
            # Not a daemon: as with the standard library's executors, a program ends when what it submitted is over.
            self._thread = threading.Thread(target=self._run, name="holdfast-futures", daemon=False)
            self._thread.start()
        self._changed.notify()

    def cancelled(self, future: JobFuture[Any]) -> None:
        """Cancel a future's job soon."""
        with self._changed:
            self._cancelled.append(future)
            self._changed.notify()

    def stop(self, *, cancel: bool = False, kill: bool = False) -> None:
        """End once all futures are done; ``cancel`` those that have not begun, and ``kill`` those that have."""
        with self._changed:
            self.stopping = True
            listed = [*self._fresh, *self._batch, *self._waiting.values()]
            is_idle = self._thread is None
            self._changed.notify()
        if is_idle and self._owned:
            self._client.close()
        for future in listed if cancel else ():
            if not future.cancel() and kill and not future.done():
                future.job().cancel("its executor was aborted")

    def join(self) -> None:
        """Wait for its end."""
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        rests, rest_s = Rests(), 0.0
        while self._has_work(rest_s):
            try:
                news = self._turn()
                self._is_away = False
                self._silence.answered()
            except Unavailable as error:
                news = self._lost(error)
            except Exception as error:  # noqa: BLE001 - futures must not wait for ever, whatever goes wrong here
                _log.exception("an executor cannot go on")
                news = self._give_up(error)
            rest_s = rests.after(news=news, things=len(self._waiting))
        if self._owned:
            self._client.close()

    def _has_work(self, rest_s: float) -> bool:
        """Rest until there is something to do; returns whether there ever will be."""
        with self._changed:
            if self._is_away:
                self._changed.wait(rest_s)
            while not (self._fresh or self._cancelled):
                if self._waiting or self._batch:
                    self._changed.wait(rest_s)
                    return True
                if not self._expected and (self.stopping or not threading.main_thread().is_alive()):
                    return False
                self._changed.wait(_IDLE_S)
            return True

    def _turn(self) -> bool:
        """Submit, cancel and look once; returns whether anything happened."""
        if not self._batch:
            self._batch, self._key = self._taken(), new_key()
        news = bool(self._batch)
        if self._batch:
            self._submit(self._batch)
        while self._cancelled:
            self._cancel(self._cancelled[0])
            self._cancelled.popleft()
        return self._look() or news

    def _taken(self) -> list[JobFuture[Any]]:
        """Take what waits to be submitted, without what was cancelled before."""
        with self._changed:
            taken = [self._fresh.popleft() for _ in range(min(len(self._fresh), _MOST_AT_ONCE))]
        for future in taken:
            if future.cancelled():
                self._end(future)
        return [future for future in taken if not future.over]

    def _submit(self, futures: Sequence[JobFuture[Any]]) -> None:
        """Submit all in one request; sent again after a lost answer it has the same key, so that none comes twice."""
        manifests = [future.manifest for future in futures]
        found = self._client.api.submit_bulk(manifests, atomic=False, key=self._key).items
        accepted: dict[str, JobFuture[Any]] = {}
        for future, item in zip(futures, found, strict=True):
            if item.id is None:
                self._end(future, of_details(item.error) if item.error else Internal())
                continue
            future.call.note_job(item.id)
            future.submitted(Job(self._client.api, item.id, item.name or "", future.call))
            accepted[item.id] = future
        with self._changed:
            self._waiting.update(accepted)
            self._batch = []

    def _cancel(self, future: JobFuture[Any]) -> None:
        if not future.over:
            job_id = future.job().id
            with suppress(Conflict, NotFound):  # it ended, or was deleted, before anybody looked
                self._client.api.cancel(job_id, reason="its future was cancelled")
            self._drop(job_id)
            self._end(future)

    def _look(self) -> bool:
        """Complete the futures of jobs that have ended; returns whether there were any."""
        states = self._client.api.states(list(self._waiting)) if self._waiting else {}
        ended = [job_id for job_id in self._waiting if states.get(job_id, GONE) in {*ENDED, GONE}]
        for job_id in ended:
            self._bring(self._waiting[job_id], states.get(job_id, GONE))
            self._drop(job_id)
        for job_id, future in self._waiting.items():
            if states[job_id] != "Queued":
                future.begin()
            if states[job_id] == "Held" and job_id not in self._held:
                self._held.add(job_id)
                _log.warning("job %s is held; to release it: holdfast release %s", job_id, job_id)
        return bool(ended)

    def _drop(self, job_id: str) -> None:
        with self._changed:  # whoever stops it looks through what waits
            self._waiting.pop(job_id, None)

    def _bring(self, future: JobFuture[Any], state: str) -> None:
        """Complete a future with what its job came to.

        Raises:
            Unavailable: The server cannot be asked about a failure right now.
        """
        left = future.call.last_outcome() if state == "Succeeded" else None
        try:
            value = left.value() if left is not None and left.ok else future.job().outcome()
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the call raised is the future's
            self._end(future, error)
        else:
            self._end(future, value=value)

    def _end(self, future: JobFuture[Any], error: Exception | None = None, *, value: object = None) -> None:
        """Complete a future, or tell those who wait for it that it was cancelled."""
        future.over = True
        future.submitted(None)
        future.call.delete()
        if not future.begin():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def _lost(self, error: Unavailable) -> bool:
        """Give up when the server was away for too long; jobs go on without us."""
        self._is_away = True
        try:
            self._silence.failed(error)
        except Unavailable:
            self._silence = Outage(self._client.api.connection.patience_s)
            return self._give_up(error)
        return False

    def _give_up(self, error: Exception) -> bool:
        with self._changed:
            left = [*self._batch, *self._waiting.values()]
            self._batch, self._is_away = [], False
            self._waiting.clear()
            self._cancelled.clear()
        for future in left:
            if not future.over:
                self._end(future, error)
        return bool(left)
