"""Requests for sessions, read into job specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.backendai.sessions import SessionPlace, environ_of, read_session, warnings_of
from holdfast.dialects.backendai.slots import slots_of
from holdfast.domain.job import Resources
from holdfast.domain.terms.projects import Image, ResourceGroup
from holdfast.domain.workloads.dependencies import Condition, OnUnmet

if TYPE_CHECKING:
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.errors import Problem

IMAGE = Image("python", "python:3.11", env={"PYTHONPATH": "/lib", "MODE": "image's"}, command=("nice", "-n", "5"))
PLACE = SessionPlace("research", "default", IMAGE, ResourceGroup("gpu", node_selector={"gpu": "a"}))


def request(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - the fields of a request
    fields = {
        "session_name": "My Session!",
        "session_type": "batch",
        "resource_entries": [],
        "batch": {"startup_command": "python train.py"},
    }
    return {**fields, **more}


def read(**more: Any) -> JobSpec:  # noqa: ANN401 - as above
    problems: list[Problem] = []
    spec = read_session(request(**more), PLACE, problems)
    assert spec is not None, problems
    return spec


def paths(**more: Any) -> list[str]:  # noqa: ANN401 - as above
    problems: list[Problem] = []
    assert read_session(request(**more), PLACE, problems) is None
    return [problem.path for problem in problems]


def test_a_batch_session_is_a_job_that_runs_its_command_in_its_project_and_resource_group() -> None:
    batch = {"startup_command": "python train.py", "batch_timeout": 60, "starts_at": "2026-11-28T12:00:00"}
    spec = read(batch=batch, cluster_size=3, tier=0, preopen_ports=[8080, 8081])
    assert (spec.name, spec.command) == ("my-session", ("nice", "-n", "5", "bash", "-c", "python train.py"))
    assert (spec.queue, spec.priority, spec.gang, spec.deadline_s) == ("research", 0, 3, 60)
    assert spec.node_selector == {"gpu": "a"}
    assert spec.session is not None
    assert (spec.starts_at, spec.session.starts_at, spec.session.batch_timeout_s) == (1795867200.0, 1795867200.0, 60)
    assert spec.env == {
        "PYTHONPATH": "/lib",
        "MODE": "image's",
        "BACKENDAI_SESSION_NAME": "My Session!",
        "BACKENDAI_KERNEL_IMAGE": "python:3.11",
        "BACKENDAI_PREOPEN_PORTS": "8080,8081",
    }


def test_a_session_without_a_tier_has_the_default_one_and_its_old_name_counts_too() -> None:
    assert [read().priority, read(priority=0).priority, read(tier=7, priority=3).priority] == [10, 0, 7]


def test_an_interactive_session_holds_its_place_and_its_bootstrap_script_runs_first() -> None:
    spec = read(session_type="interactive", batch=None, bootstrap_script="cd /tmp; exit 1")
    assert spec.command[-1] == "(\ncd /tmp; exit 1\n)\nexec sleep infinity"


def test_a_session_waits_for_the_success_of_others() -> None:
    spec = read_session(request(), SessionPlace("q", "d", IMAGE, ResourceGroup("g"), dependencies=("job-1",)), [])
    assert spec is not None
    assert [(wait.name, wait.condition, wait.on_unmet) for wait in spec.after] == [
        ("job-1", Condition.OK, OnUnmet.CANCEL)
    ]


def test_slots_are_exact_and_read_back_as_they_were() -> None:
    entries = [("cpu", "0.5"), ("mem", "1073741824"), ("cuda.shares", "0.25")]
    spec = read(resource_entries=[{"resource_type": name, "quantity": amount} for name, amount in entries])
    assert spec.resources == Resources(cpu_m=500, memory=1 << 30, share_m=250)
    assert slots_of(spec.resources) == dict(entries)
    assert slots_of(Resources(cpu_m=500, gpu=2), 2) == {"cpu": "1", "mem": "0", "cuda.device": "4"}


@pytest.mark.parametrize(
    ("name", "quantity", "path"),
    [
        ("tpu", "1", "resource_entries[0].resource_type"),
        ("mem", "0.5", "resource_entries[0].quantity"),
        ("cuda.shares", "1.5", "resource_entries[0].quantity"),
        ("cpu", "1e30", "resource_entries[0].quantity"),
    ],
)
def test_a_wrong_amount_of_a_resource_is_refused(name: str, quantity: str, path: str) -> None:
    assert paths(resource_entries=[{"resource_type": name, "quantity": quantity}]) == [path]


def test_what_this_server_does_not_have_is_refused_not_ignored() -> None:
    assert paths(mounts=[{}], attach_network="x", callback_url="http://x") == [
        "mounts",
        "attach_network",
        "callback_url",
    ]
    assert paths(agent_list=["a", "b"]) == ["agent_list"]
    assert read(agent_list=["a"]).node_selector == {"gpu": "a", "kubernetes.io/hostname": "a"}


def test_variables_are_those_of_the_request_over_its_images_and_the_servers_own_are_reserved() -> None:
    assert environ_of(read(environ={"A": "1", "MODE": "own"})) == {"A": "1", "MODE": "own", "PYTHONPATH": "/lib"}
    assert paths(environ={"BACKENDAI_X": "1"}) == ["environ.BACKENDAI_X"]


def test_what_has_no_effect_is_warned_of() -> None:
    preferred = request(agent_list=["a"], agent_selection_policy="preferred")
    interactive = request(session_type="interactive", retry_policy={})
    assert [len(warnings_of(fields)) for fields in (request(), preferred, interactive)] == [0, 1, 1]
