"""What a job asks for reaches the engine: an order leaves nothing out but what the job has no words for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec
from holdfast.domain.containers import ContainerRole, Mount, Port, Volume
from holdfast.domain.job import Job, Resources
from holdfast.domain.record import evolve
from holdfast.domain.terms.resources import ONE_POD
from holdfast.domain.terms.settings import Streams
from holdfast.domain.workloads.kubejob.model import KubeJobSpec
from holdfast.domain.workloads.kubejob.program import ContainerSpec, Program, Variable
from holdfast.domain.workloads.preparing import Input, Preparation
from holdfast.domain.workloads.spec import JobSpec, KubeJob, PodProgram
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import Container, NodeInfo, RunOrder
from holdfast.ports.store import Submission
from tests.unit.conftest import job_named

if TYPE_CHECKING:
    from holdfast.domain.record import Struct
    from tests.unit.conftest import Lab

ENDLESS = SimulatedRun(0.0, None)
EMPTY = Container()
NO_ORDER = RunOrder("", "", "", 0, 1, 0, ())
FPGA = "example.com/fpga"
WATCHED = {"stall": StallLimits(no_output_s=60.0), "warning": EarlyWarning(30.0)}


def left_out(order: Struct, empty: Struct) -> set[str]:
    """Name the fields that have the value they have when nobody says anything."""
    return {name for name in empty.__struct_fields__ if getattr(order, name) == getattr(empty, name)}


def ordered(lab: Lab, spec: JobSpec) -> RunOrder:
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 4, 0, ((FPGA, 4000),)), {"zone": "a"}))
    lab.plans["everything"] = lambda _: ENDLESS
    now = lab.clock.now()
    job = Job("id-1", "everything", "default", 0, now, dump_spec(spec), spec.resources, 2)
    lab.store.submit(Submission([evolve(job, queued_at=now, kind=spec.kind, submitted_by="ann", submitter_uid=1001)]))
    lab.pass_s(5)
    return lab.orders[0]


def test_an_order_for_a_program_has_all_that_its_job_asks_for(lab: Lab) -> None:
    spec = job_named(
        "everything",
        resources=Resources(1000, 1 << 30),
        gang=2,
        env={"A": "b"},
        secrets={"KEY": "key"},
        working_dir="/srv",
        ports=("http",),
        deadline_s=100.0,
        grace_s=3.0,
        node_selector={"zone": "a"},
        logs=Streams.SEPARATE,
        checkpointed_exit_code=85,
        inputs=(Input("data", data="eA=="),),
        prepare=Preparation(("make", "ready")),
        keeps_work=False,
        identity="everything",
        checkpoints_of=("id-0",),
        **WATCHED,
    )
    order = ordered(lab, spec)
    assert left_out(order, NO_ORDER) == {"volumes", "devices", "gpus", "avoid_node", "avoid_nodes", "template"}
    assert left_out(order.main, EMPTY) == {
        "name",
        "role",
        "image",
        "is_arguments",
        "memory_limit",
        "ports",
        "mounts",
    }
    assert (order.size, order.rank, order.attempt) == (2, 0, 1)


def test_an_order_for_a_pod_has_all_that_its_template_asks_for(lab: Lab) -> None:
    def container(name: str, **more: object) -> dict[str, object]:
        return {
            "container": name,
            "image": "busybox",
            "command": ("$(A)", "$(JOB_NAME)"),
            "env": (Variable("A", "b"), Variable("ME", "POD_NAME", told=True)),
            "working_dir": f"/{name}",
            "resources": Resources(500, 1 << 20),
            "memory_limit": 2 << 20,
            "ports": (Port(80),),
            "mounts": (Mount("data", "/data"),),
            **more,
        }

    program = Program(
        **container("first", resources=Resources(1500, 3 << 20, 0, 0, ((FPGA, 1000),)), is_arguments=True),  # type: ignore[arg-type] # by name
        own=Resources(250, 1 << 20),
        others=(ContainerSpec(**container("before", role=ContainerRole.INIT)),),  # type: ignore[arg-type] # by name
        grace_s=3.0,
        deadline_s=100.0,
        node_selector={"zone": "a"},
        volumes=(Volume("data"),),
        devices={FPGA: 1},
        **WATCHED,  # type: ignore[arg-type] # by name
    )
    kube = KubeJob(KubeJobSpec(parallelism=2, completions=2), program, {"template": {"spec": {"x": "y"}}})
    spec = JobSpec("everything", (), resources=program.resources, gang=1, kube=kube)
    order = ordered(lab, spec)
    assert left_out(order, NO_ORDER) == {
        "checkpointed_exit_code",
        "identity",
        "inputs",
        "keeps_work",
        "preparation",
        "ports",
        "gpus",
        "avoid_node",
        "avoid_nodes",
        "separate_logs",
        "checkpoints_of",
    }
    before, first = order.containers
    assert (left_out(first, EMPTY), left_out(before, EMPTY)) == (
        {"role", "secrets"},
        {"secrets", "is_arguments"},
    )
    assert (before.command, before.env["ME"][:10]) == (("b", "everything"), "everything")
    assert (first.resources, before.resources) == (Resources(250, 1 << 20), Resources(500, 1 << 20))
    assert (order.size, order.resources) == (2, program.resources + ONE_POD)


def test_a_pod_that_a_door_was_sent_is_told_who_it_is_and_what_each_retry_is_called(lab: Lab) -> None:
    env = (Variable("ID", "JOB_UID", told=True), Variable("ME", "POD_NAME", told=True), Variable("BOTH", "$(ID)/$(ME)"))
    program = Program(command=("sh", "$(BOTH)", "$(NONE)"), env=env, resources=Resources(100, 1 << 20))
    spec = JobSpec("everything", program.command, resources=program.resources, pod=PodProgram(program, {}, "a-{id}-0"))
    order = ordered(lab, spec)
    assert order.main.command == ("sh", "id-1/a-id-1-0", "$(NONE)")
    assert (order.main.env["ID"], order.main.env["ME"]) == ("id-1", "a-id-1-0")
    assert (order.main.resources, order.resources) == (program.resources, program.resources)
