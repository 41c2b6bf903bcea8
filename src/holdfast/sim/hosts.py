"""The processes of the world: one for the controller, one per executor; they end and come back.

Decides when a loop's step runs and what is left of a process that ended (nothing but its store, or its machine);
the steps themselves are the real ones. What ``app.embedded`` does around a tick is done here the same way.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.controller.sets.sets import PodSettings
from holdfast.dialects.codec import load_spec
from holdfast.domain.policy.model import Backoff
from holdfast.errors import Conflict, Unavailable
from holdfast.executor.executor import Executor
from holdfast.sim.chance import SeededDice
from holdfast.sim.disk import ControllersStore
from holdfast.sim.trace import Crashed, Fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.controller import Ticked
    from holdfast.domain.spec import JobSpec
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse, Transport
    from holdfast.ports.store import Changes, Store
    from holdfast.sim.agenda import Agenda
    from holdfast.sim.chance import Chance
    from holdfast.sim.disk import Disk
    from holdfast.sim.machine import Machine
    from holdfast.sim.trace import Trace

LEASES_S = (18.0, 18.0, 60.0)
"""After how long a controller gives a silent executor up; each world has one of these."""
MARGIN_S = 10.0
"""By how much sooner an executor stops its own runs: all that can keep it from doing so in time."""
HEARTBEAT_S = 2.0
POLL_S = 1.0
_REQUESTS_PER_TICK = 3
_AFTER_FAILURE_S = 0.5
POD_BACKOFF = Backoff(initial_s=1.0, max_s=8.0, multiplier=2.0)
"""Of failed pods, and of programs that start again in theirs."""


class ControllerHost:
    """The controller's process."""

    def __init__(  # noqa: PLR0913 - the world's parts, each by name
        self,
        open_store: Callable[[], Store],
        *,
        disk: Disk,
        agenda: Agenda,
        chance: Chance,
        trace: Trace,
        committed: Callable[[Changes], None],
        begins: Callable[[], None],
        ticked: Callable[[Controller], None],
    ) -> None:
        """Begin with no controller; the first tick makes one.

        Args:
            open_store: Opens the store; called anew for each life.
            disk: What is wrong with the store.
            agenda: The world's time.
            chance: For the controller's dice.
            trace: The diary.
            committed: Told of each commit that succeeded.
            begins: Told before each tick.
            ticked: Told after each tick.
        """
        self._open_store = open_store
        self._disk = disk
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._committed = committed
        self._begins = begins
        self._ticked = ticked
        self.fuse = Fuse()
        self.life = 0
        self._memories = count(1)
        self.up = False
        self.lease_s = LEASES_S[0]
        self.attempts_per_tick = ControllerSettings().attempts_per_tick
        self.lose_next_answers = False
        self.hint: Callable[[str], None] = lambda _: None
        """Called with the executors whose desired set changed."""
        self.controller: Controller | None = None
        self.store: ControllersStore | None = None
        self.newest_epoch = 0
        """Of all lives."""
        self._epoch = 0
        self._busy = False
        self._again_asked = False

    def boot(self) -> None:
        """Start the process, once the last one has ended for good."""
        if self.up:
            return
        if self._busy:
            self._agenda.after(_AFTER_FAILURE_S, self.boot)
            return
        self.life += 1
        self.up = True
        self._epoch = 0
        self.fuse = Fuse()
        self.store = ControllersStore(self._open_store(), self._disk, self.fuse, self._committed)
        self._trace.say(f"controller starts, life {self.life}")
        self.tick()

    def die(self) -> None:
        """End the process, as by kill -9."""
        if self._busy:
            self.fuse.light(1)
        self.up = False
        self.controller = None
        self._trace.say("controller dies")

    def retire(self) -> tuple[Controller, ControllersStore] | None:
        """Leave this life's controller behind, as a process that is only paused; ``boot`` starts its successor."""
        if self._busy:
            return None
        left, store = self.controller, self.store
        self.die()
        return (left, store) if left is not None and store is not None else None

    def tick(self) -> None:
        """Tick without an exchange."""
        self.answer(())

    def answer(self, requests: Sequence[ExchangeRequest]) -> dict[str, ExchangeResponse]:
        """Run a tick; nothing is answered when the process is down, busy, dies, or cannot commit."""
        if not self.up or self._busy:
            return {}
        self._busy = True
        life = self.life
        try:
            ticked = self._led_tick(requests)
        except Crashed:
            self._busy = False
            self.die()
            return {}
        except (Unavailable, Conflict) as error:
            self._trace.say(f"controller's memory is dropped: {error.message}")
            self._again()
            return {}
        finally:
            self._busy = False
        self._after(ticked)
        if self.lose_next_answers and life == self.life:
            self.lose_next_answers = False
            self.die()
            return {}
        return dict(ticked.responses)

    def _led_tick(self, requests: Sequence[ExchangeRequest]) -> Ticked:
        store = self.store
        assert store is not None  # noqa: S101 - a process that is up has its store
        if not self._epoch:
            self._epoch = self.newest_epoch = store.lead(f"life {self.life}", 0.0, self._agenda.now())
        controller = self.controller or self._new_controller(store)
        self.controller = None
        self._begins()
        ticked = controller.tick(requests, look=True)
        self.controller = controller
        self._ticked(controller)
        return ticked

    def _new_controller(self, store: ControllersStore) -> Controller:
        settings = ControllerSettings(
            requests_per_tick=_REQUESTS_PER_TICK,
            executor_lease_s=self.lease_s,
            attempts_per_tick=self.attempts_per_tick,
            epoch=self._epoch,
            pods=PodSettings(POD_BACKOFF, POD_BACKOFF),
        )
        dice = SeededDice(self._chance)
        memory = f"memory {next(self._memories)}"
        return Controller(
            store, clock=self._agenda, dice=dice, load_spec=self._load_spec, memory=memory, settings=settings
        )

    def _load_spec(self, text: str) -> JobSpec:
        self.fuse.burn()
        return load_spec(text)

    def _after(self, ticked: Ticked) -> None:
        for executor in sorted(ticked.changed):
            self.hint(executor)
        if not ticked.committed:
            self._again()
        elif ticked.more:
            self._agenda.after(0.0, self.tick)
        elif ticked.next_due is not None and ticked.next_due <= self._agenda.now() + POLL_S:
            self._agenda.at(ticked.next_due, self.tick)

    def _again(self) -> None:
        """Tick again soon; however many ticks have failed until then."""
        if not self._again_asked:
            self._again_asked = True
            self._agenda.after(_AFTER_FAILURE_S, self._try_again)

    def _try_again(self) -> None:
        self._again_asked = False
        self.tick()


