"""One world: the real controller, store and executors, breakable machines and connections, people, faults, one seed.

A stormy part, in which people ask and things break, is followed by peace until everything has ended. What must hold
throughout is in ``invariants``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from holdfast.ports.engine import NodeInfo
from holdfast.service.explain import Explainer
from holdfast.simulation.agenda import Agenda
from holdfast.simulation.processes import HEARTBEAT_S, POLL_S, SeededDice
from tools.simulate.array_people import ArrayPeople
from tools.simulate.chance import Chance
from tools.simulate.clocks import Readings
from tools.simulate.connections import FATES, OVERTAKEN, Connection
from tools.simulate.controllers import ControllerHost, Front
from tools.simulate.dependent_people import DependentPeople
from tools.simulate.disk import Disk
from tools.simulate.faults.harsh import HarshFaults
from tools.simulate.faults.places import PlaceFaults
from tools.simulate.faults.reached import Reached
from tools.simulate.faults.storm import Faults
from tools.simulate.hosts import HARSH_LEASES_S, HARSH_MARGIN_S, LEASES_S, MARGIN_S, ExecutorHost
from tools.simulate.invariants.arrays import ArrayChecks
from tools.simulate.invariants.caps import Caps
from tools.simulate.invariants.commits import CommitChecks
from tools.simulate.invariants.cordons import CordonChecks
from tools.simulate.invariants.dependencies import DependencyChecks
from tools.simulate.invariants.ending import EndChecks
from tools.simulate.invariants.places import PlaceChecks
from tools.simulate.invariants.pods import PodChecks
from tools.simulate.invariants.record import Record
from tools.simulate.invariants.setrecord import SetRecord
from tools.simulate.invariants.sets import SetChecks
from tools.simulate.invariants.ticks import TickChecks
from tools.simulate.invariants.truth import TruthChecks
from tools.simulate.leases import TTL_S, Leases
from tools.simulate.machines.machine import FaultyMachine
from tools.simulate.machines.programs import Programs
from tools.simulate.operators import Operators
from tools.simulate.people import People
from tools.simulate.policies import GIB
from tools.simulate.scene import Scene
from tools.simulate.set_people import SetPeople
from tools.simulate.trace import FaultTrace, Fuse
from tools.simulate.work import most_pods, pod_script, script

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.controller import Controller
    from holdfast.domain.job import Job
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder
    from holdfast.ports.store import Changes, Store
    from tools.simulate.machines.programs import Program

STORM_S = (20.0, 100.0)
PEACE_S = 1500.0
"""The bound of "in bounded time"."""
_JOBS = (4, 24)
SETS_EVERY = 3
"""One seed of this many also has job sets and jobs made of pods, and fewer others."""
_FEWER_JOBS = 4
HARSH_EVERY = 2
"""One seed of this many also has what ``harsh`` breaks."""
ARRAYS_EVERY, FIRST_WITH_ARRAYS = 7, 5
"""One seed of this many has arrays, from this one on."""
_RIVALS = 0.4
"""The share of these that have two controllers."""
_ATTEMPTS_PER_TICK = (500, 500, 2, 5)
"""In a world with job sets: so few that a tick cannot always handle everything."""
_CALM_BEATS = 3
"""In peace, hearts beat this many times more slowly, so that the end is reached in fewer steps."""


class World:
    """All parts of one world, which ``run`` runs."""

    def __init__(self, seed: int, open_store: Callable[[], Store]) -> None:
        """Build a world from its seed.

        Args:
            seed: Determines everything that is random.
            open_store: Opens the store; called for each life of the controller.
        """
        self.seed = seed
        self.chance = Chance(seed)
        self.agenda = Agenda(self._after_step)
        self.trace = FaultTrace(lambda: self.agenda.elapsed)
        self._open_store = open_store
        self._store = open_store()
        self._explainer = Explainer(self._store)
        self.record = Record()
        self.sets = SetRecord(self.record)
        self.reached = Reached(self.record)
        self.trace.struck = self.reached.struck
        self.programs = Programs()
        self.programs.pods = self.record.pods
        self._disk = Disk(self.agenda, self.trace)
        self._caps = Caps()
        self.harsh = Chance(f"{seed}/harsh") if seed % HARSH_EVERY == 0 else None
        self._has_sets = seed % SETS_EVERY == 1
        self._build_controllers()
        self.people = People(
            lambda: self._store,
            agenda=self.agenda,
            chance=Chance(f"{seed}/people"),
            trace=self.trace,
            disk=self._disk,
            record=self.record,
            caps=self._caps,
            hint=self._hint_controllers,
        )
        self._build_other_people()
        self._build_executors()
        self._commits = CommitChecks(self.record, self.programs, self._caps, self._readings)
        self.set_checks = SetChecks(self.sets, self._readings)
        self._ticks = TickChecks(self.record, self.sets)
        self._places = PlaceChecks(self.record, self.machines, self.controllers, clocks_agree=self.harsh is None)
        self._place_faults = PlaceFaults(self.machines, self.agenda, Chance(f"{seed}/places"), self.trace)
        self._end = EndChecks(self.record, self.sets, self._arrays, self._dependencies, self.programs, self.machines)
        self._catalogue = self._store.catalogue()
        self._peaceful = False

    def _build_other_people(self) -> None:
        """Add those whose work is not only jobs by themselves, each with dice of their own."""
        seed = self.seed
        scene = Scene(lambda: self._store, self.agenda, self.trace, self.people.willing)
        self._set_people = SetPeople(scene, Chance(f"{seed}/sets"), Chance(f"{seed}/sets that wait"), self.sets)
        self._arrays = ArrayChecks(self.record)
        self._array_people = ArrayPeople(scene, Chance(f"{seed}/arrays"), self._arrays)
        self._dependencies = DependencyChecks(self.record, self._arrays, self.sets)
        self._dependent_people = DependentPeople(scene, Chance(f"{seed}/dependents"), self._arrays)
        self._cordons = CordonChecks(self.sets)
        self._operators = Operators(scene, Chance(f"{seed}/operators"), self.record)

    def _build_controllers(self) -> None:
        self._leases = Leases()
        self._rival_stores: list[Store] = []
        two = self.harsh is not None and self.harsh.happens(_RIVALS)
        names = ("controller", "rival") if two else ("controller",)
        self.controllers = [self._new_controller(name, ttl_s=TTL_S if two else 0.0) for name in names]
        self._lease_s = self.chance.choice(LEASES_S)
        if self.harsh is not None:
            self._lease_s = self.harsh.choice(HARSH_LEASES_S)
        for host in self.controllers:
            host.lease_s = self._lease_s
            if self._has_sets:
                host.attempts_per_tick = Chance(f"{self.seed}/pace").choice(_ATTEMPTS_PER_TICK)
        self._readings = Readings(lambda: [host.wall for host in self.controllers])

    def _new_controller(self, name: str, ttl_s: float) -> ControllerHost:
        dice = "dice" if name == "controller" else f"dice of the {name}"
        host = ControllerHost(
            name,
            self._reopened if not ttl_s else self._another_store,
            leases=self._leases,
            disk=self._disk,
            agenda=self.agenda,
            dice=SeededDice(f"{self.seed}/{dice}"),
            trace=self.trace,
            committed=self._committed,
            begins=self._tick_begins,
            ticked=self._ticked,
        )
        host.ttl_s = ttl_s
        return host

    def _hint_controllers(self) -> None:
        for host in self.controllers:
            self.agenda.after(0.0, host.tick)

    def _build_executors(self) -> None:
        self.fuses: list[Fuse] = []
        self.connections: list[Connection] = []
        self.machines: list[FaultyMachine] = []
        self.executors: list[ExecutorHost] = []
        for index in range(self.chance.randint(1, 3)):
            self._build_executor(f"e{index}")
        capacity = {
            (machine.name, node.name): node.capacity for machine in self.machines for node in machine.all_nodes()
        }
        self._truth = TruthChecks(self.record, capacity, self._readings)
        labels = {(machine.name, node.name): node.labels for machine in self.machines for node in machine.all_nodes()}
        self._pods = PodChecks(self.sets, self.programs, labels, self._readings)
        self.programs.on_start = self._program_started
        hosts = {host.name: host for host in self.executors}
        for host in self.controllers:
            host.hint = lambda name: hosts[name].wake() if self.chance.happens(0.8) else None

    def _build_executor(self, name: str) -> None:
        fuse = Fuse()
        connection = Connection(
            Front(self.controllers),
            agenda=self.agenda,
            chance=Chance(f"{self.seed}/{name}"),
            trace=self.trace,
            fuse=fuse,
        )
        if self.harsh is not None:
            connection.fates = (*FATES, OVERTAKEN)
        machine = FaultyMachine(
            name,
            [self._node(f"{name}n{index}") for index in range(self.chance.randint(1, 3))],
            clock=self.agenda,
            script=self._script,
            programs=self.programs,
            may_forget=self._forgotten,
            fuse=fuse,
        )
        self.fuses.append(fuse)
        self.connections.append(connection)
        self.machines.append(machine)
        host = ExecutorHost(machine, connection, agenda=self.agenda, trace=self.trace, fuse=fuse)
        host.lease_s = self._lease_s - (MARGIN_S if self.harsh is None else HARSH_MARGIN_S)
        self.executors.append(host)

    def _node(self, name: str) -> NodeInfo:
        capacity = Resources(self.chance.choice((2000, 3000, 4000)), self.chance.choice((4, 8)) * GIB, 0)
        return NodeInfo(name, capacity + most_pods(f"{self.seed}/pods of {name}"), {"zone": self.chance.choice("ab")})

    def run(self) -> None:
        """Run the storm and the peace after it.

        Raises:
            BrokenInvariant: Something happened that must never happen.
        """
        self.people.set_up()
        for controller in self.controllers:
            controller.boot()
        for host in self.executors:
            host.boot()
            self._beat(host)
        self._poll()
        until = self.agenda.now() + self.chance.moment(*STORM_S)
        faults = Faults(
            controllers=self.controllers,
            leases=self._leases,
            executors=self.executors,
            connections=self.connections,
            fuses=self.fuses,
            disk=self._disk,
            agenda=self.agenda,
            chance=Chance(f"{self.seed}/faults"),
            trace=self.trace,
        )
        faults.plan(until)
        harsh = self._harsh_faults(until)
        self._place_faults.plan(self.seed, until, self.people)
        self._ask_for_work(until)
        self._revive(faults)
        self.agenda.run_until(until)
        self._peaceful = True
        if harsh is not None:
            harsh.heal()
        faults.heal()
        self._place_faults.heal()
        self._make_peace()
        self.agenda.run_until(until + PEACE_S, enough=self._settled)
        leading = self._leading()
        self._end.check(leading.state if leading is not None else None, self._store)

    def _make_peace(self) -> None:
        """Have nobody ask for anything any more, and nothing but the work itself keep it from ending."""
        self._set_people.make_peace()
        self._operators.make_peace()
        self.people.make_peace()

    def _harsh_faults(self, until: float) -> HarshFaults | None:
        if self.harsh is None:
            return None
        faults = HarshFaults(
            controllers=self.controllers,
            machines=self.machines,
            disk=self._disk,
            agenda=self.agenda,
            chance=self.harsh,
            trace=self.trace,
        )
        faults.plan(until)
        return faults

    def _leading(self) -> Controller | None:
        """Return the memory of the process that leads."""
        return next((host.controller for host in self.controllers if host.leads and host.controller is not None), None)

    @property
    def lives(self) -> int:
        """How many lives all controllers had."""
        return sum(host.life for host in self.controllers)

    def _ask_for_work(self, until: float) -> None:
        jobs = self.chance.randint(*_JOBS)
        if self._has_sets:
            self._set_people.plan(until)
            jobs //= _FEWER_JOBS
        if self.seed % ARRAYS_EVERY == FIRST_WITH_ARRAYS:
            self._array_people.plan(until)
        self._dependent_people.plan(self.seed, until)
        self._operators.plan(self.seed, until)
        self.people.plan(jobs, until, self.seed)

    def close(self) -> None:
        """Close the store."""
        for store in (self._store, *self._rival_stores):
            store.close()

    def _settled(self) -> bool:
        controller = self._leading()
        return (
            controller is not None
            and not controller.state.changes
            and not controller.state.capacity.charges
            and self._end.settled()
            and not self._store.requests(limit=1)
        )

    def _beat(self, host: ExecutorHost) -> None:
        host.step()
        self.agenda.after(self._pace(HEARTBEAT_S), lambda: self._beat(host))

    def _poll(self) -> None:
        for host in self.controllers:
            host.tick()
        self.agenda.after(self._pace(POLL_S), self._poll)

    def _pace(self, every_s: float) -> float:
        return every_s * _CALM_BEATS if self._peaceful else every_s

    def _revive(self, faults: Faults) -> None:
        faults.revive()
        self.agenda.after(5.0, lambda: self._revive(faults))

    def _reopened(self) -> Store:
        """Open the store for a new life of the controller, and see that it holds what was committed."""
        self._store.close()
        self._store = self._open_store()
        self._explainer = Explainer(self._store)
        self.record.compare(self._store)
        self.sets.compare(self._store)
        return self._store

    def _another_store(self) -> Store:
        """Open the store for a new life of one of several controllers, and see that it holds what was committed."""
        store = self._open_store()
        self._rival_stores.append(store)
        self.record.compare(store)
        self.sets.compare(store)
        return store

    def _script(self, order: RunOrder) -> SimulatedRun:
        self._truth.ordered(order)
        return (pod_script if order.job_id in self.record.pods else script)(self.seed, order)

    def _forgotten(self, uid: str) -> None:
        self._truth.forgotten(uid)

    def _program_started(self, program: Program) -> None:
        self.trace.say(f"program {program.order.uid} starts on {program.machine}/{program.order.node}")
        self._truth.started(program, self.programs.used())
        self._pods.started(program)
        self._dependencies.started(program.order.job_id)

    def _committed(self, changes: Changes) -> None:
        self._leases.committed(changes.epoch)
        for job in changes.jobs.values():
            self._say_job(job)
        for entry in changes.set_log:
            self.trace.say(f"{entry.set_id}: {entry.what}")
        self.record.made(self._store.jobs_by_id(list(changes.new_jobs)))
        self._commits.check(changes, self._store, self._explainer)
        self._arrays.check(changes)
        self._dependencies.check(changes)
        self._pods.check(changes)
        self.set_checks.check(changes)
        self._cordons.check(changes, self._store)
        self._places.check(changes)

    def _say_job(self, job: Job) -> None:
        before = self.record.jobs.get(job.id)
        if before is None or (before.state, before.attempt) != (job.state, job.attempt):
            self.trace.say(f"{job.id} {job.state}, attempt {job.attempt}{f': {job.reason}' if job.reason else ''}")

    def _tick_begins(self) -> None:
        if self._catalogue.version != self._store.catalogue_version():
            self._catalogue = self._store.catalogue()
        self._cordons.begins(self._catalogue.cordons)

    def _ticked(self, controller: Controller) -> None:
        self._ticks.check(controller.state, self._store, self._catalogue)

    def _after_step(self) -> None:
        for machine in self.machines:
            machine.look()
        self.programs.judge_starts()
