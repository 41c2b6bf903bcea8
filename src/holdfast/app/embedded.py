"""Controller, local executor and lease as threads of this process: the embedded server without its API.

A command without a server drives the jobs of its data directory with them, as soon as no other process does. When the
controller's memory can no longer be trusted, it is dropped and rebuilt from the store, under a new lease.
"""

from __future__ import annotations

import gc
import logging
import os
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from holdfast.app import running, wiring
from holdfast.app.loops.configuring import Configuring
from holdfast.app.loops.forgetting import Sweeping
from holdfast.app.loops.loop import Loop
from holdfast.app.loops.notifying import Notifying
from holdfast.app.time import SortableIds, SystemClock, SystemDice
from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.controller.mailbox import Mailbox
from holdfast.domain.record import Struct, evolve
from holdfast.domain.units import format_instant
from holdfast.engines.process.client import require_compatible
from holdfast.errors import Conflict, HoldfastError, Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.engine import RunPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.data.ownership import Ownership
    from holdfast.app.leadership import Leadership
    from holdfast.app.settings import Settings
    from holdfast.app.telemetry import Telemetry
    from holdfast.domain.audit import Caller
    from holdfast.domain.file_settings import FileSettings
    from holdfast.ports.engine import Engine, NodeInfo
    from holdfast.ports.store import ControllerStore

EXECUTOR = "local"
POLL_S, IDLE_POLL_S = 0.05, 0.25
"""How long a request of another process waits at most, soon after something happened and later."""
_IDLE_AFTER_S = 5.0
HEARTBEAT_S = 1.0
_SWEEP_S = 1.0
"""The longest without a tick."""
_AFTER_REFUSED_COMMIT_S = 0.2
_STANDBY_S = 1.0
TRY_EVERY_S = 0.25
_DRIVING_S = 3600.0
_YOUNG = 20_000
"""New objects before the garbage collector runs; a tick with thousands of records makes that many."""
_AWAY = "waiting for the database"
_log = logging.getLogger(__name__)


class Serving(Struct, frozen=True):
    """What a server adds to the loops."""

    telemetry: Telemetry
    url: str
    """The server's address for programs."""


