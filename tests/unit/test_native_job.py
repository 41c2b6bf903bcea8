"""Reading job manifests: every field, both forms, bounds, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects.documents import read_documents
from holdfast.dialects.native.job import name_from_command
from holdfast.dialects.native.writing import write_job
from holdfast.dialects.reading import Fields
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import Action, JitterMode, MemoryGrowth
from holdfast.domain.terms.settings import Streams, UnknownEnd
from holdfast.domain.units import parse_cpu, parse_memory
from holdfast.domain.workloads.preparing import Preparation
from holdfast.domain.workloads.spec import JobSpec
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.errors import InvalidManifest, Problem
from tests.reading import read_job, read_job_mapping, read_manifests

FULL = """
apiVersion: holdfast.dev/v1
kind: Job
metadata: {name: train, labels: {team: nlp, example.com/owner: Ann}, annotations: {note: "any text: at all"}}
spec:
  queue: default
  priority: -5
  command: [python, train.py]
  env: {LR: "0.1"}
  workingDir: /srv/work
  resources: {cpu: 0.5, memory: 2Gi, gpu: 1}
  gang: 4
  ports: [http, grpc-web]
  nodeSelector: {zone: a}
  deadline: 1h
  totalDeadline: 1d
  schedulingTimeout: 10m
  grace: 0s
  stall: {noOutput: 10m, noProgress: 30m}
  signal: {name: SIGUSR2, before: 2m}
  checkpointedExitCode: 99
  prepare: {shell: pip install -r requirements.txt, timeout: 5m}
  onUnknownEnd: Hold
  retryPolicies: [infra, ml, infra]
  retry:
    retryLimit: 3
    defaultAction: Retry
    backoff: {initialDelay: 1s, maxDelay: 1m, multiplier: 2.0, jitter: deterministic}
    rules:
      - {name: oom, action: Retry, onConditions: [OOMKilled], mutate: {resources: {memory: {factor: 1.5, max: 8Gi}}}}
      - {name: bug, action: Fail, onExitCodes: {operator: In, values: [2]}}
