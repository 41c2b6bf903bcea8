"""Around a job set: its state as a record, restarts by hand, and a pod template as a local process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.workloads import dump_state, load_workload
from holdfast.dialects.jobset.program import read_program
from holdfast.domain.containers import Capability, ContainerRole, Mount, Port, Volume
from holdfast.domain.failure import ContainerResult
from holdfast.domain.job import Resources
from holdfast.domain.placement.pressure import DISK_REQUEST
from holdfast.domain.policy.model import Backoff, SetAction, SetRule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import Child, ChildPhase, CreateChild, DeleteChild
from holdfast.domain.workloads.jobset.children import pod_environment
from holdfast.domain.workloads.jobset.explain import explain_decision
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import (
    CoordinatorPod,
    FailurePolicy,
    JobSetSpec,
    Network,
    ReplicatedJob,
    pod_host,
)
from holdfast.domain.workloads.jobset.reconcile import ReconcileInput, converge
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, Terminal
from holdfast.domain.workloads.kubejob.model import CompletionMode, KubeJobSpec, KubeJobState, Pod, PodPhase
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.workloads.jobset.state import Transition

SPEC = JobSetSpec(
    name="js",
    replicated_jobs=(ReplicatedJob(name="a"), ReplicatedJob(name="b", replicas=2)),
    failure=FailurePolicy(
        max_restarts=9,
        window_s=60.0,
        backoff=Backoff(initial_s=5.0),
        rules=(
            SetRule(SetAction.FAIL_JOB, "leave", replicated_jobs=frozenset({"a"})),
            SetRule(SetAction.RESTART_JOB, "again"),
        ),
    ),
)
STARTED = converge(SPEC, JobSetState(), [], ReconcileInput(0.0))
CHILDREN = [
    Child(name=order.name, group=order.group, index=order.index, global_index=order.global_index)
    for order in STARTED.orders
    if isinstance(order, CreateChild)
]


@pytest.mark.parametrize(("subdomain", "domain"), [("", "js"), ("network-subdomain", "network-subdomain")])
def test_each_pod_has_a_host_name_of_its_own_in_its_sets_domain(subdomain: str, domain: str) -> None:
    coordinator = CoordinatorPod("b", job_index=1, pod_index=2)
    spec = evolve(SPEC, network=Network(subdomain=subdomain), coordinator=coordinator)
    hosts = [pod_host(spec, "b", index, pod) for index in range(2) for pod in range(3)]
    assert hosts == [f"js-b-{index}-{pod}.{domain}" for index in range(2) for pod in range(3)]
    job = CreateChild(name="js-a-0", group="a")
    assert pod_environment(spec, job, 0, uid="u")["JOBSET_COORDINATOR"] == hosts[-1]


def test_the_state_of_a_set_comes_back_from_its_record() -> None:
    failed = [evolve(child, phase=ChildPhase.FAILED, failed_at=1.0) for child in CHILDREN]
    state = converge(SPEC, STARTED.state, failed, ReconcileInput(1.0)).state
    assert state.left_failed
    assert state.not_before
    assert state.counted_at
    for each in (JobSet("s", state=state), JobSet("s")):
        assert load_workload(each.kind, {"id": "s"}, dump_state(each)) == each


def test_the_state_of_a_job_comes_back_from_its_record() -> None:
    spec = KubeJobSpec(parallelism=2, completions=2, mode=CompletionMode.INDEXED, backoff_limit_per_index=3)
    pods = [
        Pod(name="p", phase=PodPhase.FAILED, index=0, containers=(ContainerResult(1),), finished_at=5.0),
        Pod(name="q", phase=PodPhase.SUCCEEDED, index=1, finished_at=6.0),
    ]
    state = reconcile(spec, KubeJobState(), pods, 7.0).state
    assert state.index_failures
    job = KubeJobRecord("j", state=state)
    assert load_workload(job.kind, {"id": "j"}, dump_state(job)) == job


BY_HAND: list[tuple[Callable[[JobSetState], Transition], list[str]]] = [
    (lambda state: restart_set(SPEC, state, 1.0), ["js-a-0", "js-b-0", "js-b-1"]),
    (lambda state: restart_group(SPEC, state, "b"), ["js-b-0", "js-b-1"]),
    (lambda state: restart_job(SPEC, state, "b", 1), ["js-b-1"]),
]


@pytest.mark.parametrize(("restart", "expected"), BY_HAND)
def test_a_restart_by_hand_runs_that_again_and_counts_against_nothing(
    restart: Callable[[JobSetState], Transition], expected: list[str]
) -> None:
    turned = restart(STARTED.state)
    passed = converge(SPEC, turned.state, CHILDREN, ReconcileInput(2.0))
    assert [order.name for order in passed.orders if isinstance(order, DeleteChild)] == expected
    assert passed.state.counted == 0
    assert turned.events[0].reason == "RestartedByUser"
    left = [child for child in CHILDREN if child.name not in expected]
    again = converge(SPEC, passed.state, left, ReconcileInput(3.0))
    assert [order.name for order in again.orders if isinstance(order, CreateChild)] == expected


@pytest.mark.parametrize(("restart", "_expected"), BY_HAND)
def test_a_set_that_has_ended_is_not_restarted(
    restart: Callable[[JobSetState], Transition], _expected: list[str]
) -> None:
    with pytest.raises(Conflict, match="jobset js has ended: Failed"):
        restart(JobSetState(terminal=Terminal.FAILED))


def test_what_is_not_there_is_not_restarted() -> None:
    with pytest.raises(NotFound, match="no replicatedJob c"):
        restart_group(SPEC, STARTED.state, "c")
    with pytest.raises(NotFound, match="no job js-b-2"):
        restart_job(SPEC, STARTED.state, "b", 2)


SPENT = "jobset failed due to reaching max number of restarts"


def failing(*actions: SetAction, limit: int = 0) -> JobSetSpec:
    rules = tuple(SetRule(action, f"r{place}", reasons=frozenset({"X"})) for place, action in enumerate(actions))
    policy = FailurePolicy(max_restarts=limit, rules=rules, backoff=Backoff(initial_s=5.0))
    return evolve(SPEC, failure=policy)


@pytest.mark.parametrize(
    ("spec", "story"),
    [
        (
            evolve(SPEC, failure=None),
            ["The set has no failure policy, so its first failed job fails it."],
        ),
        (
            failing(SetAction.FAIL_JOB_SET),
            [
                "Rule r0 matched: failure reason X is one of X.",
                "FailJobSet: the set fails at once, whatever maxRestarts says.",
            ],
        ),
        (
            failing(SetAction.RESTART_JOB, limit=3),
            [
                "Rule r0 matched: failure reason X is one of X.",
                "RestartJob: only this job is restarted.",
                "This is restart 1 of 3 (maxRestarts).",
                "It starts 5s later.",
            ],
        ),
        (
            failing(),
            [
                "No rule matched, so the default action applied.",
                "RestartJobSet is refused and the set fails: 0 of 0 restarts are used (maxRestarts).",
            ],
        ),
    ],
)
def test_a_decision_is_explained_in_sentences(spec: JobSetSpec, story: list[str]) -> None:
    failed = [*CHILDREN[:2], evolve(CHILDREN[2], phase=ChildPhase.FAILED, reason="X")]
    decision = converge(spec, STARTED.state, failed, ReconcileInput(1.0)).decisions[0]
    assert explain_decision(decision) == ["Attempt 1 failed.", *story]


def test_every_action_says_what_follows() -> None:
    for action in SetAction:
        failed = [*CHILDREN[:2], evolve(CHILDREN[2], phase=ChildPhase.FAILED, reason="X")]
        decision = converge(failing(action, limit=1), STARTED.state, failed, ReconcileInput(1.0)).decisions[0]
        assert len(explain_decision(decision)) >= 3


def template(container: dict[str, Any], **pod: object) -> dict[str, Any]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", **container}], **pod}}


def test_a_pod_becomes_the_process_of_its_first_container() -> None:
    read = read_program(
        template(
            {
                "image": "python:3.10",
                "command": ["python", "$(SCRIPT)"],
                "args": ["--rank=$(JOB_COMPLETION_INDEX)", "$(UNKNOWN)", "$$(SCRIPT)"],
                "env": [{"name": "SCRIPT", "value": "train.py"}],
                "workingDir": "/srv",
                "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1}},
            },
            terminationGracePeriodSeconds=5,
            nodeSelector={"zone": "x"},
        )
    )
    program = read.program
    command, env = program.for_pod({"JOB_COMPLETION_INDEX": "3"})
    assert command == ("python", "train.py", "--rank=3", "$(UNKNOWN)", "$(SCRIPT)")
    assert env == {"JOB_COMPLETION_INDEX": "3", "SCRIPT": "train.py"}
    assert (program.working_dir, program.grace_s, program.node_selector) == ("/srv", 5.0, {"zone": "x"})
    assert program.resources == Resources(500, 1 << 30, 1)
    assert (program.image, program.is_arguments, read.notes) == ("python:3.10", False, ())


def test_what_a_local_process_does_not_have_is_noted() -> None:
    container = {
        "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}],
        "envFrom": [{}],
        "resources": {"limits": {"memory": "1 GB", "cpu": -1, "nvidia.com/gpu": 0.5}},
    }
    read = read_program(template(container))
    assert read.program.is_arguments
    assert [note.split(":")[0] for note in read.notes] == [
        "environment variable A is left out",
        "envFrom is ignored",
    ]
    unreadable = [(where, problem.split(": ")[0]) for where, problem in read.unreadable]
    assert unreadable == [("containers[0]", name) for name in ("cpu", "memory", "nvidia.com/gpu")]
    assert (read.program.resources, read.program.memory_limit) == (Resources(0), 0)


@pytest.mark.parametrize("kind", ["requests", "limits"])
def test_the_disk_that_a_pod_requests_counts_where_a_node_offers_it(kind: str) -> None:
    container = {"command": ["x"], "resources": {kind: {"ephemeral-storage": "2Gi"}}}
    read = read_program(template(container), lambda name: name == "ephemeral-storage")
    assert read.program.resources.amount_of(DISK_REQUEST) == (2 << 30) * 1000
    assert (read.notes, read.devices, read.unreadable) == ((), (), ())
    ignored = read_program(template(container))
    assert ignored.program.resources.amount_of(DISK_REQUEST) == 0
    assert (ignored.notes, ignored.devices) == (("ephemeral-storage is ignored: files have no limit",), ())


def test_a_pod_is_all_of_its_containers_in_the_order_they_start() -> None:
    def asks(cpu: str, **fields: object) -> dict[str, Any]:
        return {"command": ["x"], "resources": {"requests": {"cpu": cpu}}, **fields}

    read = read_program(
        template(
            asks("1", ports=[{"name": "web", "containerPort": 80}], volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            initContainers=[
                {"name": "proxy", "restartPolicy": "Always", **asks("250m")},
                {
                    "name": "fetch",
                    **asks("3"),
                    "env": [{"name": "A", "value": "b"}, {"name": "B", "value": "$(A)"}],
                },
            ],
            volumes=[{"name": "v", "emptyDir": {}}],
        )
    )
    program = read.program
    assert [(one.container, one.role) for one in program.containers] == [
        ("proxy", ContainerRole.SIDECAR),
        ("fetch", ContainerRole.INIT),
        ("main", ContainerRole.MAIN),
    ]
    assert (program.resources.cpu_m, program.own) == (3250, Resources(1000))
    assert program.containers[1].for_pod({"RANK": "3"})[1] == {"RANK": "3", "A": "b", "B": "b"}
    assert (program.ports, program.mounts) == ((Port(80, "web"),), (Mount("v", "/v"),))
    assert program.volumes == (Volume("v", {"emptyDir": {}}),)
    assert program.needs == {Capability.INIT_CONTAINERS, Capability.CONTAINERS}
    alone = program.within(frozenset())
    assert (alone.containers, alone.resources, alone.needs) == ((alone,), Resources(1000), frozenset())


@pytest.mark.parametrize(
    ("path", "told", "shown"),
    [
        ("metadata.annotations['batch.kubernetes.io/job-completion-index']", "3", "$(JOB_COMPLETION_INDEX)"),
        ("metadata.labels['jobset.sigs.k8s.io/job-index']", "1", "$(JOB_INDEX)"),
        ("metadata.labels['jobset.sigs.k8s.io/coordinator']", "", "$(JOBSET_COORDINATOR)"),
        ("metadata.labels['team']", "blue", "blue"),
        ("metadata.labels['nobody']", "", ""),
        ("metadata.labels['jobset.sigs.k8s.io/group-name']", "", "$(GROUP_NAME)"),
        ("metadata.labels['jobset.sigs.k8s.io/elastic']", None, None),
        ("metadata.name", "w-0-0-1", "$(POD_NAME)"),
        ("metadata.namespace", "default", "default"),
        ("status.podIP", None, None),
    ],
)
def test_a_variable_may_ask_what_the_pod_is_labelled_with(path: str, told: str | None, shown: str | None) -> None:
    container = {"command": ["x", "$(A)"], "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]}
    pod = {**template(container), "metadata": {"labels": {"team": "blue"}}}
    read = read_program(pod)
    command, env = read.program.for_pod({"JOB_COMPLETION_INDEX": "3", "JOB_INDEX": "1", "POD_NAME": "w-0-0-1"})
    assert env.get("A") == told
    assert command == ("x", "$(A)" if told is None else told)
    assert read.program.shown_env().get("A") == shown
    assert bool(read.notes) == (told is None)


def test_a_labels_text_refers_to_nothing_and_a_variable_only_to_those_before_it() -> None:
    path = "metadata.annotations['note']"
    env = [
        {"name": "A", "value": "$(B)"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": path}}},
        {"name": "C", "value": "$(B), $(TOLD), $$(A)"},
    ]
    pod = {**template({"command": ["x", "$(C)"], "env": env}), "metadata": {"annotations": {"note": "$(A) $$"}}}
    command, found = read_program(pod).program.for_pod({"TOLD": "1"})
    assert found == {"TOLD": "1", "A": "$(B)", "B": "$(A) $$", "C": "$(A) $$, $(TOLD), $(A)"}
    assert command == ("x", "$(A) $$, $(TOLD), $(A)")


@pytest.mark.parametrize(
    ("container", "pod", "asked", "limit"),
    [
        ({"requests": "50Mi", "limits": "500Mi"}, {}, 50, 500),
        ({"limits": "500Mi"}, {}, 500, 500),
        ({"requests": "50Mi"}, {}, 50, 0),
        ({}, {"requests": "50Mi", "limits": "500Mi"}, 50, 500),
        ({"limits": "100Mi"}, {"requests": "50Mi", "limits": "500Mi"}, 100, 100),
        ({}, {}, 0, 0),
    ],
)
def test_requests_find_a_place_and_limits_end_a_program(
    container: dict[str, str], pod: dict[str, str], asked: int, limit: int
) -> None:
    written = [{kind: {"memory": amount} for kind, amount in one.items()} for one in (container, pod)]
    read = read_program(template({"command": ["x"], "resources": written[0]}, resources=written[1]))
    assert read.unreadable == ()
    assert (read.program.resources.memory >> 20, read.program.memory_limit >> 20) == (asked, limit)


def test_a_limit_grows_with_what_a_program_asks_for() -> None:
    program = Program(resources=Resources(1000, 100))
    assert [program.grown(300, asked) for asked in (50, 100, 150, 200)] == [300, 300, 450, 600]
    assert Program(resources=Resources(1000, 100)).grown(0, 200) == 0
    assert Program().grown(300, 200) == 300


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"cpu": 2, "memory": 1024}, (2000, 1024, 0)),
        ({"cpu": 0.5, "memory": "1.5Gi"}, (500, 3 << 29, 0)),
        ({"cpu": "100u", "memory": "129e6"}, (1, 129_000_000, 0)),
        ({"cpu": "1k", "memory": "128974848000m"}, (1_000_000, 128_974_848, 0)),
        ({"cpu": ".5", "memory": "1E3", "nvidia.com/gpu": "2"}, (500, 1000, 2)),
        ({"cpu": "1", "memory": "129M", "nvidia.com/gpu": 1}, (1000, 129_000_000, 1)),
    ],
)
def test_amounts_are_read_as_kubernetes_writes_them(written: dict[str, Any], read: tuple[int, int, int]) -> None:
    found = read_program(template({"command": ["x"], "resources": {"limits": written}}))
    assert found.unreadable == ()
    assert found.program.resources == Resources(*read)


@pytest.mark.parametrize("value", ["", "4 Gi", "1GB", "1e", "--1", "-1", "1e999", True, "NaN", "0x10", "1Ki1"])
def test_what_is_no_amount_is_found(value: object) -> None:
    read = read_program(template({"command": ["x"], "resources": {"requests": {"memory": value}}}))
    assert len(read.unreadable) == 1
    assert read.program.resources.memory == Resources().memory