class Embedded:
    """The loops of an embedded server."""

    def __init__(
        self,
        store: ControllerStore,
        engine: Engine,
        leadership: Leadership,
        telemetry: Telemetry | None,
        settings: ControllerSettings,
    ) -> None:
        """Wire controller and executor to an engine and a store that this process leads; ``start`` starts them."""
        self._settings = evolve(settings, look_every_s=POLL_S, executor_lease_s=None)
        self._store = store
        self._telemetry = telemetry
        self._leadership = leadership
        self._engine = engine
        self._clock = SystemClock()
        self._ids = SortableIds()
        self._controller: Controller | None = None
        self._epoch: int | None = None
        """The epoch in which the controller's memory was loaded."""
        self._failure: HoldfastError | None = None
        self._failing_since = 0.0
        """When the current failure began."""
        self.configuring: Configuring | None = None
        """Applies the configuration file, if there is one."""
        self.reserve: Loop | None = None
        self._last_message = ""
        self._hinted = False
        self.on_notification: Callable[[], None] = lambda: None
        """Called after a commit that has notifications."""
        self._due_at = float("-inf")
        """When the controller next has something to do by itself; monotonic, like the next."""
        self._active_at = monotonic()
        self._keep = Loop("holdfast-lease", leadership.keep)
        self._control = Loop("holdfast-controller", self._tick)
        self._mailbox = Mailbox(wake=self._control.wake, hopeless=leadership.is_over)
        self._executor = Executor(EXECUTOR, engine, self._mailbox, clock=self._clock, fenced=leadership.is_over)
        self._execute = Loop("holdfast-executor", self._step)
        engine.on_change(self._execute.wake)
        self._mailbox.on_change(EXECUTOR, self._execute.wake)

    def nodes(self) -> Sequence[NodeInfo]:
        """List the engine's nodes."""
        return self._engine.nodes()

    def start(self) -> None:
        """Start the loops."""
        self._keep.start()
        self._control.start()
        self._execute.start()

    def wake(self) -> None:
        """Hint that there is a new request."""
        self._hinted = True
        self._control.wake()

    def stop(self) -> None:
        """Stop the loops; runs continue, and a later server takes them over."""
        self._mailbox.close()
        self._execute.stop()
        self._control.stop()
        self._keep.stop()
        if any(seen.phase is not RunPhase.FINISHED for seen in self._engine.observe().values()):
            self._leadership.leave_programs()
        self._engine.close()

    def failure(self) -> HoldfastError | None:
        """Return the error of the controller's last turn, if it failed."""
        return self._failure

    def trouble(self) -> str | None:
        """Return what keeps the loops from working, or ``None``."""
        failure = self._failure
        why = self._leadership.trouble() or (failure.message if failure else None)
        if why is not None and isinstance(failure, Unavailable):
            return f"{why}, since {format_instant(self._failing_since)}"
        of_file = None if self.configuring is None else self.configuring.trouble()
        return why or self._engine.trouble() or of_file

    def reconfigure(self) -> None:
        """Read the configuration file again, if there is one."""
        if self.configuring is not None and self.reserve is not None:
            self.configuring.again()
            self.reserve.wake()

    def reload(self, caller: Caller) -> tuple[FileSettings, bool] | None:
        """Read the configuration file now; ``None`` if there is none. See ``Configuring.reload``."""
        return None if self.configuring is None else self.configuring.reload(caller)

    def refusal(self) -> Unavailable | None:
        """Return why this process may write nothing, not even requests; ``None`` if it may."""
        return self._leadership.refusal()

    def _tick(self) -> float:
        try:
            if (wait_s := self._rest_s()) is None:
                wait_s = self._led(self._leadership.epoch())
        except Conflict as error:
            self._failed("deposed", error)
            self._leadership.lose(error.message)
            self._keep.wake()
        except Unavailable as error:
            self._failed(_AWAY, error)
        except HoldfastError as error:
            self._failed("the controller cannot work", error)
        else:
            return wait_s
        return _STANDBY_S

    def _failed(self, event: str, error: HoldfastError) -> None:
        """Remember what keeps the controller from working, and log it once, however often it recurs."""
        if self._failure is None or event != self._last_message:
            _log.warning("%s: %s", event, error, exc_info=not isinstance(error, Conflict | Unavailable))
        self._failing_since = self._clock.now() if self._failure is None else self._failing_since
        self._failure, self._last_message = error, event

    def _rest_s(self) -> float | None:
        """Return how long to wait if there is nothing to do; only with work to do, the lease is checked."""
        # Forgotten while it works: if it raises, its memory cannot be trusted, and the next turn rebuilds it.
        controller, self._controller, now = self._controller, None, monotonic()
        busy = (
            controller is None or self._hinted or self._mailbox.waiting or now >= self._due_at or controller.has_news()
        )
        self._controller = controller
        return None if busy else self._poll_s(now)

    def _poll_s(self, now: float) -> float:
        return POLL_S if now - self._active_at < _IDLE_AFTER_S else IDLE_POLL_S

    def _led(self, epoch: int) -> float:
        controller, self._controller = self._controller, None
        if controller is None or self._epoch != epoch:
            controller = self._loaded()
        began, exchanges = monotonic(), self._mailbox.take()
        hinted, self._hinted = self._hinted, False
        ticked = controller.tick(exchanges, look=hinted)
        self._controller = controller
        ahead = {}
        # Exchanges that arrived during a tick that changed their answer would otherwise get it only after the next.
        for exchange in self._mailbox.take():
            answered = ticked.responses.get(exchange.executor)
            if exchange.executor in ticked.changed and (answered is None or answered.sequence != exchange.sequence):
                ahead[exchange.executor] = controller.answer(exchange)
        self._mailbox.answer(ticked.responses, ticked.changed, ahead)
        if ticked.written.notifications:
            self.on_notification()
        if self._telemetry is not None:
            self._telemetry.ticked(
                ticked,
                short=controller.shortages.by_name(),
                quarantined=len(controller.quarantine),
                took_s=monotonic() - began,
                now=self._clock.now(),
            )
        if ticked.refused is not None:
            self._due_at = float("-inf")
            self._failed(_AWAY, ticked.refused)
            return _AFTER_REFUSED_COMMIT_S
        if self._failure is not None:
            _log.warning("the controller works again")
            self._failure = None
        now = monotonic()
        due_s = 0.0 if ticked.more else began + _SWEEP_S - now
        if ticked.next_due is not None:
            due_s = min(due_s, ticked.next_due - self._clock.now())
        self._due_at = now + due_s
        if hinted or ticked.written:
            self._active_at = now
        return min(self._poll_s(now), max(0.0, due_s))

    def _loaded(self) -> Controller:
        # Once the lease is taken, a commit whose answer was lost has ended, so what is read now is final.
        self._epoch = self._leadership.take()
        with loading_records():
            return Controller(
                self._store,
                clock=self._clock,
                dice=SystemDice(),
                load_spec=load_spec,
                controller_epoch=self._ids.new(),
                settings=evolve(self._settings, epoch=self._epoch),
            )

    def _step(self) -> float:
        return HEARTBEAT_S if self._executor.step() else _AFTER_REFUSED_COMMIT_S