"""


def problems_of(spec: dict[str, Any], **metadata: object) -> tuple[Problem, ...]:
    with pytest.raises(InvalidManifest) as caught:
        read_job_mapping({"metadata": metadata, "spec": {"command": ["true"], **spec}})
    return caught.value.problems


def test_every_field_of_a_manifest_reaches_the_specification() -> None:
    (spec,) = read_manifests(FULL)
    assert isinstance(spec, JobSpec)
    policy = spec.inline_policies[0]
    assert (spec.name, spec.queue, spec.priority, spec.command) == ("train", "default", -5, ("python", "train.py"))
    assert spec.labels == {"team": "nlp", "example.com/owner": "Ann"}
    assert (spec.annotations, spec.env) == ({"note": "any text: at all"}, {"LR": "0.1"})
    assert (spec.working_dir, spec.node_selector, spec.ports) == ("/srv/work", {"zone": "a"}, ("http", "grpc-web"))
    assert spec.resources == Resources(500, 2 * 1024**3, 1)
    assert (spec.gang, spec.grace_s) == (4, 0.0)
    assert (spec.deadline_s, spec.total_deadline_s, spec.scheduling_timeout_s) == (3600.0, 86400.0, 600.0)
    assert spec.stall == StallLimits(600.0, 1800.0)
    assert (spec.warning, spec.checkpointed_exit_code) == (EarlyWarning(120.0, "USR2"), 99)
    assert spec.prepare == Preparation(("/bin/sh", "-c", "pip install -r requirements.txt"), 300.0)
    assert spec.on_unknown_end is UnknownEnd.HOLD
    assert spec.retry_policies == ("infra", "ml"), "a repeated name counts at its first place"
    assert (policy.name, policy.retry_limit, policy.default_action) == ("inline", 3, Action.RETRY)
    assert policy.backoff is not None
    assert policy.backoff.jitter is JitterMode.DETERMINISTIC
    assert policy.rules[0].mutate is not None
    assert policy.rules[0].mutate.memory == MemoryGrowth(factor=1.5, max=8 * 1024**3)


def test_the_short_form_has_all_fields_side_by_side() -> None:
    spec = read_job_mapping({"name": "t", "labels": {"a": "b"}, "command": ["/bin/true"], "gang": 2})
    assert spec == JobSpec("t", ("/bin/true",), labels={"a": "b"}, gang=2)


def test_a_job_needs_nothing_but_a_command() -> None:
    assert read_job_mapping({"command": ["/usr/bin/Python3.11", "x"]}) == JobSpec(
        "python3-11", ("/usr/bin/Python3.11", "x")
    )


def test_a_shell_script_is_run_by_the_shell() -> None:
    spec = read_job_mapping({"shell": "python train.py | tee out"})
    assert spec.command == ("/bin/sh", "-c", "python train.py | tee out")
    assert spec.name == "sh"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("/bin/true",), "true"),
        (("./Train_v2.py",), "train-v2-py"),
        (("___",), "job"),
        (("a" * 80,), "a" * 63),
        ((), "job"),
    ],
)
def test_a_job_without_a_name_is_called_after_its_program(command: tuple[str, ...], name: str) -> None:
    assert name_from_command(command) == name


def test_several_inline_policies_have_names_of_their_own() -> None:
    spec = read_job_mapping({"command": ["x"], "retry": [{"retryLimit": 1}, {"name": "mine"}, {"retryLimit": 2}]})
    assert [policy.name for policy in spec.inline_policies] == ["inline", "mine", "inline3"]


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"command": []}, "spec.command", "must name a program"),
        ({"command": [""]}, "spec.command", "must name a program"),
        ({"command": None}, "spec.command", "is required"),
        ({"command": "python x"}, "spec.command", "must be a list, not text"),
        ({"command": ["sleep", 5]}, "spec.command[1]", "must be text, not a number 5"),
        ({"command": ["a\0b"]}, "spec.command[0]", "NUL"),
        ({"command": ["x" * 200_000]}, "spec.command[0]", "at most 131071"),
        ({"command": ["x"] * 10_001}, "spec.command", "at most 10000"),
        ({"shell": "x"}, "spec.shell", "cannot be set together with command"),
        ({"queue": "No Such"}, "spec.queue", "is invalid"),
        ({"priority": 1.5}, "spec.priority", "must be a whole number"),
        ({"priority": True}, "spec.priority", "must be a whole number, not a boolean"),
        ({"priority": 10**9}, "spec.priority", "out of range"),
        ({"gang": 0}, "spec.gang", "out of range"),
        ({"gang": 100_001}, "spec.gang", "out of range"),
        ({"gang": "4"}, "spec.gang", "must be a whole number, not text '4'"),
        ({"env": {"A": 1}}, "spec.env.A", "must be text"),
        ({"env": {"A": None}}, "spec.env.A", "has no value"),
        ({"env": {"1A": "x"}}, "spec.env.1A", "not a variable name"),
        ({"env": {"HOLDFAST_RANK": "0"}}, "spec.env.HOLDFAST_RANK", "set by Holdfast itself"),
        ({"env": ["A=b"]}, "spec.env", "must be a mapping"),
        ({"env": {f"V{i}": "x" * 1000 for i in range(1000)}}, "spec.env", "longer than"),
        ({"env": {f"V{i}": "x" for i in range(1001)}}, "spec.env", "at most 1000"),
        ({"workingDir": "here"}, "spec.workingDir", "not an absolute path"),
        ({"resources": {"cpu": "lots"}}, "spec.resources.cpu", "not a cpu amount"),
        ({"resources": {"memory": "2GB!"}}, "spec.resources.memory", "not a memory size"),
        ({"resources": {"gpu": -1}}, "spec.resources.gpu", "neither a number of GPUs nor a share of one"),
        ({"resources": {"gpu": 1.5}}, "spec.resources.gpu", "neither a number of GPUs nor a share of one"),
        ({"resources": {"gpu": {"count": 0.0005}}}, "spec.resources.gpu.count", "nor a share of one"),
        ({"resources": {"gpu": {"kind": "A100"}}}, "spec.resources.gpu.kind", "unknown field"),
        ({"resources": {"gpu": {"memory": "much"}}}, "spec.resources.gpu.memory", "not a memory size"),
        ({"resources": {"memroy": 1}}, "spec.resources.memroy", "unknown field"),
        ({"resources": {"Licence/x": 1}}, "spec.resources.Licence/x", "not the name of a resource"),
        ({"resources": {"scratch": "lots"}}, "spec.resources.scratch", "not an amount"),
        ({"resources": {"scratch": 0.0001}}, "spec.resources.scratch", "too fine"),
        ({"ports": ["a b"]}, "spec.ports[0]", "not a port name"),
        ({"ports": ["a-b", "A_b"]}, "spec.ports[1]", "same variable"),
        ({"nodeSelector": {"zone": "a b"}}, "spec.nodeSelector.zone", "not a label value"),
        ({"deadline": "soon"}, "spec.deadline", "not a duration"),
        ({"deadline": 0}, "spec.deadline", "must be more than 0"),
        ({"grace": "-1s"}, "spec.grace", "not a duration"),
        ({"stall": {"noOutput": "500ms"}}, "spec.stall.noOutput", "500ms is too short to be observed"),
        ({"stall": {"noProgress": 0}}, "spec.stall.noProgress", "too short"),
        ({"stall": {"noOutput": "soon"}}, "spec.stall.noOutput", "not a duration"),
        ({"stall": {"idleDevice": "15m"}}, "spec.stall.idleDevice", "needs GPUs, and the job asks for none"),
        ({"stall": {"noSleep": "15m"}}, "spec.stall.noSleep", "unknown field"),
        ({"stall": {}}, "spec.stall", "sets no limit"),
        ({"stall": "10m"}, "spec.stall", "must be a mapping"),
        ({"signal": {"name": "KILL", "before": "1m"}}, "spec.signal.name", "no program can heed KILL"),
        ({"signal": {"name": "SIGSTOP", "before": "1m"}}, "spec.signal.name", "no program can heed SIGSTOP"),
        ({"signal": {"name": "USR3", "before": "1m"}}, "spec.signal.name", "no signal to warn with"),
        ({"signal": {"name": "TERM"}}, "spec.signal.before", "is required"),
        ({"signal": {"before": 0}}, "spec.signal.before", "more than 0"),
        ({"signal": {"before": "1h"}, "deadline": "1h"}, "spec.signal.before", "not less than the deadline of 1h"),
        ({"signal": {"before": "1h"}, "totalDeadline": "9m"}, "spec.signal.before", "the totalDeadline of 9m"),
        ({"signal": "TERM"}, "spec.signal", "must be a mapping"),
        ({"checkpointedExitCode": 0}, "spec.checkpointedExitCode", "out of range"),
        ({"inputs": "x"}, "spec.inputs", "must be a list"),
        ({"inputs": [{"text": "x"}]}, "spec.inputs[0]", "must have a path, or be a blob to unpack"),
        ({"inputs": [{"path": "x"}]}, "spec.inputs[0]", "must have one of blob and text"),
        ({"inputs": [{"path": "x", "text": "a", "blob": "0"}]}, "spec.inputs[0]", "one of blob and text"),
        ({"inputs": [{"text": "x", "unpack": True}]}, "spec.inputs[0]", "must have a path, or be a blob to unpack"),
        ({"inputs": [{"path": "../x", "text": "a"}]}, "spec.inputs[0].path", "is no path below the work directory"),
        ({"inputs": [{"path": "/x", "text": "a"}]}, "spec.inputs[0].path", "is no path below the work directory"),
        ({"inputs": [{"path": "a/" * 64 + "b", "text": "a"}]}, "spec.inputs[0].path", "deeper than 64 names"),
        ({"inputs": [{"path": "a/b", "text": ""}, {"path": "a", "text": ""}]}, "spec.inputs", "both as a file and as"),
        ({"inputs": [{"path": "x", "blob": "A" * 64}]}, "spec.inputs[0].blob", "is no SHA-256"),
        ({"inputs": [{"path": "x", "text": "a"}], "workingDir": "/srv"}, "spec.inputs", "workingDir is another"),
        ({"command": ["x"], "keepWorkDirectory": 0}, "spec.keepWorkDirectory", "must be a boolean"),
        (
            {"command": ["x"], "keepWorkDirectory": False, "workingDir": "/srv"},
            "spec.keepWorkDirectory",
            "workingDir is another, which always stays",
        ),
        ({"prepare": {"timeout": "1m"}}, "spec.prepare.command", "is required"),
        ({"prepare": {"command": ["true"], "timeout": 0}}, "spec.prepare.timeout", "must be more than 0"),
        ({"prepare": {"command": ["true"], "limit": 1}}, "spec.prepare.limit", "unknown field"),
        ({"checkpointedExitCode": 256}, "spec.checkpointedExitCode", "out of range"),
        ({"onUnknownEnd": "hold"}, "spec.onUnknownEnd", "not one of its values"),
        ({"retryPolicies": ["A"]}, "spec.retryPolicies[0]", "is invalid"),
        ({"retryPolicies": "infra"}, "spec.retryPolicies", "must be a list"),
        ({"retry": "always"}, "spec.retry", "must be the spec of a RetryPolicy"),
        ({"retry": [{"name": "a"}, {"name": "a"}]}, "spec.retry", "two policies have the name 'a'"),
        ({"retry": {"rules": [{"action": "retry"}]}}, "spec.retry.rules[0].action", "not one of its values"),
        ({"retries": 3}, "spec.retries", "unknown field"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_path(spec: dict[str, Any], path: str, message: str) -> None:
    found = problems_of(spec)
    assert any(problem.path == path and message in problem.message for problem in found), found


def test_a_wrong_signal_is_answered_with_those_there_are_and_the_one_that_was_meant() -> None:
    (found,) = problems_of({"signal": {"name": "USR", "before": "1m"}})
    assert "TERM" in found.allowed
    assert found.hint == "did you mean USR2?"


def test_who_asks_for_a_warning_has_an_exit_code_for_what_is_saved_and_who_does_not_has_none() -> None:
    warned = read_job_mapping({"command": ["true"], "signal": {"before": "1m"}})
    assert (warned.warning, warned.checkpointed_exit_code) == (EarlyWarning(60.0, "TERM"), 85)
    assert read_job_mapping({"command": ["true"]}).checkpointed_exit_code is None


@pytest.mark.parametrize("name", ["exp_lr0.1", "Train", "a", "0.1", "x" * 63])
def test_a_job_may_be_named_as_people_name_experiments(name: str) -> None:
    assert read_job_mapping({"command": ["true"], "name": name}).name == name


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "my job"}, "metadata.name"),
        ({"name": "-a"}, "metadata.name"),
        ({"name": "a/b"}, "metadata.name"),
        ({"name": "a" * 64}, "metadata.name"),
        ({"name": ""}, "metadata.name"),
        ({"labels": {"-a": "x"}}, "metadata.labels.-a"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels.a"),
        ({"labels": {"a": 1}}, "metadata.labels.a"),
        ({"lables": {}}, "metadata.lables"),
    ],
)
def test_wrong_metadata_is_named_with_its_path(metadata: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in problems_of({}, **metadata)] == [path]


def test_a_misspelt_field_comes_with_what_was_probably_meant() -> None:
    (problem,) = problems_of({"retryPolices": ["a"]})
    assert problem.hint == "did you mean retryPolicies?"
    assert "retryPolicies" in problem.allowed


def test_a_misspelt_field_comes_with_all_that_are_allowed_whether_or_not_others_are_there() -> None:
    (plain,) = problems_of({"command": ["true"], "gnag": 2})
    (full,) = problems_of({"command": ["true"], "gnag": 2, "gang": 2})
    assert plain == full
    assert {"gang", "grace", "dependsOn", "retry", "signal", "totalDeadline", "command"} <= set(plain.allowed)


def test_of_very_many_unknown_fields_the_first_are_named_and_the_rest_counted() -> None:
    problems = problems_of({f"field{number}": 1 for number in range(10_000)})
    assert [problem.path for problem in problems[:-1]] == [f"spec.field{number}" for number in range(100)]
    assert (problems[-1].path, problems[-1].message) == ("spec", "has 9900 more unknown fields")


def test_all_problems_are_reported_together_with_their_lines() -> None:
    text = FULL.replace("gang: 4", "gang: many").replace("1h", "an hour").replace("OOMKilled", "OOM")
    with pytest.raises(InvalidManifest) as caught:
        read_manifests(text)
    found = {problem.path: problem.line for problem in caught.value.problems}
    assert found == {"spec.gang": 12, "spec.deadline": 15, "spec.retry.rules[0].onConditions[0]": 30}


@pytest.mark.parametrize(("written", "hint"), [("NO", '"NO"'), ("010", '"010"'), ("2024-01-01", '"2024-01-01"')])
def test_an_unclear_scalar_in_env_asks_for_quotes(written: str, hint: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_manifests(f"command: [x]\nenv:\n  V: {written}\n")
    (problem,) = caught.value.problems
    assert (problem.path, problem.line, problem.hint) == ("env.V", 3, f"quote it: {hint}")


def test_a_document_of_another_kind_is_no_job() -> None:
    (document,) = read_documents("apiVersion: holdfast.dev/v1\nkind: Queue\nmetadata: {name: q}\n")
    with pytest.raises(InvalidManifest, match="is not a job"):
        read_job(document)


@pytest.mark.parametrize("text", ["1e900000", "1e999999", "1e9999999999", "1e-900000", "-1e900000", "1e99m"])
def test_an_amount_of_cpu_that_is_short_to_write_and_endless_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="is out of range: cpu"):
        parse_cpu(text)


@pytest.mark.parametrize("size", [10**400, -(10**400), 1e300, float("inf"), float("nan")])
def test_a_memory_size_beyond_measure_is_refused(size: float) -> None:
    with pytest.raises(ValueError, match=r"out of range|is not a memory size"):
        parse_memory(size)


def test_streams_are_kept_together_unless_asked_otherwise() -> None:
    assert read_job_mapping({"command": ["x"]}).logs is Streams.TOGETHER
    spec = read_job_mapping({"command": ["x"], "logs": "separate"})
    assert spec.logs is Streams.SEPARATE
    assert write_job(spec)["logs"] == "separate"
    assert "logs" not in write_job(read_job_mapping({"command": ["x"]}))
    with pytest.raises(InvalidManifest, match="logs"):
        read_job_mapping({"command": ["x"], "logs": "apart"})


def test_bounds_of_whole_numbers_are_said_in_full() -> None:
    part = Fields({"exitCode": 10**12}, "spec", [])
    assert part.integer("exitCode", low=-(2**31), high=2**31 - 1) is None
    [problem] = part.problems
    assert problem.allowed == ("-2147483648 to 2147483647",)
