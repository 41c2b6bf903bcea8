"""What a Python program says about a job becomes a manifest that Holdfast reads, with the rules it meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.native.job import read_job_manifest
from holdfast.domain.policy.patterns import Pattern
from holdfast.domain.terms.settings import SETTINGS
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.domain.workloads.spec import JobSpec
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.errors import InvalidRequest
from holdfast.sdk.calls.naming import in_words, kinds
from holdfast.sdk.manifest import Options, manifest_of, name_of, passed_on

if TYPE_CHECKING:
    from holdfast.errors import Problem


class Named:
    """As a job, known by its id."""

    def __init__(self, job_id: str) -> None:
        self.id = job_id


class Outer:
    class Transient(ConnectionError):
        """Raised by a class within a class."""


def read(options: Options) -> JobSpec:
    problems: list[Problem] = []
    job = read_job_manifest(manifest_of(["true"], options), path="", problems=problems)
    assert problems == []
    assert isinstance(job, JobSpec)
    return job


def decided(job: JobSpec, message: str) -> str | None:
    """Name the rule that a call's message meets first."""
    for rule in job.inline_policies[0].rules:
        if rule.termination_message is not None and Pattern(rule.termination_message).found_in(message):
            return rule.name
    return None


def test_every_option_reaches_the_job() -> None:
    job = read(
        {
            "name": "train",
            "queue": "research",
            "priority": 5,
            "gang": 2,
            "cpus": 0.5,
            "memory": "2Gi",
            "gpus": 1,
            "env": {"SEED": "7"},
            "labels": {"team": "vision"},
            "annotations": {"note": "a try"},
            "working_dir": "/",
            "deadline": "2h",
            "grace": "20s",
            "stall": {"noOutput": "10m"},
            "after": [Named("job0001"), "sweep:ended", {"name": "prep", "onUnmet": "run"}],
            "signal": {"before": "2m"},
            "checkpointed_exit_code": 99,
            "on_unknown_end": "Hold",
            "logs": "separate",
            "retries": 4,
            "policies": ["infra"],
        }
    )
    assert (job.name, job.queue, job.priority, job.gang) == ("train", "research", 5, 2)
    assert (job.resources.cpu_m, job.resources.memory, job.resources.gpu) == (500, 2 << 30, 1)
    assert job.env["SEED"] == "7"
    assert (job.labels, job.annotations) == ({"team": "vision"}, {"note": "a try"})
    assert (job.working_dir, job.deadline_s, job.grace_s) == ("/", 7200, 20)
    assert job.stall == StallLimits(no_output_s=600.0)
    assert job.after == (
        Dependency("job0001", target=DependencyKind.JOB),
        Dependency("sweep", Condition.ENDED),
        Dependency("prep", on_unmet=OnUnmet.RUN),
    )
    assert (job.warning, job.checkpointed_exit_code) == (EarlyWarning(120.0), 99)
    assert job.on_unknown_end == "Hold"
    assert job.logs == "separate"
    assert job.retry_policies == ("infra",)
    assert [policy.name for policy in job.inline_policies] == ["python", "retries"]
    assert job.inline_policies[1].retry_limit == 4


def test_a_text_is_a_line_for_the_shell_and_nothing_said_means_no_retries() -> None:
    job = read_job_manifest(manifest_of("echo $HOME", {}), path="", problems=[])
    assert isinstance(job, JobSpec)
    assert job.command == ("/bin/sh", "-c", "echo $HOME")
    assert job.inline_policies == ()


def test_every_option_that_is_wrong_is_told_at_once() -> None:
    wrong: Any = {"memmory": "2Gi", "on_exceptions": {"not a class": "retry", "OSError": "again"}}
    with pytest.raises(InvalidRequest) as caught:
        manifest_of(["true"], wrong)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["memmory", "on_exceptions[not a class]", "on_exceptions[OSError]"]
    assert caught.value.problems[2].allowed == ("retry", "fail", "hold", "ignore")


@pytest.mark.parametrize(
    ("key", "error", "matches"),
    [
        (ConnectionError, ConnectionResetError("gone"), True),
        ("ConnectionError", ConnectionResetError("gone"), True),
        ("OSError", ConnectionResetError("gone"), True),
        ("ResetError", ConnectionResetError("gone"), False),
        ("ValueError", ConnectionResetError("ValueError: in the text alone"), False),
        ("ValueError", KeyError("a text with\n[ValueError]"), False),
        ("Transient", Outer.Transient("x"), True),
        (Outer.Transient, Outer.Transient("x"), True),
        (f"{__name__}.Outer.Transient", Outer.Transient("x"), True),
        ("elsewhere.Transient", Outer.Transient("x"), False),
    ],
)
def test_a_rule_by_class_matches_the_class_and_those_made_of_it(
    key: str | type[BaseException], error: Exception, *, matches: bool
) -> None:
    job = read({"on_exceptions": {key: "retry"}})
    found = decided(job, f"{in_words(error)}\n{kinds(error)}")
    assert (found is not None) is matches


def test_the_first_exception_that_fits_decides_and_a_run_that_says_so_itself_comes_before_it() -> None:
    job = read({"on_exceptions": {"FileNotFoundError": "fail", "OSError": {"action": "retry", "retryLimit": 9}}})
    rules = {rule.name: rule for rule in job.inline_policies[0].rules}
    assert list(rules) == ["not-retryable", "retryable", "on-filenotfounderror", "on-oserror"]
    assert (rules["on-oserror"].retry_limit, job.inline_policies[0].retry_limit) == (9, 3)
    error = FileNotFoundError("x")
    assert decided(job, f"{in_words(error)}\n{kinds(error)}") == "on-filenotfounderror"
    assert decided(job, "OSError: x\n[not retryable]") == "not-retryable"
    assert decided(job, "busy\n[retryable]") == "retryable"


def test_a_written_policy_comes_after_exceptions_and_before_any_failure() -> None:
    written = {"name": "mine", "rules": [{"action": "Hold", "onExitCodes": {"operator": "In", "values": [3]}}]}
    job = read({"retry": written, "on_exceptions": {"OSError": "hold"}, "retries": 1})
    assert [policy.name for policy in job.inline_policies] == ["python", "mine", "retries"]


@pytest.mark.parametrize(
    ("function", "name"), [(name_of, "name_of"), (lambda: 0, "lambda"), (Outer(), "Outer"), (print, "print")]
)
def test_a_job_is_named_for_its_function(function: object, name: str) -> None:
    assert name_of(function) == name


def test_only_variables_that_find_programs_are_passed_on() -> None:
    environ = {"PATH": "/bin", "CONDA_PREFIX": "/c", "AWS_SECRET": "x", "HOLDFAST_TOKEN": "x"}
    assert passed_on(environ) == {"PATH": "/bin", "CONDA_PREFIX": "/c"}


def test_a_setting_that_has_a_flag_is_an_option_of_python_programs_too() -> None:
    assert {setting.option for setting in SETTINGS if setting.help} <= Options.__annotations__.keys()
