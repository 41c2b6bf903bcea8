"""Controller, local executor and lease as threads of this process: the embedded server without its API.

When the controller's memory can no longer be trusted, it is dropped and rebuilt from the store, under a new lease.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import structlog

from holdfast.app import collector
from holdfast.app.loop import Loop
from holdfast.app.time import SortableIds, SystemClock, SystemDice
from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings, Ticked
from holdfast.controller.mailbox import Mailbox
from holdfast.errors import Conflict, HoldfastError, Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.engine import RunPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.leadership import Leadership
    from holdfast.app.telemetry import Telemetry
    from holdfast.ports.engine import Engine, NodeInfo
    from holdfast.ports.exchange import ExchangeResponse
    from holdfast.ports.store import ControllerStore

EXECUTOR = "local"
POLL_S = 0.05
"""The longest a request from another process waits before it is looked at."""
LOOK_EVERY_S = 0.02
HEARTBEAT_S = 1.0
_SWEEP_S = 1.0
"""The longest without a tick."""
_AFTER_REFUSED_COMMIT_S = 0.2
_STANDBY_S = 1.0
_AWAY = "waiting for the database"
_log = structlog.get_logger(__name__)


class Embedded:
    """The loops of an embedded server."""

    def __init__(
        self,
        store: ControllerStore,
        engine: Engine,
        leadership: Leadership,
        telemetry: Telemetry,
        settings: ControllerSettings,
    ) -> None:
        """Wire controller and executor over a store this process leads, and an engine; ``start`` begins."""
        self._settings = replace(settings, look_every_s=LOOK_EVERY_S, executor_lease_s=None)
        self._store = store
        self._telemetry = telemetry
        self._leadership = leadership
        self._engine = engine
        self._clock = SystemClock()
        self._ids = SortableIds()
        self._controller: Controller | None = None
        self._epoch: int | None = None
        """Under which the controller's memory was loaded."""
        self._failure: HoldfastError | None = None
        self._told = ""
        self._hinted = False
        self._due_at = float("-inf")
        """When the controller has something to do without being told."""
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
        """Begin."""
        self._keep.start()
        self._control.start()
        self._execute.start()

    def wake(self) -> None:
        """Hint that there is a new request."""
        self._hinted = True
        self._control.wake()

    def stop(self) -> None:
        """End both loops; runs continue, and a later server takes them over."""
        self._mailbox.close()
        self._execute.stop()
        self._control.stop()
        self._keep.stop()
        if any(seen.phase is not RunPhase.FINISHED for seen in self._engine.observe().values()):
            self._leadership.leave_programs()
        self._engine.close()

    def failure(self) -> HoldfastError | None:
        """Return why the controller's last turn came to nothing, if it did."""
        return self._failure

    def trouble(self) -> str | None:
        """Say what keeps the loops from working, if anything."""
        failure = self._failure
        return self._leadership.trouble() or (failure.message if failure else None) or self._engine.trouble()

    def refusal(self) -> Unavailable | None:
        """Say why this process may write nothing, also not what only asks for something, if it may not."""
        return self._leadership.refusal()

    def _tick(self) -> float:
        try:
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
        """Remember what keeps the controller from working; told once, however often and in which words it comes."""
        if self._failure is None or event != self._told:
            _log.warning(event, error=str(error), exc_info=not isinstance(error, Conflict | Unavailable))
        self._failure, self._told = error, event

    def _works(self) -> None:
        if self._failure is not None:
            _log.warning("the controller works again")
        self._failure = None

    def _led(self, epoch: int) -> float:
        controller = self._controller if self._epoch == epoch else None
        # Forgotten while it works: a tick that raises leaves memory nobody should trust, and the next one rebuilds it.
        self._controller = None
        if controller is None:
            controller = self._loaded()
        elif self._is_idle(controller):
            self._controller = controller
            return POLL_S
        hinted, self._hinted = self._hinted, False
        began = self._clock.now()
        ticked = controller.tick(self._mailbox.take(), look=hinted)
        self._controller = controller
        self._mailbox.answer(ticked.responses, ticked.changed, self._ahead(controller, ticked))
        self._telemetry.ticked(ticked, began=began, now=self._clock.now())
        if ticked.refused is not None:
            self._due_at = 0.0
            self._failed(_AWAY, ticked.refused)
            return _AFTER_REFUSED_COMMIT_S
        self._works()
        self._due_at = 0.0 if ticked.more else min(ticked.next_due or inf, began + _SWEEP_S)
        return min(POLL_S, max(0.0, self._due_at - self._clock.now()))

    def _is_idle(self, controller: Controller) -> bool:
        """Whether a tick would do nothing: nobody told or asked for anything, and nothing is due."""
        told = self._hinted or self._mailbox.take() or self._clock.now() >= self._due_at
        return not told and not controller.has_news()

    def _ahead(self, controller: Controller, ticked: Ticked) -> dict[str, ExchangeResponse]:
        """Answer who asked during the tick, where that tick changed the answer: else it would come a tick later."""
        answered = {name: response.sequence for name, response in ticked.responses.items()}
        asking = [one for one in self._mailbox.take() if one.executor in ticked.changed]
        return {one.executor: controller.answer(one) for one in asking if one.sequence != answered.get(one.executor)}

    def _loaded(self) -> Controller:
        # A commit whose answer was lost has ended once the lease is taken, so what is read is what there is.
        self._epoch = self._leadership.take()
        with collector.loading():
            return Controller(
                self._store,
                clock=self._clock,
                dice=SystemDice(),
                load_spec=load_spec,
                controller_epoch=self._ids.new(),
                settings=replace(self._settings, epoch=self._epoch),
            )

    def _step(self) -> float:
        return HEARTBEAT_S if self._executor.step() else _AFTER_REFUSED_COMMIT_S
