"""Launches of Iris' users as job specifications."""

from __future__ import annotations

import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest

from holdfast.dialects.iris.files import INLINE, Files
from holdfast.dialects.iris.launches import Launch, kept_request, read_launch
from holdfast.dialects.iris.names import JobName, TaskName, read_name, read_task, target_of
from holdfast.dialects.iris.program import TaskServer
from holdfast.domain.devices import GpuSelector
from holdfast.domain.failure import FailureCondition
from holdfast.domain.job import Resources
from holdfast.domain.workloads.family import ChildrenEnd
from holdfast.domain.workloads.preparing import Input

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.errors import Problem

SERVER = TaskServer("http://here:1", "/usr/bin/python3", 77.0)
LEAST = {"name": "/ann/train", "entrypoint": {"run_command": {"argv": ["true"]}}}


def read(**given: object) -> Launch:
    problems: list[Problem] = []
    found = read_launch({**LEAST, **given}, SERVER, problems)
    assert found is not None, problems
    return found


def wrong(**given: object) -> list[str]:
    problems: list[Problem] = []
    assert read_launch({**LEAST, **given}, SERVER, problems) is None
    return [problem.path for problem in problems]


def test_a_launch_is_a_gang_in_a_group_that_is_called_as_its_job() -> None:
    resources = {
        "cpu_millicores": 1500,
        "memory_bytes": 1 << 30,
        "disk_bytes": 5 << 30,
        "device": {"gpu": {"variant": "H100", "count": 2}},
    }
    limits = {"timeout": {"milliseconds": 1500}, "scheduling_timeout": {"milliseconds": 0}}
    spec = read(resources=resources, replicas=3, ports=["http"], priority_band=3, **limits).spec
    assert (spec.name, spec.group, spec.gang, spec.ports) == ("train", "/ann/train", 3, ("http",))
    assert spec.resources == Resources(cpu_m=1500, memory=1 << 30, gpu=2)
    assert spec.gpus == GpuSelector(type="*H100*")
    assert (spec.deadline_s, spec.scheduling_timeout_s, spec.priority) == (1.5, None, -1000)
    assert spec.labels == {"door": "iris"}
    assert kept_request(spec.annotations)["replicas"] == 3


@pytest.mark.parametrize(
    ("given", "failures", "preemptions"),
    [
        ({}, 0, 1000),
        ({"max_retries_failure": 2}, 0, 1000),
        ({"max_task_failures": 5}, 0, 1000),
        ({"max_retries_failure": 5, "max_task_failures": 2, "max_retries_preemption": 0}, 2, 0),
        ({"max_retries_failure": 1, "max_task_failures": 7, "max_retries_preemption": 3}, 1, 3),
    ],
)
def test_the_smaller_limit_of_failures_counts_and_preemptions_have_their_own(
    given: dict[str, int], failures: int, preemptions: int
) -> None:
    [policy] = read(**given).spec.inline_policies
    limits = {rule.name: rule.retry_limit for rule in policy.rules}
    assert limits == {"unschedulable": None, "preemption": preemptions, "launch-failed": 2, "failure": failures}
    [lost] = [rule for rule in policy.rules if rule.name == "preemption"]
    assert lost.conditions is not None
    assert {FailureCondition.PREEMPTED, FailureCondition.NODE_LOST} <= lost.conditions


def test_constraints_are_labels_and_what_is_only_preferred_has_no_effect() -> None:
    text = {"value": {"string_value": "eu"}}
    spec = read(
        constraints=[
            {"key": "region", **text},
            {"key": "zone", "mode": 1, **text},
            {"key": "preemptible", "value": {"string_value": "false"}},
            {"key": "device-type", "value": {"string_value": "cpu"}},
        ]
    ).spec
    assert spec.node_selector == {"region": "eu"}
    assert wrong(constraints=[{"key": "region", "op": 8, "values": [text["value"]]}]) == ["constraints[0].op"]


def test_all_that_is_wrong_is_told_at_once_by_its_path() -> None:
    paths = wrong(
        name="train",
        replicas=0,
        max_task_failures=-1,
        container_profile=6,
        egress_policy=3,
        environment={"secrets": {"A": "b"}, "env_vars": {"HOLDFAST_X": "y"}},
        entrypoint={"run_command": {"argv": ["a\0b"]}},
    )
    assert paths == [
        "name",
        "max_task_failures",
        "replicas",
        "container_profile",
        "egress_policy",
        "environment.secrets",
        "entrypoint.run_command.argv[0]",
        "entrypoint.run_command.argv",
    ]


def test_variables_and_ports_are_no_more_than_a_program_can_be_given() -> None:
    assert wrong(environment={"env_vars": {"A": "x" * 60_000}}) == ["environment.env_vars"]
    assert wrong(environment={"env_vars": {"A=B": ""}}) == ["environment.env_vars.'A=B'"]
    assert wrong(ports=[f"p{number}" for number in range(1_000)]) == ["ports"]
    assert wrong(ports=["a-b", "A_B", "1"]) == ["ports[1]", "ports[2]"]