class ExecutorHost:
    """One executor's process, on a machine that outlives it."""

    def __init__(self, machine: Machine, line: Transport, *, agenda: Agenda, trace: Trace, fuse: Fuse) -> None:
        """Begin with the process down."""
        self.machine = machine
        self._line = line
        self._agenda = agenda
        self._trace = trace
        self._fuse = fuse
        self._executor: Executor | None = None
        self._busy = False
        self._asked = False
        self._watched = float("inf")
        self.lease_s = LEASES_S[0] - MARGIN_S
        machine.on_change(self.wake)

    @property
    def name(self) -> str:
        """The executor's name."""
        return self.machine.name

    @property
    def up(self) -> bool:
        """Whether the process runs."""
        return self._executor is not None

    def boot(self) -> None:
        """Start the process, once the last one has ended for good."""
        if self._busy:
            self._agenda.after(_AFTER_FAILURE_S, self.boot)
        elif self._executor is None:
            self._executor = Executor(self.name, self.machine, self._line, clock=self._agenda, lease_s=self.lease_s)
            self._trace.say(f"executor {self.name} starts")
            self.wake()

    def die(self) -> None:
        """End the process, as by kill -9; its machine's programs go on."""
        self._executor = None
        if self._busy:
            self._fuse.light(1)
        else:
            self._fuse.put_out()
        self._trace.say(f"executor {self.name} dies")

    def wake(self) -> None:
        """Make the next step come at once."""
        if not self._asked:
            self._asked = True
            self._agenda.after(0.0, self.step)

    def step(self) -> None:
        """Run one step, unless one is under way."""
        self._asked = False
        executor = self._executor
        if executor is None or self._busy:
            return
        self._busy = True
        try:
            reached = executor.step()
        except Crashed:
            self._busy = False
            self.die()
            return
        finally:
            self._busy = False
        if not reached:
            self._agenda.after(_AFTER_FAILURE_S, self.wake)
        self.watch()

    def watch(self) -> None:
        """Look at the machine again when a program starts or ends next by itself."""
        due = self.machine.next_change()
        if due is not None and due < self._watched:
            self._watched = due
            self._agenda.at(due, self._look)

    def _look(self) -> None:
        self._watched = float("inf")
        self.machine.look()
        self.watch()
