"""What every engine promises, checked on real processes and on simulated runs alike."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.manifests import Reading, read_one
from holdfast.domain.containers import Capability, ContainerRole, EngineInfo, Port
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.simulated.engine import SIMULATED, SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import Container, Engine, NodeInfo, Observation, RunOrder, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NODES = (NodeInfo("here", Resources(4000, 1 << 30)),)
PARTS = (
    Container(name="fetch", role=ContainerRole.INIT),
    Container(name="log", role=ContainerRole.SIDECAR),
    Container(name="peer"),
)
COMMANDS = {
    "succeeds": ("true",),
    "fails": ("sh", "-c", "exit 3"),
    "says why": ("sh", "-c", "echo loading; echo 'RuntimeError: NCCL error' >&2; exit 1"),
    "stays": ("sleep", "1000"),
    "falls silent": ("sh", "-c", "echo working; exec sleep 1000"),
    "talks": ("sh", "-c", "while true; do echo working; sleep 0.1; done"),
    "missing": ("/nonexistent/program",),
    "fetches": ("true",),
}
SCRIPT = {
    "succeeds": SimulatedRun(0.1, 1.0),
    "fails": SimulatedRun(0.1, 1.0, RunOutcome(containers=(ContainerResult(3, reason="Error"),))),
    "says why": SimulatedRun(
        0.1, 1.0, RunOutcome((ContainerResult(1, reason="Error"),), log="loading\nRuntimeError: NCCL error\n")
    ),
    "stays": SimulatedRun(0.1, None),
    "falls silent": SimulatedRun(0.1, None, silent_after_s=0.1),
    "talks": SimulatedRun(0.1, None),
    "missing": SimulatedRun(
        0.1,
        outcome=RunOutcome(
            containers=(ContainerResult(None, reason="CommandNotFound"),),
            conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
            started=False,
        ),
    ),
    "fetches": SimulatedRun(0.1, 1.0, init_s=0.2, logs={"fetch": ("fetched",), "main": ("trained",)}),
    "fetches in vain": SimulatedRun(0.1, 1.0, init_s=0.2, exit_codes={"fetch": 7}, logs={"fetch": ("no such host",)}),
    "serves": SimulatedRun(0.1, None, ready_after_s=0.5, address="10.0.0.7"),
    "lands": SimulatedRun(0.1, None, nodes=("n7", "n8")),
    "has one": SimulatedRun(0.1, None, nodes=("n7",)),
    "pulls": SimulatedRun(0.1, None, prepare_s=0.2, pull_s=0.3),
    "pulls in vain": SimulatedRun(0.1, None, pull_s=0.3, pull_fails=True),
}
NEEDING: dict[Capability, dict[str, Any]] = {
    Capability.INIT_CONTAINERS: {"initContainers": [{"name": "fetch", "command": ["x"]}]},
    Capability.CONTAINERS: {"initContainers": [{"name": "log", "restartPolicy": "Always", "command": ["x"]}]},
    Capability.DEVICES: {"containers": [{"command": ["x"], "resources": {"limits": {"example.com/fpga": 1}}}]},
    Capability.IMAGES: {"containers": [{"image": "busybox"}]},
}
"""What of a pod an engine that is not capable of it refuses."""


@dataclass
class VirtualClock:
    instant: float = 1_000_000.0

    def now(self) -> float:
        return self.instant


@dataclass
class Bench:
    """An engine, and a way to let time pass for it."""

    engine: Engine
    pass_time: Callable[[], None]
    orders: int = field(default=0)

    def needs(self, capability: Capability) -> None:
        """Leave a test that is about engines capable of something."""
        if capability not in self.engine.info().capabilities:
            pytest.skip(f"{self.engine.info().name} has no {capability}, and says so")

    def order(self, kind: str, *beside: Container, deadline_s: float | None = None) -> RunOrder:
        self.orders += 1
        main = Container(command=COMMANDS.get(kind, ()), ports=(Port(8080, "web"),))
        return RunOrder(
            uid=f"run-{self.orders}",
            job_id=f"job-{self.orders}",
            job_name=kind,
            attempt=1,
            rank=0,
            size=1,
            containers=(
                *(one for one in beside if one.role is not ContainerRole.MAIN),
                main,
                *(one for one in beside if one.role is ContainerRole.MAIN),
            ),
            node="here",
            deadline_s=deadline_s,
            grace_s=5.0,
        )

    def start(self, kind: str, *beside: Container, deadline_s: float | None = None) -> str:
        order = self.order(kind, *beside, deadline_s=deadline_s)
        self.engine.start([order])
        return order.uid

    def until(self, uid: str, phase: RunPhase) -> Observation:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            seen = self.engine.observe().get(uid)
            if seen is not None and seen.phase is phase:
                return seen
            self.pass_time()
        pytest.fail(f"{uid} never became {phase}: {self.engine.observe()}")

    def outcome(self, uid: str) -> RunOutcome:
        outcome = self.until(uid, RunPhase.FINISHED).outcome
        assert outcome is not None
        return outcome


@pytest.fixture(params=["process", "simulated", "capable of everything"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param != "process":
        info = SIMULATED if request.param == "simulated" else EngineInfo(request.param, frozenset(Capability))
        clock = VirtualClock()

        def tick() -> None:
            clock.instant += 0.05

        yield Bench(SimulatedEngine(clock, NODES, script=lambda order: SCRIPT[order.job_name], info=info), tick)
        return
    engine = ProcessEngine(tmp_path, nodes=NODES, shim_idle_s=0.1)
    changed = threading.Event()
    engine.on_change(changed.set)

    def wait() -> None:
        changed.wait(1)
        changed.clear()

    yield Bench(engine, wait)
    unfinished = [uid for uid, seen in engine.observe().items() if seen.phase is not RunPhase.FINISHED]
    engine.stop([(uid, 0.0, StopReason.USER) for uid in unfinished])
    for uid in unfinished:
        Bench(engine, wait).until(uid, RunPhase.FINISHED)
    engine.close()


def test_nodes_are_those_configured(bench: Bench) -> None:
    assert [(node.name, node.capacity) for node in bench.engine.nodes()] == [("here", NODES[0].capacity)]


def test_a_program_that_ends_with_zero_succeeded(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("succeeds"))
    assert outcome.succeeded
    assert outcome.node == "here"
    assert outcome.started_at is not None
    assert outcome.ended_at >= outcome.started_at


def test_a_programs_own_code_is_its_own_failure(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("fails"))
    assert [(one.exit_code, one.signal, one.reason) for one in outcome.containers] == [(3, None, "Error")]
    assert outcome.ended_by is EndedBy.ITSELF
    assert outcome.conditions == frozenset()


def test_a_program_that_cannot_start_never_started(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("missing"))
    assert not outcome.started
    assert outcome.started_at is None
    assert outcome.conditions == {FailureCondition.LAUNCH_FAILED}
    assert [(one.exit_code, one.reason) for one in outcome.containers] == [(None, "CommandNotFound")]


def test_an_order_is_seen_at_once(bench: Bench) -> None:
    uid = bench.start("stays")
    assert bench.engine.observe()[uid].phase in {RunPhase.STARTING, RunPhase.RUNNING}


def test_a_known_uid_is_not_started_again(bench: Bench) -> None:
    order = bench.order("fails")
    bench.engine.start([order, order])
    first = bench.outcome(order.uid)
    bench.engine.start([order])
    assert bench.engine.observe()[order.uid].outcome is first


@pytest.mark.parametrize("reason", StopReason)
def test_a_stopped_run_names_who_stopped_it(bench: Bench, reason: StopReason) -> None:
    uid = bench.start("stays")
    bench.until(uid, RunPhase.RUNNING)
    bench.engine.stop([(uid, 5.0, reason)])
    outcome = bench.outcome(uid)
    assert outcome.ended_by.value == reason.value
    assert not outcome.succeeded
    assert [(one.exit_code, one.signal) for one in outcome.containers] == [(143, 15)]


def test_a_run_past_its_deadline_is_stopped_for_it(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("stays", deadline_s=0.2))
    assert outcome.conditions == {FailureCondition.DEADLINE_EXCEEDED}
    assert outcome.ended_by is EndedBy.DEADLINE
    assert outcome.ran_s is not None
    assert outcome.ran_s >= 0.199


def test_a_run_that_falls_silent_is_stopped_for_it_and_one_that_talks_is_not(bench: Bench) -> None:
    limits = StallLimits(no_output_s=1.0)
    silent, talks = (evolve(bench.order(kind), stall=limits) for kind in ("falls silent", "talks"))
    bench.engine.start([silent, talks])
    outcome = bench.outcome(silent.uid)
    assert outcome.ended_by is EndedBy.STALL
    assert outcome.conditions == {FailureCondition.STALLED}
    assert outcome.message.startswith("no output for 1s")
    assert outcome.ran_s is not None
    assert outcome.ran_s >= 0.999
    assert bench.engine.observe()[talks.uid].phase is RunPhase.RUNNING


@pytest.mark.parametrize("reason", [EndedBy.DEADLINE, EndedBy.PREEMPTION])
def test_a_run_that_asks_for_it_is_warned_before_it_is_stopped(bench: Bench, reason: EndedBy) -> None:
    late = reason is EndedBy.DEADLINE
    order = evolve(bench.order("stays", deadline_s=1.0 if late else None), warning=EarlyWarning(0.5))
    bench.engine.start([order])
    bench.until(order.uid, RunPhase.RUNNING)
    if not late:
        bench.engine.stop([(order.uid, 5.0, StopReason.PREEMPTION)])
    outcome = bench.outcome(order.uid)
    assert outcome.ended_by is reason
    assert outcome.warned_at is not None
    assert outcome.ended_at - outcome.warned_at == pytest.approx(0.5, abs=0.4)
    assert not late or (outcome.ran_s or 0.0) >= 0.999


def test_who_asks_for_no_warning_gets_none(bench: Bench) -> None:
    assert bench.outcome(bench.start("stays", deadline_s=0.2)).warned_at is None


def test_stopping_a_finished_run_changes_nothing(bench: Bench) -> None:
    uid = bench.start("fails")
    before = bench.outcome(uid)
    bench.engine.stop([(uid, 0.0, StopReason.USER)])
    assert bench.engine.observe()[uid].outcome is before


def test_unknown_uids_are_ignored(bench: Bench) -> None:
    bench.engine.stop([("nobody", 0.0, StopReason.USER)])
    bench.engine.forget(["nobody"])
    assert not bench.engine.observe()


def test_a_result_stays_until_forgotten(bench: Bench) -> None:
    uid = bench.start("succeeds")
    bench.outcome(uid)
    bench.outcome(bench.start("succeeds"))
    assert uid in bench.engine.observe()
    bench.engine.forget([uid])
    assert uid not in bench.engine.observe()


def test_a_run_that_has_not_finished_cannot_be_forgotten(bench: Bench) -> None:
    uid = bench.start("stays")
    bench.until(uid, RunPhase.RUNNING)
    bench.engine.forget([uid])
    assert bench.engine.observe()[uid].phase is RunPhase.RUNNING


def test_an_unchanged_run_is_the_same_object(bench: Bench) -> None:
    uid = bench.start("stays")
    before = bench.until(uid, RunPhase.RUNNING)
    snapshot = bench.engine.observe()
    bench.outcome(bench.start("succeeds"))
    assert bench.engine.observe()[uid] is before
    assert list(snapshot) == [uid]


def test_a_change_is_hinted(bench: Bench) -> None:
    hinted = threading.Event()
    bench.engine.on_change(hinted.set)
    bench.outcome(bench.start("succeeds"))
    assert hinted.wait(5)


def test_closing_twice_is_fine(bench: Bench) -> None:
    uid = bench.start("succeeds")
    bench.outcome(uid)
    bench.engine.close()
    bench.engine.close()


def submitted(engine: Engine, pod: dict[str, Any]) -> Reading:
    """Read a Job as it is when only this engine could run it."""
    (main,) = pod.get("containers", [{"image": "busybox", "command": ["x"]}])
    spec = {"restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}], **pod}
    job = {"template": {"spec": {**spec, "containers": [{"name": "main", **main}]}}}
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job}
    return read_one(document, engines=lambda: [engine.info()])


@pytest.mark.parametrize("capability", NEEDING)
def test_what_an_engine_is_not_capable_of_is_refused_with_its_name(bench: Bench, capability: Capability) -> None:
    info, found = bench.engine.info(), submitted(bench.engine, NEEDING[capability])
    if capability in info.capabilities:
        assert found.problems == ()
        return
    (problem,) = found.problems
    assert f"engine {info.name} " in problem.message
    assert problem.path.startswith(f"spec.template.spec.{next(iter(NEEDING[capability]))}[0]")
    assert problem.hint


def test_images_and_volumes_are_noted_where_they_count_for_nothing(bench: Bench) -> None:
    found = submitted(bench.engine, {})
    assert found.problems == ()
    wide = Capability.IMAGES in bench.engine.info().capabilities
    assert len([one for one in found.warnings if " is ignored" in one.message]) == (0 if wide else 2)


def test_init_containers_end_before_the_main_ones_begin(bench: Bench) -> None:
    bench.needs(Capability.INIT_CONTAINERS)
    uid = bench.start("fetches", *PARTS)
    first = bench.until(uid, RunPhase.RUNNING)
    outcome = bench.outcome(uid)
    assert outcome.succeeded
    assert [(one.name, one.exit_code, one.init) for one in outcome.containers] == [
        ("fetch", 0, True),
        ("main", 0, False),
        ("peer", 0, False),
    ]
    assert [one.log_tail for one in outcome.containers] == [("fetched",), ("trained",), ()]
    assert first.started_at == outcome.started_at
    assert outcome.ran_s is not None
    assert outcome.ran_s >= 1.19


def test_a_failed_init_container_ends_the_run_before_its_main_ones(bench: Bench) -> None:
    bench.needs(Capability.INIT_CONTAINERS)
    outcome = bench.outcome(bench.start("fetches in vain", *PARTS))
    assert [(one.name, one.exit_code, one.init, one.log_tail) for one in outcome.containers] == [
        ("fetch", 7, True, ("no such host",))
    ]
    assert (outcome.started, outcome.ended_by, outcome.conditions) == (True, EndedBy.ITSELF, frozenset())


def test_a_run_serves_later_than_it_runs_and_says_where(bench: Bench) -> None:
    bench.needs(Capability.CONTAINERS)
    uid = bench.start("serves")
    seen = bench.until(uid, RunPhase.RUNNING)
    assert (seen.ready, seen.addresses) == (False, ("10.0.0.7",))
    while not bench.engine.observe()[uid].ready:
        bench.pass_time()


def test_an_engine_that_does_not_probe_calls_ready_what_runs(bench: Bench) -> None:
    assert bench.until(bench.start("stays"), RunPhase.RUNNING).ready


def test_only_an_engine_that_places_runs_says_where_one_landed(bench: Bench) -> None:
    places = Capability.PLACEMENT in bench.engine.info().capabilities
    uid = bench.start("lands" if places else "stays")
    assert bench.until(uid, RunPhase.RUNNING).node == ("n7" if places else "")


@pytest.mark.parametrize(
    ("nodes", "avoided", "landed"), [("lands", "n7", "n8"), ("lands", "n9", "n7"), ("has one", "n7", "n7")]
)
def test_an_engine_that_places_runs_avoids_a_node_where_there_is_another(
    bench: Bench, nodes: str, avoided: str, landed: str
) -> None:
    bench.needs(Capability.PLACEMENT)
    order = evolve(bench.order(nodes), avoid_node=avoided)
    bench.engine.start([order])
    assert bench.until(order.uid, RunPhase.RUNNING).node == landed


@pytest.mark.parametrize(("tried", "landed"), [(("n7",), "n8"), (("n8",), "n7"), (("n7", "n9"), "n8")])
def test_an_engine_that_places_runs_keeps_them_off_the_nodes_they_were_tried_on(
    bench: Bench, tried: tuple[str, ...], landed: str
) -> None:
    bench.needs(Capability.PLACEMENT)
    order = evolve(bench.order("lands"), avoid_nodes=tried)
    bench.engine.start([order])
    assert bench.until(order.uid, RunPhase.RUNNING).node == landed


def test_a_run_is_prepared_and_waits_to_be_started(bench: Bench) -> None:
    bench.needs(Capability.PREPARING)
    order = bench.order("pulls")
    bench.engine.prepare([order, order])
    assert bench.engine.observe()[order.uid].phase is RunPhase.PREPARING
    bench.until(order.uid, RunPhase.PULLING)
    prepared = bench.until(order.uid, RunPhase.PREPARED)
    for _ in range(9):
        bench.pass_time()
    assert bench.engine.observe()[order.uid] is prepared
    bench.engine.start([order])
    assert bench.until(order.uid, RunPhase.RUNNING).started_at is not None


def test_what_was_not_prepared_is_prepared_when_it_is_started(bench: Bench) -> None:
    bench.needs(Capability.PREPARING)
    uid = bench.start("pulls")
    for phase in (RunPhase.PULLING, RunPhase.STARTING, RunPhase.RUNNING):
        bench.until(uid, phase)


def test_a_run_that_cannot_be_prepared_never_started(bench: Bench) -> None:
    bench.needs(Capability.PREPARING)
    order = bench.order("pulls in vain")
    bench.engine.prepare([order])
    outcome = bench.outcome(order.uid)
    assert not outcome.started
    assert outcome.conditions == {FailureCondition.IMAGE_PULL_FAILED}


def test_a_run_is_stopped_while_it_is_prepared(bench: Bench) -> None:
    bench.needs(Capability.PREPARING)
    order = bench.order("pulls")
    bench.engine.prepare([order])
    bench.engine.stop([(order.uid, 5.0, StopReason.USER)])
    outcome = bench.outcome(order.uid)
    assert (outcome.started, outcome.ended_by) == (False, EndedBy.USER)


def test_a_failed_run_hands_over_the_end_of_what_it_printed_and_a_good_one_nothing(bench: Bench) -> None:
    assert bench.outcome(bench.start("says why")).log == "loading\nRuntimeError: NCCL error\n"
    assert bench.outcome(bench.start("succeeds")).log == ""
