"""Deletes what is no longer needed: old jobs and audit entries, and secrets and inputs that no job names any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.app.data.ownership import word_of
from holdfast.app.loops.loop import Loop
from holdfast.app.time import SystemClock
from holdfast.engines.process.files import ProcessFiles
from holdfast.errors import HoldfastError
from holdfast.service.admission import inputs, secrets
from holdfast.service.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.leadership import Leadership
    from holdfast.app.settings import Settings
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.clock import Clock
    from holdfast.ports.retention import RetentionStore
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store

_SWEEP_EVERY_S = 600.0
_EXPIRE_EVERY_S = 2.0
"""How long after its expiry a job may be deleted."""
_AFTER_FAILURE_S = 60.0
_BETWEEN_STEPS_S = 0.1
"""Leaves the database to the controller most of the time."""
_log = logging.getLogger(__name__)


def forget_regularly(stack: ExitStack, settings: Settings, directory: DataDir, store: RetentionStore) -> None:
    """Delete in the background jobs and audit entries that are old or expire, until the stack ends it."""
    retention = Retention(store, ProcessFiles(directory.runs), word_of(directory))
    forgetter = Forgetter(retention, settings.retention, SystemClock(), acts_age_s=settings.audit_retention)
    loop = Loop("holdfast-retention", forgetter.step)
    stack.callback(loop.stop)
    loop.start()


class Forgetter:
    """Deletes jobs soon after they expire, and sweeps old jobs and audit entries again and again, in bounded steps."""

    def __init__(
        self, retention: Retention, age_s: float | None, clock: Clock, *, acts_age_s: float | None = None
    ) -> None:
        """Begin with a sweep.

        Args:
            retention: Deletes.
            age_s: How long to keep jobs that have ended; ``None``: until they expire by themselves.
            clock: The time.
            acts_age_s: How long to keep entries of the audit log; ``None``: forever.
        """
        self._acts_age_s, self._acts_at = acts_age_s, 0.0
        self._retention = retention
        self._age_s = age_s
        self._clock = clock
        self._sweep: Iterator[int] | None = None
        self._sweep_at = self._expire_at = 0.0
        self._forgotten = 0
        self._failures: dict[str, str] = {}
        """The last error of each part that fails, which is logged once."""

    def step(self) -> float:
        """Take one step; returns how long to wait for the next."""
        now = self._clock.now()
        has_more = [self._try(part, now) for part in (self._expire, self._sweep_step, self._forget_acts)]
        return _BETWEEN_STEPS_S if any(has_more) else _EXPIRE_EVERY_S

    def _try(self, part: Callable[[float], bool], now: float) -> bool:
        try:
            has_more = part(now)
        except HoldfastError as error:
            if self._failures.get(part.__name__) != str(error):
                _log.warning("deleting old jobs failed; trying again later: %s", error)
            self._failures[part.__name__] = str(error)
            return False
        if has_more:
            self._failures.pop(part.__name__, None)
        return has_more

    def _expire(self, now: float) -> bool:
        """Delete some expired jobs; returns whether there may be more."""
        if now < self._expire_at:
            return False
        self._expire_at = now + _AFTER_FAILURE_S
        forgotten = self._retention.expire(now)
        self._expire_at = now
        return forgotten > 0

    def _forget_acts(self, now: float) -> bool:
        """Delete some old audit entries, if that is due; returns whether there may be more."""
        if self._acts_age_s is None or now < self._acts_at:
            return False
        self._acts_at = now + _SWEEP_EVERY_S
        more = next(self._retention.forget_acts(now - self._acts_age_s), None) is not None
        if more:
            self._acts_at = now
        return more

    def _sweep_step(self, now: float) -> bool:
        """Take one step of the sweep, if it is under way or due; returns whether there may be more."""
        if self._age_s is None or now < self._sweep_at:
            return False
        sweep, self._sweep = self._sweep or self._retention.sweep(ended_before=now - self._age_s), None
        self._sweep_at = now + _SWEEP_EVERY_S
        forgotten = next(sweep, None)
        if forgotten is not None:
            self._sweep, self._sweep_at = sweep, now
            self._forgotten += forgotten
            return True
        if self._forgotten:
            _log.info("%d old jobs deleted", self._forgotten)
        self._forgotten = 0
        return False


class Sweeping:
    """Deletes secrets and inputs that no job names any more, while this process leads; a loop takes its steps."""

    def __init__(self, kept: Secrets | None, blobs: Blobs | None, store: Store, leadership: Leadership) -> None:
        self._secrets, self._blobs, self._store, self._leadership = kept, blobs, store, leadership

    def step(self) -> float:
        """Sweep once; returns how long to wait for the next step."""
        if self._leadership.refusal() is None:
            try:
                now = SystemClock().now()
                if self._secrets is not None:
                    secrets.sweep(self._secrets, self._store, now)
                if self._blobs is not None:
                    inputs.sweep(self._blobs, self._store, now)
            except HoldfastError as error:
                _log.warning("secrets and inputs of deleted jobs cannot be deleted now: %s", error)
        return _SWEEP_EVERY_S
