"""Pods that request nothing take no place but one of their node's pods, and say what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.manifests import read_manifest
from holdfast.domain.job import UNLIMITED, Ceiling, JobState, Queue, Resources
from holdfast.domain.placement.fit import Place, Shape, why_not
from holdfast.domain.terms.resources import DEFAULT_MAX_PODS, ONE_POD, PODS, with_max_pods
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from holdfast.service.submit import Submitter
from tests.reading import read_job
from tests.unit.conftest import Lab, exits, job_named
from tests.unit.jobset_lab import FOREVER, SetLab, group, manifest
from tests.unit.jobset_service import JOB, Counting, why
from tests.unit.test_scheduling import World, _shape

if TYPE_CHECKING:
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

FULL = "no node has room for one more pod: each takes 2 at most"


def takes(pods: int, cpu_m: int = 2000) -> Resources:
    return Resources(cpu_m, 64 << 30, named=((PODS, pods * 1000),))


def lab_with(capacity: Resources, *others: Resources) -> SetLab:
    lab = SetLab()
    lab.use(*(NodeInfo(f"n{number}", each) for number, each in enumerate((capacity, *others))))
    return lab


def forever(_: RunOrder) -> SimulatedRun:
    return exits(0, after_s=FOREVER)


def asked(document: dict[str, Any]) -> Resources:
    spec = read_manifest(document)
    assert isinstance(spec, JobSetSpec)
    return spec.replicated_jobs[0].program.resources


def requesting(**resources: dict[str, object]) -> dict[str, Any]:
    document = manifest(replicatedJobs=[group("w")])
    document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = (
        resources
    )
    return document


@pytest.mark.parametrize(
    ("resources", "request_of_it"),
    [
        ({}, Resources(0)),
        ({"requests": {"memory": "1Gi"}}, Resources(0, 1 << 30)),
        ({"limits": {"cpu": "2"}}, Resources(2000)),
        ({"requests": {"cpu": "500m"}}, Resources(500)),
    ],
)
def test_a_pod_in_upstreams_form_requests_only_what_it_says(
    resources: dict[str, dict[str, object]], request_of_it: Resources
) -> None:
    assert asked(requesting(**resources)) == request_of_it


def test_the_short_form_and_jobs_of_other_kinds_keep_their_default() -> None:
    short = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "s"}}
    assert asked({**short, "spec": {"jobs": [{"name": "w", "command": ["true"]}]}}) == Resources(1000)
    memory = {"name": "w", "command": ["true"], "resources": {"memory": "1Gi"}}
    assert asked({**short, "spec": {"jobs": [memory]}}) == Resources(1000, 1 << 30)
    job = {"apiVersion": "holdfast.dev/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"command": ["true"]}}
    assert read_job(job).resources == Resources(1000)


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_as_many_as_a_kubelet() -> None:
    assert with_max_pods(Resources(4000)).amount_of(PODS) == DEFAULT_MAX_PODS * 1000
    assert with_max_pods(takes(7)) == takes(7)
    assert with_max_pods(UNLIMITED) == UNLIMITED
    assert ONE_POD.fits(UNLIMITED)


def test_thirty_pods_that_request_nothing_run_at_once_on_two_cpus() -> None:
    lab = lab_with(Resources(2000, 8 << 30))
    lab.submit_set(manifest(replicatedJobs=[group("w", parallelism=30, completions=30)]), forever)
    lab.pass_s(2)
    assert len(lab.engine_runs()) == 30
    assert {order.resources for order in lab.orders} == {ONE_POD}


def test_no_node_takes_more_pods_than_it_says_and_each_gets_its_turn() -> None:
    lab, most = lab_with(takes(3), takes(2)), 0

    def plan(_: RunOrder) -> SimulatedRun:
        nonlocal most
        most = max(most, len(lab.engine_runs()) + 1)
        return exits(0, after_s=5.0)

    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 4, parallelism=5, completions=5)]), plan)
    lab.pass_s(120)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert most == 5
    assert len(lab.orders) == 20


def test_a_set_says_which_of_its_pods_have_no_place_and_why_and_no_longer_once_they_have_one() -> None:
    lab = lab_with(takes(2))
    ends_s = {0: 5.0}
    lab.submit_set(
        manifest(replicatedJobs=[group("w", parallelism=3, completions=3)]),
        lambda order: exits(0, after_s=ends_s.get(order.rank, FOREVER)),
    )
    lab.pass_s(2)
    job = lab.store.job("train-w-0")
    assert (job.state, job.reason) == (JobState.RUNNING, f"pods wait: {FULL}")
    assert f"Job train-w-0 runs 2 of its 3 pods; the other pods wait: {FULL}." in why(lab, "train").summary
    told = Explainer(lab.store).why("train-w-0")
    assert told.headline == f"Job train-w-0 is running, attempt 1: pods wait: {FULL}"
    assert "Pods: 3 active (2 ready)." in told.summary
    lab.pass_s(10)
    job = lab.store.job("train-w-0")
    assert (job.state, job.reason) == (JobState.RUNNING, "")
    assert not [line for line in why(lab, "train").summary if "wait" in line]
    assert "Pods: 2 active, 1 succeeded." in Explainer(lab.store).why("train-w-0").summary


def test_pods_that_wait_for_a_cpu_or_for_their_queue_say_that() -> None:
    for queue, capacity, reason in (
        ("default", takes(9), "needs 1 cpu, the largest free node has 0"),
        ("few", takes(9, 9000), "queue few is at its pods limit"),
    ):
        lab = lab_with(capacity)
        lab.store.put_entry(Queue("few", max_running=Ceiling(named=((PODS, 2000),))))
        document = requesting(requests={"cpu": "1"})
        document["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 4, "completions": 4}
        document["metadata"]["labels"] = {"holdfast.dev/queue": queue}
        lab.submit_set(document, forever)
        lab.pass_s(2)
        assert f"Job train-w-0 runs 2 of its 4 pods; the other pods wait: {reason}." in why(lab, "train").summary


def test_why_pods_wait_is_kept_over_a_restart_and_is_not_the_reason_of_a_job_that_is_cancelled() -> None:
    lab = lab_with(takes(2))
    lab.plan = forever
    several = read_job({**JOB, "spec": {**JOB["spec"], "parallelism": 3, "completions": 3}})
    job_id = Submitter(lab.store, lab.clock, Counting()).submit(several).id
    lab.pass_s(2)
    assert lab.store.job(job_id).reason == f"pods wait: {FULL}"
    lab.restart_controller()
    lab.pass_s(2)
    assert lab.store.job(job_id).reason == f"pods wait: {FULL}"
    lab.ask(RequestKind.CANCEL, job_id)
    lab.pass_s(60)
    ended = lab.store.job(job_id)
    assert ended.state is JobState.CANCELLED
    assert "pods wait" not in ended.reason


def test_the_reason_names_how_many_pods_a_node_takes_at_most() -> None:
    shape = Shape(Resources(100) + ONE_POD)
    places = [Place(("e", name), takes(pods)) for name, pods in (("a", 2), ("b", 3))]
    free = {place.key: Resources(1000) for place in places}
    assert why_not(shape, places, free) == "no node has room for one more pod: each takes 3 at most"
    none = [Place(("e", "a"), Resources(1000))]
    assert why_not(shape, none, free) == "needs 1 pod, the largest node has 0: no node could ever take it"
    free = {places[0].key: Resources(0) + ONE_POD, places[1].key: Resources(1000)}
    assert why_not(shape, places, free) == "needs 0.1 cpu and 1 pod, no node has all of that free"


def test_queues_take_turns_with_pods_that_request_nothing() -> None:
    world = World(1)
    world.places = [Place(("local", "n0"), takes(4))]
    world.free = {place.key: place.capacity for place in world.places}
    for queue in ("a", "b"):
        for number in range(3):
            world.wait(f"{queue}-{number}", Shape(ONE_POD), queue=queue)
    assert world.started() == ["a-0", "b-0", "a-1", "b-1"]


def test_a_pod_that_has_waited_long_keeps_no_cpu_from_others() -> None:
    world = World(2)
    world.places = [Place(("local", "n0"), takes(1))]
    world.free = {("local", "n0"): Resources(2000, 64 << 30)}
    world.wait("pod", Shape(ONE_POD))
    world.wait("small", _shape(1))
    assert world.started(now=60.0) == ["small"]


def test_a_job_that_has_waited_long_keeps_no_pod_that_requests_nothing_from_its_node() -> None:
    world = World(2)
    world.places = [Place(("local", "n0"), takes(3))]
    world.free = {("local", "n0"): takes(3, 1000)}
    world.wait("large", _shape(2))
    world.wait("pod", Shape(ONE_POD))
    world.wait("small", _shape(1))
    world.wait("pod with a cpu", Shape(Resources(1000) + ONE_POD))
    assert world.started(now=60.0) == ["pod"]


def test_a_pod_that_has_waited_long_for_a_cpu_keeps_one_pod_of_its_node_and_no_more() -> None:
    world = World(2)
    world.places = [Place(("local", "n0"), takes(3))]
    world.free = {("local", "n0"): takes(3, 1000)}
    world.wait("large", Shape(Resources(2000) + ONE_POD))
    for number in range(3):
        world.wait(f"pod-{number}", Shape(ONE_POD))
    assert world.started(now=60.0) == ["pod-0", "pod-1"]


def test_a_job_that_is_no_pod_takes_none_of_its_nodes_pods() -> None:
    lab = Lab()
    lab.use(NodeInfo("n0", takes(0)))
    lab.submit(job_named("plain"), exits(0, after_s=1.0))
    lab.pass_s(5)
    assert lab.store.job("plain").state is JobState.SUCCEEDED
