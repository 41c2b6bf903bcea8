"""A retry keeps away from the GPUs that the failed run had, where others could ever do."""

from __future__ import annotations

import pytest

from holdfast.domain.devices import Device
from holdfast.domain.events.jobs import JobRetryScheduled
from holdfast.domain.job import JobState, Resources
from holdfast.domain.placement.fit import Place, Shape, without_hopeless_avoidance
from holdfast.domain.policy.model import AntiAffinity, RetryPolicy
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated import SimulatedRun
from holdfast.ports.engine import NodeInfo
from tests.unit.conftest import Lab, exits, retrying
from tests.unit.jobset_lab import SetLab

TWO = (Device("gpu-0", 0, "NVIDIA T4"), Device("gpu-1", 1, "NVIDIA T4"))
ILL = evolve(TWO[1], health="Xid 79")
ONE_GPU = Resources(1000, 0, 1)
STAYS = SimulatedRun(duration_s=None)


def node(name: str, *devices: Device) -> NodeInfo:
    return NodeInfo(name, Resources(16_000, 1 << 36, len(devices)), {}, devices)


def elsewhere(retries: int) -> RetryPolicy:
    return evolve(retrying(retries), anti_affinity=AntiAffinity.DEVICE)


def gpu_job(name: str, retries: int = 0, request: Resources = ONE_GPU, gang: int = 1) -> JobSpec:
    return JobSpec(name, ("x",), resources=request, gang=gang, inline_policies=(elsewhere(retries),))


def given_to(lab: Lab, job: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(run.node, run.devices) for run in lab.runs(job)]


@pytest.mark.parametrize(
    ("nodes", "request_", "gang", "avoid", "kept"),
    [
        ({"n0": TWO}, ONE_GPU, 1, None, True),
        ({"n0": TWO}, Resources(1000, 0, 0, 250), 1, None, True),
        ({"n0": TWO}, Resources(1000, 0, 2), 1, None, False),
        ({"n0": TWO}, ONE_GPU, 2, None, False),
        ({"n0": TWO[:1]}, ONE_GPU, 1, None, False),
        ({"n0": (TWO[0], ILL)}, ONE_GPU, 1, None, False),
        ({"n0": TWO[:1], "n1": TWO[:1]}, ONE_GPU, 1, None, True),
        ({"n0": TWO, "n1": TWO}, Resources(1000, 0, 2), 1, None, True),
        ({"n0": TWO}, ONE_GPU, 1, "n0", True),
        ({"n0": TWO[:1]}, ONE_GPU, 1, "n0", False),
        ({"n0": TWO[:1]}, Resources(1000), 1, None, True),
    ],
)
def test_gpus_are_avoided_unless_no_others_could_ever_run_it(
    nodes: dict[str, tuple[Device, ...]], request_: Resources, gang: int, avoid: str | None, *, kept: bool
) -> None:
    places = [
        Place(("local", name), Resources(16_000, 1 << 36, len(devices)), devices=devices)
        for name, devices in nodes.items()
    ]
    shape = Shape(request_, gang, avoid=avoid, avoid_devices=("gpu-0@n0",))
    left = without_hopeless_avoidance(shape, places)
    assert left.avoid_devices == (("gpu-0@n0",) if kept else ())
    assert left.avoid is None


@pytest.mark.parametrize(
    ("nodes", "spec", "given"),
    [
        (
            [node("n0", *TWO)],
            gpu_job("one", 2),
            [("n0", ("gpu-0",)), ("n0", ("gpu-1",)), ("n0", ("gpu-0",))],
        ),
        ([node("n0", *TWO)], gpu_job("all", 1, Resources(1000, 0, 2)), [("n0", ("gpu-0", "gpu-1"))] * 2),
        ([node("n0", TWO[0]), node("n1", TWO[0])], gpu_job("same", 1), [("n0", ("gpu-0",)), ("n1", ("gpu-0",))]),
        ([node("n0", *TWO)], gpu_job("none", 1, Resources(1000)), [("n0", ())] * 2),
    ],
)
def test_a_retry_gets_other_gpus_than_the_run_that_failed(
    nodes: list[NodeInfo], spec: JobSpec, given: list[tuple[str, tuple[str, ...]]]
) -> None:
    lab = Lab()
    lab.use(*nodes)
    job = lab.submit(spec, exits(1))
    lab.pass_s(20)
    assert lab.job(job).state is JobState.FAILED
    assert given_to(lab, job) == given


def test_of_a_gang_only_the_gpus_of_the_rank_that_failed_are_avoided() -> None:
    lab = Lab()
    lab.use(node("n0", *TWO, Device("gpu-2", 2, "NVIDIA T4")))
    job = lab.submit(gpu_job("gang", 1, gang=2), lambda order: exits(int(order.rank == 1)))
    lab.pass_s(20)
    assert [run.devices for run in lab.runs(job)] == [("gpu-0",), ("gpu-1",), ("gpu-0",), ("gpu-2",)]


def test_it_is_waited_for_other_gpus_over_a_restart_and_said_so_and_told() -> None:
    lab = Lab()
    lab.use(node("n0", *TWO))
    failing = lab.submit(gpu_job("failing", 1), lambda order: exits(1, after_s=3) if order.attempt == 1 else STAYS)
    lab.step(3)
    other = lab.submit(gpu_job("other"), exits(0, after_s=30))
    lab.pass_s(12)
    assert given_to(lab, other) == [("n0", ("gpu-1",))]
    lab.restart_controller()
    lab.restart_executor()
    lab.step(4)
    waits = lab.job(failing)
    assert (waits.state, waits.avoid_devices) == (JobState.QUEUED, ("gpu-0@n0",))
    assert waits.reason == "needs 1 gpu, 1 of 2 is in use by other; gpu-0 is avoided, as the last attempt failed on it"
    told = [each.event for each in lab.store.events(limit=1000)]
    assert [each.avoid_devices for each in told if isinstance(each, JobRetryScheduled)] == [("gpu-0@n0",)]
    lab.pass_s(30)
    assert given_to(lab, failing) == [("n0", ("gpu-0",)), ("n0", ("gpu-1",))]
    assert lab.job(failing).state is JobState.RUNNING


def test_a_pod_that_restarts_gets_other_gpus() -> None:
    lab = SetLab()
    lab.use(node("n0", *TWO))
    lab.store.put_entry(evolve(elsewhere(1), name="elsewhere"))
    pod = {"name": "w", "command": ["true"], "resources": {"gpu": 1}, "retryPolicies": ["elsewhere"]}
    document = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "s"}, "spec": {"jobs": [pod]}}
    set_id = lab.submit_set(document, lambda order: exits(int(order.gpus == ("gpu-0",))))
    lab.pass_s(30)
    (job,) = lab.store.children_of(set_id)
    assert [run.devices for run in lab.store.runs(job.id)] == [("gpu-0",), ("gpu-1",)]
