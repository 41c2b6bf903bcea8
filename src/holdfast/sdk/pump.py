"""The thread behind an executor: it submits the calls of its futures, and completes them with the outcomes.

One request submits all calls that wait, one asks for the states of all jobs that are not over, and one asks for all
that are to be cancelled unless they have begun. Only the server knows whether a job has: it takes such a request, and
what came of it is seen in the states.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from holdfast.client.connection import new_key
from holdfast.client.errors import of_details
from holdfast.client.forking import after_fork
from holdfast.client.jobs import MOST_STATES
from holdfast.client.silence import Outage
from holdfast.errors import HoldfastError, Internal, Unavailable
from holdfast.sdk.job import Job
from holdfast.sdk.states import ENDED
from holdfast.sdk.waiting import GONE, Rests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.sdk.client import Client
    from holdfast.sdk.futures import JobFuture

_MOST_AT_ONCE = 1000
_IDLE_S = 1.0
"""How soon it is noticed that the program is at its end."""
_VERDICT_S = 10.0
"""How long a thread waits to hear whether a call has begun."""
_log = logging.getLogger("holdfast.sdk")


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
        self._to_cancel: list[JobFuture[Any]] = []
        """Futures whose cancellation is still to be requested."""
        self._undecided = False
        """Whether the outcome of such a request is still unknown."""
        self._aborted = False
        self._batch: list[JobFuture[Any]] = []
        """The futures that are being submitted, with ``_key``."""
        self._key = ""
        self._waiting: dict[str, JobFuture[Any]] = {}
        self._held: set[str] = set()
        self._silence = Outage(self._client.api.connection.patience_s)
        self._away_since: float | None = None
        """Since when the server has not answered, by ``time.monotonic``."""
        self._expected = 0
        """How many futures are about to be added."""
        self._thread: threading.Thread | None = None

    def add(self, future: JobFuture[Any]) -> None:
        """Submit a future's job soon."""
        with self._changed:
            self._fresh.append(future)
            self._go_on()

    def expect(self, more: int) -> None:
        """Do not end before this many more futures are added; a negative number takes that back."""
        with self._changed:
            self._expected += more
            self._go_on()

    def _go_on(self) -> None:
        if self._thread is None:
            # Not a daemon: as with the standard library's executors, a program ends when what it submitted is over.
            self._thread = threading.Thread(target=self._run, name="holdfast-futures", daemon=False)
            self._thread.start()
        self._changed.notify_all()

    def cancel(self, futures: Iterable[JobFuture[Any]]) -> None:
        """Cancel futures whose calls have not begun: those that are not submitted at once, the others soon."""
        fresh = []
        with self._changed:
            for future in futures:
                if future.over or (future.to_cancel and not self._aborted):
                    continue
                if future.submission_begun:
                    future.to_cancel = True
                    self._to_cancel.append(future)
                else:
                    future.over = True
                    fresh.append(future)
            self._changed.notify_all()
        for future in fresh:
            future.withdraw()
            self._end(future)
        self._tell()

    def wait_until_decided(self, future: JobFuture[Any]) -> None:
        """Wait until a future's call has begun or never will, or the server does not say so for too long."""
        within_s = self._patience_s()
        with self._changed:
            self._changed.wait_for(lambda: future.is_decided or not future.to_cancel, within_s)

    def _patience_s(self) -> float:
        """How long to wait for the server's decision, less the time for which it has not answered."""
        if threading.current_thread() is self._thread or _called_by_event_loop():
            return 0.0
        away_s = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        return max(0.0, _VERDICT_S - away_s)

    def _tell(self) -> None:
        """Wake those who wait for decisions about futures."""
        with self._changed:
            self._changed.notify_all()

    def stop(self, *, cancel: bool = False, kill: bool = False) -> None:
        """End once all futures are done; ``cancel`` those that have not begun, or ``kill`` those that have, too.

        On return the server has been asked to kill them, if it answers.
        """
        with self._changed:
            self.stopping, self._aborted = True, self._aborted or kill
            listed = [*self._fresh, *self._batch, *self._waiting.values()]
            is_idle = self._thread is None
            self._changed.notify_all()
        if is_idle and self._owned:
            self._client.close()
        if cancel or kill:
            self.cancel(listed)
        if kill:
            within_s = self._patience_s()
            with self._changed:
                self._changed.wait_for(lambda: not self._to_cancel, within_s)

    def join(self) -> None:
        """Wait for its end."""
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        rests, rest_s = Rests(), 0.0
        while self._has_work(rest_s):
            try:
                news = self._turn()
                self._away_since = None
                self._silence.answered()
            except Unavailable as error:
                news = self._lost(error)
            except Exception as error:  # noqa: BLE001 - futures must not wait for ever, whatever goes wrong here
                _log.exception("an executor cannot go on")
                news = self._give_up(error)
            rest_s = rests.after(news=news, things=0 if self._undecided else len(self._waiting))
        if self._owned:
            self._client.close()

    def _has_work(self, rest_s: float) -> bool:
        """Rest until there is something to do; returns whether there ever will be."""
        with self._changed:
            if self._away_since is not None:
                self._changed.wait(rest_s)
            while not (self._fresh or self._to_cancel):
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
        news = self._ask_to_cancel() or news
        return self._look() or news

    def _taken(self) -> list[JobFuture[Any]]:
        """Take what waits to be submitted, without what was cancelled before."""
        batch: list[JobFuture[Any]] = []
        with self._changed:
            while self._fresh and len(batch) < _MOST_AT_ONCE:
                future = self._fresh.popleft()
                if not future.over:
                    future.submission_begun = True
                    batch.append(future)
        return batch

    def _submit(self, futures: Sequence[JobFuture[Any]]) -> None:
        """Submit all in one request; sent again after a lost answer it has the same key, so that none comes twice."""
        manifests = [future.manifest for future in futures]
        items = self._client.api.submit_bulk(manifests, atomic=False, key=self._key).items
        accepted: dict[str, JobFuture[Any]] = {}
        refused: list[tuple[JobFuture[Any], Exception]] = []
        for future, item in zip(futures, items, strict=True):
            if item.id is None:
                refused.append((future, of_details(item.error) if item.error else Internal()))
                continue
            future.call.note_job(item.id)
            future.submitted(Job(self._client.api, item.id, item.name or "", future.call))
            accepted[item.id] = future
        with self._changed:
            self._waiting.update(accepted)
            self._batch = []
        for future, error in refused:
            self._end(future, error)

    def _ask_to_cancel(self) -> bool:
        """Ask for all jobs that are to be cancelled, at once; returns whether there are any."""
        futures = [*self._to_cancel]
        ids = [future.job().id for future in futures if not future.over]
        reason = "its executor was aborted" if self._aborted else "its future was cancelled"
        try:
            for start in range(0, len(ids), MOST_STATES):
                some = ids[start : start + MOST_STATES]
                self._client.api.cancel_many(some, reason=reason, unless_started=not self._aborted)
        except Unavailable:
            raise
        except HoldfastError as error:
            _log.warning("calls cannot be cancelled: %s", error)
            for future in futures:
                future.to_cancel = False
        with self._changed:
            del self._to_cancel[: len(futures)]
        self._tell()
        return bool(ids)

    def _look(self) -> bool:
        """Have futures begin, and complete those of jobs that have ended; returns whether there were any."""
        if not self._waiting:
            return False
        answer = self._client.api.job_states(list(self._waiting))
        started, ended = {*answer.started}, dict[str, str]()
        self._undecided = False
        for job_id, future in [*self._waiting.items()]:
            state = answer.states.get(job_id, GONE)
            if job_id in started or state == "Running":
                future.begin()
            elif future.to_cancel and not (state == "Cancelled" and future.withdraw()):
                self._undecided = True
            if state in {*ENDED, GONE}:
                ended[job_id] = state
            elif state == "Held" and job_id not in self._held:
                self._held.add(job_id)
                _log.warning("job %s is held; to release it: holdfast release %s", job_id, job_id)
        self._tell()
        for job_id, state in ended.items():
            future = self._waiting[job_id]
            if future.cancelled():
                self._end(future)
            else:
                self._bring(future, state)
            self._drop(job_id)
        return bool(ended)

    def _drop(self, job_id: str) -> None:
        with self._changed:  # stop() reads it in another thread
            self._waiting.pop(job_id, None)

    def _bring(self, future: JobFuture[Any], state: str) -> None:
        """Complete a future with the outcome of its job.

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
        """Complete a future, or notify its waiters that it was cancelled."""
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
        """Give up if the server has been away for too long; the jobs continue without us."""
        if self._aborted and not self._to_cancel:
            return self._give_up(error)  # nobody waits for what was aborted, and its client may be closed
        self._away_since = self._away_since or time.monotonic()
        try:
            self._silence.failed(error)
        except Unavailable:
            self._silence = Outage(self._client.api.connection.patience_s)
            return self._give_up(error)
        return False

    def _give_up(self, error: Exception) -> bool:
        with self._changed:
            left = [*self._batch, *self._waiting.values()]
            self._batch, self._away_since = [], None
            self._waiting.clear()
            self._to_cancel.clear()
        for future in left:
            if not future.over:
                self._end(future, error)
        self._tell()
        return bool(left)


def _called_by_event_loop() -> bool:
    """Whether this is a callback of an event loop, as which asyncio cancels what it wraps: nothing else runs on it."""
    import asyncio

    try:
        return asyncio.current_task() is None
    except RuntimeError:  # no loop runs in this thread
        return False
