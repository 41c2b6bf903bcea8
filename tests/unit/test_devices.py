"""Which GPUs runs are given, in tables and in a whole Holdfast in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.devices import ANY, Device, GpuSelector, is_of_type
from holdfast.domain.job import Ceiling, JobState, Queue, Resources, Run
from holdfast.domain.placement.assignment import DeviceLedger, all_free, choose_devices, runs_with_devices
from holdfast.domain.placement.fit import Place, Shape, ever_fits, fit, why_not
from holdfast.domain.policy.model import Action, MemoryGrowth, Mutation, RetrySettings, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated import SimulatedRun
from holdfast.ports.engine import NodeInfo
from tests.unit.conftest import Lab, exits, retrying

GIB = 1 << 30
A100 = Device("GPU-a", 0, "NVIDIA A100-SXM4-80GB", 80 * GIB, "nvidia")
T4S = [Device(f"GPU-t{place}", place, "NVIDIA T4", 16 * GIB, "nvidia") for place in (1, 2)]
MIXED = [A100, *T4S]
STAYS = SimulatedRun(duration_s=None)


def asks(gpu: int = 0, share_m: int = 0) -> Resources:
    return Resources(1000, 0, gpu, share_m)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [("A100*", True), ("nvidia a100*", True), ("*80GB", True), ("A?00-*", True), ("A100", False), ("T4", False)],
)
def test_a_type_is_a_pattern_of_the_model_with_or_without_its_maker(pattern: str, matches: bool) -> None:  # noqa: FBT001
    assert is_of_type(A100, pattern) is matches


@pytest.mark.parametrize(
    ("request_", "wanted", "chosen"),
    [
        (asks(1), ANY, ("GPU-t1",)),
        (asks(2), ANY, ("GPU-t1", "GPU-t2")),
        (asks(3), ANY, ("GPU-t1", "GPU-t2", "GPU-a")),
        (asks(4), ANY, None),
        (asks(1), GpuSelector("A100*"), ("GPU-a",)),
        (asks(1), GpuSelector(memory=17 * GIB), ("GPU-a",)),
        (asks(2), GpuSelector("A100*"), None),
        (asks(share_m=250), ANY, ("GPU-t1",)),
    ],
)
def test_the_smallest_devices_that_will_do_are_given(
    request_: Resources, wanted: GpuSelector, chosen: tuple[str, ...] | None
) -> None:
    assert choose_devices(MIXED, all_free(MIXED), request_, wanted) == chosen


def test_shares_go_where_there_are_some_already_and_others_stay_whole() -> None:
    free = {**all_free(MIXED), "GPU-t2": 500}
    assert choose_devices(MIXED, free, asks(share_m=500), ANY) == ("GPU-t2",)
    assert choose_devices(MIXED, free, asks(share_m=501), ANY) == ("GPU-t1",)
    assert choose_devices(MIXED, free, asks(2), ANY) == ("GPU-t1", "GPU-a")


@given(
    st.lists(st.one_of(st.integers(1, 3).map(asks), st.integers(1, 999).map(lambda m: asks(share_m=m))), max_size=30)
)
def test_no_device_is_given_beyond_its_whole_and_none_comes_back_twice(requests: list[Resources]) -> None:
    ledger, key = DeviceLedger(), ("local", "n0")
    ledger.set_place(key, MIXED)
    runs = []
    for number, request in enumerate(requests):
        chosen = choose_devices(MIXED, ledger.free[key], request, ANY)
        if chosen is not None:
            run = Run(f"r{number}", "j", 1, 0, executor="local", node="n0", request=request, devices=chosen)
            ledger.charge(run)
            runs.append(run)
        assert all(0 <= left <= 1000 for left in ledger.free[key].values())
    ledger.set_place(key, MIXED)  # as when the node is reported anew
    assert all(0 <= left <= 1000 for left in ledger.free[key].values())
    for run in runs:
        ledger.release(run.uid)
    assert ledger.free[key] == all_free(MIXED)
    assert runs_with_devices(MIXED, ledger.free[key], asks(1), ANY, 9) == 3


def test_a_gang_gets_a_device_for_each_rank_on_nodes_that_have_them() -> None:
    places = [
        Place(("local", f"n{number}"), Resources(8000, 0, 1), devices=(Device(f"gpu-{number}", number),))
        for number in range(2)
    ]
    free = {place.key: place.capacity for place in places}
    assert fit(Shape(asks(1), 2), places, free) == [("local", "n0"), ("local", "n1")]
    assert fit(Shape(asks(1), 3), places, free) is None
    assert fit(Shape(asks(share_m=500), 4), places, free) == [("local", f"n{number}") for number in (0, 0, 1, 1)]
    assert not ever_fits(Shape(asks(1), gpus=GpuSelector("A100*")), places)


BROKEN = Device("GPU-x", 3, "NVIDIA A100", 80 * GIB, "nvidia", health="ECC errors")
FOREIGN = Device("GPU-y", 4, "NVIDIA L4", 24 * GIB, "nvidia", used_by="python (pid 7)")


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (Shape(asks(9)), "needs 9 gpu, the largest node has 5: no node could ever take it"),
        (Shape(asks(1), gpus=GpuSelector("H100*")), "needs 1 gpu of type H100*, no node has one, only NVIDIA"),
        (Shape(asks(2), gpus=GpuSelector("L4")), "needs 2 gpu of type L4 on one node, the most any node has is 1"),
        (
            Shape(asks(1), gpus=GpuSelector("T4", GIB)),
            "needs 1 gpu of type T4 with 1Gi, both are in use by train, other and evaluate",
        ),
        (Shape(asks(1), gpus=GpuSelector("L4")), "needs 1 gpu of type L4, GPU-y is used by python (pid 7)"),
        (Shape(asks(2), gpus=GpuSelector("A100*")), "1 of 2 is in use by big; GPU-x is not healthy: ECC errors"),
        (Shape(asks(share_m=250), gpus=GpuSelector("A100*")), "needs 0.25 gpu of type A100*, 1 of 2 is in use by big"),
    ],
)
def test_who_gets_no_device_is_told_what_is_short_and_who_has_it(shape: Shape, reason: str) -> None:
    place = Place(("local", "n0"), Resources(8000, 0, 5), devices=(*MIXED, BROKEN, FOREIGN))
    devices = {place.key: {"GPU-a": 0, "GPU-t1": 0, "GPU-t2": 0}}
    users = {("GPU-a"): ["big"], "GPU-t1": ["train", "other"], "GPU-t2": ["evaluate"]}
    named = {(place.key, device): names for device, names in users.items()}
    free = {place.key: Resources(8000, 0, 2)}
    assert reason in why_not(shape, [place], free, devices, named).replace(
        "train, other, evaluate", "train, other and evaluate"
    )


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 * GIB, 2), {}, tuple(T4S)))
    return lab


def gpu_job(name: str, gpu: int = 0, share_m: int = 0, **rest: object) -> JobSpec:
    return JobSpec(name, ("x",), resources=asks(gpu, share_m), **rest)  # type: ignore[arg-type] # by name


def given_to(lab: Lab, job: str) -> list[tuple[str, ...]]:
    return [run.devices for run in lab.runs(job)]


def test_each_run_is_given_its_own_device_and_the_engine_is_told_which(lab: Lab) -> None:
    first, second, third = (lab.submit(gpu_job(f"train-{n}", 1), STAYS) for n in range(3))
    plain = lab.submit(gpu_job("plain"), STAYS)
    lab.step(3)
    assert (given_to(lab, first), given_to(lab, second)) == ([("GPU-t1",)], [("GPU-t2",)])
    assert given_to(lab, plain) == [()]
    assert {order.job_name: order.gpus for order in lab.orders} == {
        "train-0": ("GPU-t1",), "train-1": ("GPU-t2",), "plain": (),
    }  # fmt: skip
    assert lab.job(third).reason == "needs 1 gpu, both are in use by train-0, train-1"


def test_shares_fill_a_device_and_a_whole_one_waits_for_all_of_it(lab: Lab) -> None:
    shares = [lab.submit(gpu_job(f"part-{n}", share_m=250), exits(0, after_s=10)) for n in range(5)]
    lab.step(3)
    assert [given_to(lab, job) for job in shares] == [[("GPU-t1",)]] * 4 + [[("GPU-t2",)]]
    whole = lab.submit(gpu_job("whole", 1), STAYS)
    lab.step(3)
    assert lab.job(whole).state is JobState.QUEUED
    lab.pass_s(12)
    assert given_to(lab, whole) == [("GPU-t1",)]


def test_a_restarted_controller_gives_no_device_again_that_somebody_has(lab: Lab) -> None:
    first = lab.submit(gpu_job("first", 1), STAYS)
    lab.step(3)
    lab.restart_controller()
    lab.restart_executor()
    second, third = (lab.submit(gpu_job(name, 1), STAYS) for name in ("second", "third"))
    lab.step(4)
    assert [given_to(lab, job) for job in (first, second, third)] == [[("GPU-t1",)], [("GPU-t2",)], []]


def test_a_retry_is_given_a_device_anew_once_the_failed_run_gave_its_back(lab: Lab) -> None:
    failing = lab.submit(gpu_job("failing", 2, inline_policies=(retrying(2),)), exits(1))
    lab.pass_s(10)
    assert lab.job(failing).state is JobState.FAILED
    assert given_to(lab, failing) == [("GPU-t1", "GPU-t2")] * 3


def test_a_gang_has_all_its_devices_or_none(lab: Lab) -> None:
    one = lab.submit(gpu_job("one", 1), exits(0, after_s=5))
    gang = lab.submit(gpu_job("gang", 1, gang=2), STAYS)
    lab.step(3)
    assert (given_to(lab, one), given_to(lab, gang)) == ([("GPU-t1",)], [])
    assert lab.job(gang).reason == "needs 2 x (1 cpu and 1 gpu), the free nodes hold 1 of 2"
    lab.pass_s(8)
    assert given_to(lab, gang) == [("GPU-t1",), ("GPU-t2",)]


def test_a_queues_ceiling_counts_shares(lab: Lab) -> None:
    lab.store.put_entry(Queue("small", max_running=Ceiling(gpu=1)))
    jobs = [lab.submit(gpu_job(f"part-{n}", share_m=400, queue="small"), STAYS) for n in range(3)]
    lab.step(3)
    assert [lab.job(job).state for job in jobs] == [JobState.RUNNING, JobState.RUNNING, JobState.QUEUED]
    assert lab.job(jobs[2]).reason == "queue small is at its gpu limit"


def test_a_device_that_falls_ill_is_given_to_nobody_and_keeps_who_has_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.submit(gpu_job("first", 1), STAYS)
    lab.step(3)
    ill = Device("GPU-t2", 2, "NVIDIA T4", health="Xid 79")
    told = [NodeInfo("n0", Resources(16_000, 64 * GIB, 2), {}, (T4S[0], ill))]
    monkeypatch.setattr(lab.engine, "nodes", lambda: told)
    second = lab.submit(gpu_job("second", 1), STAYS)
    lab.step(3)
    assert "GPU-t2 is not healthy: Xid 79" in lab.job(second).reason
    assert lab.store.nodes()[0].devices[1].health == "Xid 79"
    assert given_to(lab, first) == [("GPU-t1",)]


def test_no_place_is_kept_free_for_who_waits_for_a_broken_device(lab: Lab) -> None:
    lab.use(NodeInfo("n0", Resources(1000, GIB, 2), {}, (T4S[0], evolve(T4S[1], health="Xid 79"))))
    waiting = lab.submit(gpu_job("waiting", 2), STAYS)
    lab.pass_s(40)
    plain = lab.submit(gpu_job("plain"), STAYS)
    lab.step(3)
    assert "GPU-t2 is not healthy" in lab.job(waiting).reason
    assert lab.job(plain).state is JobState.RUNNING


def test_where_gpus_are_only_counted_nobody_is_given_one() -> None:
    lab = Lab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 * GIB, 1)))
    parts = [lab.submit(gpu_job(f"part-{n}", share_m=500), STAYS) for n in range(3)]
    lab.step(3)
    assert [given_to(lab, job) for job in parts] == [[()], [()], []]
    assert lab.job(parts[2]).reason == "needs 0.5 gpu, the largest free node has 0"


def test_amounts_of_what_has_a_name_add_up_and_come_back() -> None:
    held, more = Resources(0, named=(("licence/x", 1000),)), Resources(0, named=(("licence/x", 500), ("scratch", 2)))
    assert (held + more).named == (("licence/x", 1500), ("scratch", 2))
    assert (held + more - held - more) == Resources(0)
    assert held.fits(Resources(0, named=(("licence/x", 1000),)))
    assert not held.fits(Resources(0))


def named(**amounts: int) -> Resources:
    return Resources(100, named=tuple(sorted((name.replace("_", "/"), amount) for name, amount in amounts.items())))


def test_what_nodes_have_by_name_is_shared_out_on_each_node(lab: Lab) -> None:
    capacity = Resources(16_000, 64 * GIB, named=(("scratch", 100_000),))
    lab.use(NodeInfo("n0", capacity), NodeInfo("n1", capacity))
    jobs = [lab.submit(JobSpec(f"j{n}", ("x",), resources=named(scratch=60_000)), STAYS) for n in range(3)]
    lab.step(3)
    assert [run.node for job in jobs for run in lab.runs(job)] == ["n0", "n1"]
    assert lab.job(jobs[2]).reason == "needs 60 scratch, the largest free node has 40"
    greedy = lab.submit(JobSpec("greedy", ("x",), resources=named(scratch=100_001)), STAYS)
    lab.step(3)
    assert lab.job(greedy).reason == "needs 100.001 scratch, the largest node has 100: no node could ever take it"


def test_what_the_cluster_has_by_name_is_never_used_by_too_many(lab: Lab) -> None:
    lab.store.put_settings(RetrySettings(resources=(("licence/x", 2000),)), None)
    lab.use(*(NodeInfo(f"n{n}", Resources(4000, 64 * GIB, named=(("licence/x", 9000),))) for n in range(3)))
    asks_one = JobSpec("one", ("x",), resources=named(licence_x=1000))
    jobs = [lab.submit(evolve(asks_one, name=f"j{n}"), exits(0, after_s=5)) for n in range(3)]
    lab.step(3)
    assert [lab.job(job).state for job in jobs] == [JobState.RUNNING, JobState.RUNNING, JobState.QUEUED]
    assert lab.job(jobs[2]).reason == "needs 1 licence/x, 0 of the cluster's are free"
    lab.restart_controller()
    lab.restart_executor()
    lab.step(3)
    assert lab.job(jobs[2]).state is JobState.QUEUED
    lab.pass_s(6)
    assert lab.job(jobs[2]).state is JobState.RUNNING
    gang = lab.submit(evolve(asks_one, name="gang", gang=3), STAYS)
    lab.step(3)
    assert lab.job(gang).reason.startswith("needs 3 licence/x, ")


def test_a_job_may_grow_although_no_node_has_what_the_cluster_has(lab: Lab) -> None:
    lab.store.put_settings(RetrySettings(resources=(("licence/x", 2000),)), None)
    grows = retrying(1, rules=(Rule(Action.RETRY, mutate=Mutation(MemoryGrowth(factor=2.0))),))
    spec = JobSpec("g", ("x",), resources=evolve(named(licence_x=1000), memory=GIB), inline_policies=(grows,))
    job = lab.submit(spec, exits(1))
    lab.pass_s(5)
    assert [attempt.request.memory for attempt in lab.attempts(job)] == [GIB, 2 * GIB]
