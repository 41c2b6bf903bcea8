"""The controller processes of a world: they crash and restart, stall, and take over from each other.

A process that ends leaves nothing but its store. The ticks are the real ones; what ``app.embedded`` does around a tick
is done here the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.controller.workloads.kinds import PodSettings
from holdfast.errors import Conflict, Unavailable
from holdfast.simulation.processes import AFTER_FAILURE_S, POLL_S
from tools.simulate.clocks import Wall
from tools.simulate.disk import ControllersStore
from tools.simulate.hosts import LEASES_S, POD_BACKOFF
from tools.simulate.leases import Lease, Leases, owner
from tools.simulate.promises import refuse
from tools.simulate.trace import Crashed, Fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.controller import Ticked
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.clock import Dice
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
    from holdfast.ports.store import Changes, Store
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.disk import Disk
    from tools.simulate.trace import FaultTrace

_REQUESTS_PER_TICK = 3


class Front:
    """Routes executors' exchanges to whichever process leads."""

    def __init__(self, hosts: Sequence[ControllerHost]) -> None:
        """Remember the processes."""
        self._hosts = hosts

    def answer(self, requests: Sequence[ExchangeRequest]) -> dict[str, ExchangeResponse]:
        """Return the first answer."""
        for host in self._hosts:
            answers = host.answer(requests)
            if answers:
                return answers
        return {}


class ControllerHost:
    """The controller's process."""

    def __init__(  # noqa: PLR0913 - the world's parts, each by name
        self,
        name: str,
        open_store: Callable[[], Store],
        *,
        leases: Leases,
        disk: Disk,
        agenda: Agenda,
        dice: Dice,
        trace: FaultTrace,
        committed: Callable[[Changes], None],
        begins: Callable[[], None],
        ticked: Callable[[Controller], None],
    ) -> None:
        """Begin with no controller; the first tick makes one.

        Args:
            name: Tells it from other processes.
            open_store: Opens the store; called anew for each life.
            leases: Which process leads.
            disk: What is wrong with the store.
            agenda: The world's time.
            dice: The controller's.
            trace: The world's trace.
            committed: Told of each commit that succeeded.
            begins: Told before each tick.
            ticked: Told after each tick.
        """
        self.name = name
        self._open_store = open_store
        self._leases = leases
        self._disk = disk
        self._agenda = agenda
        self._dice = dice
        self._trace = trace
        self._committed = committed
        self._begins = begins
        self._ticked = ticked
        self.fuse = Fuse()
        self.life = 0
        self.memories = 0
        """How often it began to know anything: at least once in each life."""
        self.up = False
        self.stalled = False
        """Whether the process is paused."""
        self.ttl_s = 0.0
        """How long its lease on the database lasts, where there is another controller."""
        self.wall = Wall(agenda)
        self._clock = self.wall.process()
        self.lease_s = LEASES_S[0]
        self.attempts_per_tick = ControllerSettings().attempts_per_tick
        self.lose_next_answers = False
        self.hint: Callable[[str], None] = lambda _: None
        """Called with the executors whose desired set changed."""
        self.controller: Controller | None = None
        self.store: ControllersStore | None = None
        self._lease: Lease | None = None
        self._busy = False
        self._again_asked = False

    def boot(self) -> None:
        """Start the process, once the last one has ended for good."""
        if self.up:
            return
        if self._busy:
            self._agenda.after(AFTER_FAILURE_S, self.boot)
            return
        self.life += 1
        self.up = True
        self._clock = self.wall.process()
        self.fuse = Fuse()
        self.store = ControllersStore(self._open_store(), self._disk, self.fuse, self._committed)
        who = owner(self.name, self.life)
        self._lease = Lease(self.store, who, agenda=self._agenda, ttl_s=self.ttl_s, leases=self._leases)
        self._trace.say(f"{self.name} starts, life {self.life}")
        self.tick()

    def die(self) -> None:
        """End the process, as by kill -9."""
        if self._busy:
            self.fuse.light(1)
        self.up = False
        self.controller = None
        self._trace.say(f"{self.name} dies")

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
        """Run a tick; nothing is answered when the process is down, busy, dies, does not lead, or cannot commit."""
        if not self.up or self._busy or self.stalled:
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
            self._refused(error)
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
        controller = self._led(store)
        self.controller = None
        store.waited_for = bool(requests)
        self._begins()
        ticked = controller.tick(requests, look=True)
        self.controller = controller
        if self._lease is not None and self._lease.epoch == self._leases.newest:
            self._ticked(controller)  # one that was deposed, and has not learnt it yet, knows only what was
        return ticked

    def _led(self, store: ControllersStore) -> Controller:
        """Return the controller of the epoch that is led now; memory of an earlier one is not believed."""
        lease = self._lease
        assert lease is not None  # noqa: S101 - a process that is up has asked for one
        epoch = lease.epoch
        if lease.hold() != epoch or self.controller is None:
            self.controller = None
            return self._new_controller(store, lease.epoch)
        return self.controller

    @property
    def leads(self) -> bool:
        """Whether it believes that it leads."""
        return self._lease is not None and self._lease.epoch > 0

    def _refused(self, error: Unavailable | Conflict) -> None:
        self._trace.say(f"{self.name}'s memory is dropped: {error.message}")
        self.controller = None
        if isinstance(error, Conflict) and self._lease is not None:
            self._lease.lose()
        if self.leads or not self.ttl_s:
            self._again()

    def _new_controller(self, store: ControllersStore, epoch: int) -> Controller:
        settings = ControllerSettings(
            requests_per_tick=_REQUESTS_PER_TICK,
            executor_lease_s=self.lease_s,
            attempts_per_tick=self.attempts_per_tick,
            epoch=epoch,
            pods=PodSettings(POD_BACKOFF, POD_BACKOFF),
        )
        self.memories += 1
        memory = f"{self.name}, memory {self.memories}"
        return Controller(
            store,
            clock=self._clock,
            dice=self._dice,
            load_spec=self._load_spec,
            controller_epoch=memory,
            settings=settings,
        )

    def _load_spec(self, text: str) -> JobSpec:
        self.fuse.burn()
        return load_spec(text)

    def _after(self, ticked: Ticked) -> None:
        if self.controller is not None and (alone := len(self.controller.quarantine)):
            refuse("nobody-quarantined", f"{self.name} left {alone} workloads alone")
        for executor in sorted(ticked.changed):
            self.hint(executor)
        if ticked.refused is not None:
            self._again()
        elif ticked.more:
            self._agenda.after(0.0, self.tick)
        elif ticked.next_due is not None and ticked.next_due <= self._clock.now() + POLL_S:
            self._agenda.at(ticked.next_due - self._clock.offset, self.tick)

    def _again(self) -> None:
        """Tick again soon; however many ticks have failed until then."""
        if not self._again_asked:
            self._again_asked = True
            self._agenda.after(AFTER_FAILURE_S, self._try_again)

    def _try_again(self) -> None:
        self._again_asked = False
        self.tick()
