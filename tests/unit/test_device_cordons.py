"""A device that a failed run has shown to be faulty is given to nobody until a person lifts that."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.device_faults import faulty_devices
from holdfast.domain.devices import Device
from holdfast.domain.events.operators import DeviceCordoned, DeviceUncordoned
from holdfast.domain.failure import ContainerResult, LogMatch, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated import SimulatedRun
from holdfast.errors import Conflict, NotFound
from holdfast.ports.engine import NodeInfo
from holdfast.service.operations.devices import DeviceOperations
from tests.unit.conftest import Lab, retrying
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

BOTH = (
    Device("GPU-5d1c", 0, "NVIDIA A100", maker="nvidia", bus="00000000:3B:00.0"),
    Device("GPU-77aa", 1, "NVIDIA A100", maker="nvidia", bus="00000000:AF:00.0"),
)
LOST = "NVRM: Xid (PCI:0000:af:00): 79, pid=4711, GPU has fallen off the bus."
STAYS = SimulatedRun(duration_s=None)


@pytest.mark.parametrize(
    ("line", "faulty"),
    [
        (LOST, "b"),
        ("NVRM: Xid (PCI:0000:3b:00): 48, pid=1, Double Bit ECC Error", "a"),
        ("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, Ch 00000008, MMU Fault", ""),
        ("NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception", ""),
        ("Unable to determine the device handle for GPU 0000:AF:00.0: GPU is lost.  Reboot the system", "b"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered on cuda:1", "b"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "ab"),
        ("GPU-77aa: uncorrectable ECC error", "b"),
        ("cuda:7: uncorrectable ECC error", "ab"),
        ("NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.", "ab"),
        ("CUDA-capable devices are busy or unavailable", ""),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory on device 0", ""),
    ],
)
def test_the_device_that_a_line_names_is_faulty_or_each_that_the_run_held(line: str, faulty: str) -> None:
    for outcome in (RunOutcome(error_line=line), RunOutcome(log_matches=(LogMatch("x", line),))):
        found, told = faulty_devices(outcome, BOTH)
        assert "".join({"GPU-5d1c": "a", "GPU-77aa": "b"}[one.id] for one in found) == faulty
        assert told == (line if faulty else "")


def test_the_only_device_of_a_run_is_the_faulty_one_whatever_number_the_line_has() -> None:
    outcome = RunOutcome(error_line="CUDA error: uncorrectable ECC error encountered on device 3")
    assert faulty_devices(outcome, BOTH[1:])[0] == BOTH[1:]


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.use(NodeInfo("n0", Resources(16_000, 1 << 36, 2), {}, BOTH))
    return lab


def gpu_job(name: str, gpu: int = 1, **rest: object) -> JobSpec:
    return JobSpec(name, ("x",), resources=Resources(1000, 0, gpu), **rest)  # type: ignore[arg-type] # by name


def fails(line: str) -> SimulatedRun:
    return SimulatedRun(duration_s=1.0, outcome=RunOutcome(containers=(ContainerResult(1),), log=f"step 1\n{line}\n"))


def states(lab: Lab) -> dict[str, str]:
    return {device.id: device.trouble for device in lab.store.nodes()[0].devices}


def test_a_faulty_device_is_set_aside_alone_with_the_reason_over_restarts_until_a_person_lifts_that(lab: Lab) -> None:
    bad = lab.submit(gpu_job("bad", 2, inline_policies=(retrying(3),)), fails(LOST))
    lab.pass_s(5)
    why = f"cordoned: {LOST} (job bad)"
    assert states(lab) == {"GPU-5d1c": "", "GPU-77aa": why}
    assert lab.job(bad).reason == f"needs 2 gpu, GPU-77aa is {why}"
    lab.restart_controller()
    lab.restart_executor()
    one, two = (lab.submit(gpu_job(name), STAYS) for name in ("one", "two"))
    lab.step(4)
    assert [run.devices for run in lab.runs(one)] == [("GPU-5d1c",)]
    assert lab.job(two).reason == f"needs 1 gpu, 1 of 2 is in use by one; GPU-77aa is {why}"
    DeviceOperations(lab.store, lab.clock).uncordon(BY, "GPU-77aa")
    lab.step(4)
    assert states(lab) == {"GPU-5d1c": "", "GPU-77aa": ""}
    assert [run.devices for run in lab.runs(two)] == [("GPU-77aa",)]
    told = [each.event for each in lab.store.events(limit=1000) if each.type.name.startswith("device.")]
    assert told == [
        DeviceCordoned("local", "n0", "GPU-77aa", LOST, bad),
        DeviceUncordoned("local", "n0", "GPU-77aa"),
    ]


def test_a_person_sets_a_device_aside_and_who_has_it_keeps_it(lab: Lab) -> None:
    devices = DeviceOperations(lab.store, lab.clock)
    has = lab.submit(gpu_job("has"), STAYS)
    lab.step(3)
    devices.cordon(BY, "GPU-5d1c@n0", "fan is loud")
    lab.step(3)
    assert states(lab)["GPU-5d1c"] == "cordoned: fan is loud"
    assert lab.job(has).state is JobState.RUNNING
    with pytest.raises(NotFound, match="GPU-none"):
        devices.cordon(BY, "GPU-none", "")


def test_a_device_of_a_node_that_is_away_can_be_handed_out_again(lab: Lab) -> None:
    devices = DeviceOperations(lab.store, lab.clock)
    lab.step(2)
    devices.cordon(BY, "GPU-77aa", "look at it")
    lab.step(2)
    lab.use(NodeInfo("n1", Resources(16_000)))
    lab.step(2)
    devices.uncordon(BY, "GPU-77aa")
    lab.step(2)
    assert all(not device.trouble for node in lab.store.nodes() for device in node.devices)
    assert lab.store.requests(limit=9) == []


def test_a_name_that_two_nodes_have_needs_the_nodes(lab: Lab) -> None:
    lab.use(*(NodeInfo(f"n{number}", Resources(4000, 0, 1), {}, (Device("gpu-0", 0),)) for number in range(2)))
    lab.step(2)
    with pytest.raises(Conflict, match="gpu-0@n0, gpu-0@n1"):
        DeviceOperations(lab.store, lab.clock).cordon(BY, "gpu-0", "")
    DeviceOperations(lab.store, lab.clock).cordon(BY, "gpu-0@n1", "by hand")
    lab.step(2)
    shown = {node.name: node.devices[0].trouble for node in lab.store.nodes()}
    assert (shown["n0"], shown["n1"]) == ("", "cordoned: by hand")


@pytest.mark.parametrize("ill", [False, True])
def test_a_pod_that_begins_again_in_its_place_does_not_get_a_device_back_that_is_in_trouble(*, ill: bool) -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 1 << 36, 2), {}, BOTH))
    rules: dict[str, Any] = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    one = group("w", parallelism=1, completions=1, **rules)
    container = one["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"nvidia.com/gpu": 1}}
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    plan = fails_first("train-w-0")
    set_id = lab.submit_set(manifest(replicatedJobs=[one], failurePolicy=policy), lambda order: later(plan(order)))
    lab.pass_s(3)
    if ill:
        DeviceOperations(lab.store, lab.clock).cordon(BY, "GPU-5d1c", "it is hot")
    lab.pass_s(30)
    (job,) = lab.store.children_of(set_id)
    assert [run.devices for run in lab.store.runs(job.id)] == [("GPU-5d1c",), ("GPU-77aa" if ill else "GPU-5d1c",)]
    assert lab.store.workload(JobSet, set_id).ended == "Completed"


def restarts_in_place(lab: SetLab) -> None:
    """Submit a set whose only job fails once, after some seconds."""
    rules: dict[str, Any] = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    one = group("w", parallelism=1, completions=1, **rules)
    container = one["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"nvidia.com/gpu": 1}}
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    plan = fails_first("train-w-0")
    lab.submit_set(manifest(replicatedJobs=[one], failurePolicy=policy), lambda order: later(plan(order)))


def test_a_place_that_is_kept_is_not_given_up_for_the_trouble_of_another_device() -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 1 << 36, 2), {}, BOTH))
    lab.step(2)
    DeviceOperations(lab.store, lab.clock).cordon(BY, "GPU-77aa", "it is hot")
    restarts_in_place(lab)
    lab.pass_s(3)
    lab.submit(gpu_job("other", priority=9))
    lab.pass_s(20)
    assert [order.job_name for order in lab.orders] == ["train-w-0", "train-w-0", "other"]


def test_what_a_program_prints_that_succeeds_shows_no_device_to_be_faulty(lab: Lab) -> None:
    fine = evolve(fails(LOST), outcome=RunOutcome(containers=(ContainerResult(0),), log=LOST, error_line=LOST))
    job = lab.submit(gpu_job("fine"), fine)
    lab.pass_s(5)
    assert (lab.job(job).state, states(lab)) == (JobState.SUCCEEDED, {"GPU-5d1c": "", "GPU-77aa": ""})


def test_a_new_controller_does_not_take_for_kept_a_place_that_was_given_up() -> None:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 1 << 36, 1), {}, BOTH[:1]))
    restarts_in_place(lab)
    lab.pass_s(3)
    DeviceOperations(lab.store, lab.clock).cordon(BY, "GPU-5d1c", "it is hot")
    lab.pass_s(10)
    assert lab.controller.state.capacity.charges == {}
    lab.restart_controller()
    assert lab.controller.state.capacity.charges == {}


def later(run: SimulatedRun) -> SimulatedRun:
    return evolve(run, duration_s=6.0)