@contextmanager
def driving(settings: Settings, directory: DataDir, *, places: bool = True) -> Iterator[Callable[[], None]]:
    """Drive the directory's jobs for as long as the context lasts; without ``places`` only those that run.

    A process that is forked meanwhile drives nothing, and ends nothing when it leaves the context.

    Yields:
        A function that raises an error that waiting does not cure, if one has happened to the loops here.

    Raises:
        Conflict: The directory is a copy of one that is in use, or its database was replaced.
        EngineError, Internal: The engine does not start; the database is damaged.
    """
    driver, driving_process = _Driver(settings, directory, places=places), os.getpid()
    watch = Loop("holdfast-driver", driver.watch)
    driver.try_to_drive()
    watch.start()
    try:
        yield driver.require_working
    finally:
        if os.getpid() == driving_process:
            watch.stop()
            driver.stop()


class _Driver:
    """Takes the directory as soon as it is free, and runs the loops."""

    def __init__(self, settings: Settings, directory: DataDir, *, places: bool) -> None:
        self._settings = settings
        self._places = places
        self._directory = directory
        self._held: ExitStack | None = None
        self._embedded: Embedded | None = None
        self._failure: HoldfastError | None = None

    def watch(self) -> float:
        """Try again until it drives; returns how long to wait before the next call."""
        try:
            self.try_to_drive()
        except HoldfastError as error:
            self._failure = error
        return TRY_EVERY_S if self._held is None and self._failure is None else _DRIVING_S

    def try_to_drive(self) -> None:
        """Take over if the directory is free."""
        if self._held is not None:
            return
        with ExitStack() as stack:
            try:
                ownership = running.own(self._settings, self._directory, "run")
                stack.callback(ownership.release)
                self._embedded = start_embedded(stack, self._settings, self._directory, ownership, places=self._places)
            except Unavailable:
                return  # another process drives, or the database is not available now
            self._held = stack.pop_all()

    def require_working(self) -> None:
        failure = self._failure or (self._embedded.failure() if self._embedded is not None else None)
        if failure is not None and not isinstance(failure, Unavailable | Conflict):
            raise failure

    def stop(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def start_embedded(
    stack: ExitStack,
    settings: Settings,
    directory: DataDir,
    ownership: Ownership,
    serving: Serving | None = None,
    *,
    places: bool = True,
) -> Embedded:
    """Start controller and executor on a data directory this process owns; the stack ends them.

    Raises:
        Unavailable: Another process leads the database, or it cannot be reached.
        EngineError: Programs are held by another version, or the engine does not start.
        Internal: The database is damaged, or older than what was written last.
    """
    require_compatible(directory.runs)
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    running.refuse_loss(settings, directory, ownership)
    if (pause := store.paused()) is not None:
        _log.warning("%s", pause.in_words())
    leadership = running.leadership(settings, directory, ownership, store)
    stack.callback(leadership.step_down)
    ownership.led(leadership.take())
    tokens, telemetry = running.tokens(directory), None if serving is None else serving.telemetry
    identity = running.no_variables if serving is None else partial(tokens.environment, serving.url)
    limits = ControllerSettings(places=places, pods=running.pods(settings), hopeless=running.hopeless(settings))
    limits = evolve(limits, token_digest=tokens.digest)
    engine = running.engine(settings, directory, ownership, identity)
    embedded = Embedded(store, engine, leadership, telemetry, limits)
    if settings.armada_config is not None:
        embedded.configuring = Configuring(settings.armada_config, store, leadership)
        embedded.configuring.step()
    elif store.catalogue().configured is not None:
        store.put_configured(None)
    telling = Notifying(store, settings, directory, leadership, telemetry)
    tell = Loop("holdfast-notify", telling.step)
    embedded.on_notification = telling.wake = tell.wake
    stack.callback(telling.end, drain=telemetry is None)
    stack.callback(tell.stop)
    stack.callback(embedded.stop)
    embedded.start()
    tell.start()
    kept, blobs = wiring.secrets(settings, directory), wiring.blobs(settings, directory)
    if kept is not None or blobs is not None:
        sweeping = Loop("holdfast-secrets", Sweeping(kept, blobs, store, leadership).step)
        stack.callback(sweeping.stop)
        sweeping.start()
    keep = directory.reserve.keep
    if embedded.configuring is not None:
        keep = partial(_both, keep, embedded.configuring.step)
    embedded.reserve = reserve = Loop("holdfast-reserve", keep)
    stack.callback(reserve.stop)
    reserve.start()
    return embedded


def _both(first: Callable[[], float], other: Callable[[], float]) -> float:
    return min(first(), other())


@contextmanager
def loading_records() -> Iterator[None]:
    """Suspend garbage collection while a store is read into memory, and exempt what was read from it afterwards.

    Otherwise a million waiting jobs would cost seconds at start-up and pauses afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG, 20, 50)
        if was_enabled:
            gc.enable()