def test_files_are_put_below_the_work_directory_and_setup_is_run_before(tmp_path: Path) -> None:
    entry = {
        "run_command": {"argv": ["true"]},
        "workdir_files": {"lib/a.py": b"small", "large": bytes(INLINE + 1)},
        "setup_commands": ["echo one; cd /; exit", 'echo "$PWD $IRIS_WORKDIR"', "no-such-tool", "echo never"],
    }
    launch = read(bundle_blob=b"PK\x03\x04rest", entrypoint=entry)
    assert [(one.path, b64decode(one.data)) for one in launch.spec.inputs] == [("lib/a.py", b"small")]
    assert (launch.files.bundle, launch.files.large) == (b"PK\x03\x04rest", (("large", bytes(INLINE + 1)),))
    assert launch.spec.prepare is not None
    assert launch.spec.prepare.timeout_s == 77.0
    ran = subprocess.run(launch.spec.prepare.command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 127
    steps = ["[iris setup] step 1/4", "one", "[iris setup] step 2/4", f"{tmp_path} {tmp_path}", "[iris setup] step 3/4"]
    assert ran.stdout.splitlines() == steps
    assert "no-such-tool" in ran.stderr


def test_an_archive_without_files_is_nothing_and_one_known_is_named_by_its_hash() -> None:
    assert read(bundle_blob=b"PK\x05\x06" + bytes(18)).files == Files()
    known = "ab" * 32
    assert read(bundle_id=known).spec.inputs == (Input(blob=known, unpack=True),)
    assert wrong(bundle_id="../etc") == ["bundle_id"]


@pytest.mark.parametrize("path", ["../up", "/abs", "a//b", "a/./b", "", "a\nb"])
def test_files_outside_the_work_directory_are_refused(path: str) -> None:
    entry = {"run_command": {"argv": ["true"]}, "workdir_files": {path: b""}}
    assert wrong(entrypoint=entry) == [f"entrypoint.workdir_files.{path}"]


def test_a_file_of_a_job_cannot_be_the_folder_of_another_one() -> None:
    entry = {"run_command": {"argv": ["true"]}, "workdir_files": {"pkg": b"", "pkg/m.py": b""}}
    assert wrong(entrypoint=entry) == ["entrypoint.workdir_files"]
    deep = {"run_command": {"argv": ["true"]}, "workdir_files": {"d/" * 64 + "m.py": b""}}
    assert len(wrong(entrypoint=deep)) == 1


def test_a_task_finds_out_who_it_is_and_what_its_ports_are(tmp_path: Path) -> None:
    entry = {"run_command": {"argv": ["sh", "-c", 'echo "$0 $@"; env', "a b", "$c"]}}
    spec = read(entrypoint=entry, ports=["my-port"], environment={"env_vars": {"IRIS_TASK_ID": "mine", "A": "b"}}).spec
    told = {"HOLDFAST_RANK": "1", "HOLDFAST_ATTEMPT": "3", "HOLDFAST_SIZE": "2", "HOLDFAST_PORT_MY_PORT": "4711"}
    environ = {"PATH": "/usr/bin:/bin", **spec.env, **told}
    first, *said = subprocess.run(
        spec.command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = dict(line.partition("=")[::2] for line in said)
    assert first == "a b $c"
    assert (found["IRIS_TASK_ID"], found["IRIS_NUM_TASKS"], found["A"]) == ("/ann/train/1:2", "2", "b")
    assert (found["IRIS_PORT_MY_PORT"], found["IRIS_CONTROLLER_URL"]) == ("4711", "http://here:1")
    assert (found["IRIS_WORKDIR"], found["IRIS_PYTHON"]) == (str(tmp_path), "/usr/bin/python3")
    assert (tmp_path / ".iris-outputs").is_dir()


def test_names_are_of_jobs_of_tasks_or_of_attempts() -> None:
    problems: list[Problem] = []
    job = JobName(("ann", "a b", "kid"))
    assert read_name("/ann/a b/kid", "name", problems) == job
    assert target_of("/ann/a b/kid/3:2", "name", problems) == TaskName(job, 3, 2)
    assert read_task("/ann/a b/kid/3", "name", problems) == TaskName(job, 3)
    assert target_of("/ann/7", "name", problems) == JobName(("ann", "7"))
    assert target_of("/ann/x:1", "name", problems) == JobName(("ann", "x:1"))
    assert problems == []
    assert read_task("/ann/a b", "task_id", problems) is None
    assert [problem.message for problem in problems] == ["JobName is not a task: /ann/a b"]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, ChildrenEnd.WITH_ATTEMPT),
        ({"replicas": 1, "preemption_policy": 0}, ChildrenEnd.WITH_ATTEMPT),
        ({"replicas": 2}, ChildrenEnd.UNLESS_FAILED),
        ({"replicas": 2, "preemption_policy": 1}, ChildrenEnd.WITH_ATTEMPT),
        ({"preemption_policy": 2}, ChildrenEnd.UNLESS_FAILED),
    ],
)
def test_children_end_by_the_policy_or_by_the_number_of_tasks(given: dict[str, object], rule: ChildrenEnd) -> None:
    assert read(**given).spec.children is rule


def test_a_policy_for_children_that_is_none_is_refused() -> None:
    assert wrong(preemption_policy=3) == ["preemption_policy"]


def test_of_the_command_line_that_launched_a_job_the_beginning_is_kept() -> None:
    short, long = ["python", "train.py"], ["python", *["x" * 1_000] * 100, "end"]
    assert kept_request(read(submit_argv=short).spec.annotations)["submit_argv"] == short
    assert kept_request(read(submit_argv=long).spec.annotations)["submit_argv"] == long[:17]
    assert kept_request(read(submit_argv=["x" * 1_000_000]).spec.annotations)["submit_argv"] == []
