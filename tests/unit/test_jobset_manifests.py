"""Reading JobSets and Jobs: the document's own manifests, words and paths of refusals, holes closed, the short form."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from holdfast.dialects.documents import read_documents
from holdfast.dialects.jobset.reading import JobManifest
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import SetAction
from holdfast.domain.workloads.jobset.model import JobSetSpec, RestartStrategy
from holdfast.domain.workloads.kubejob.model import UNLIMITED, CompletionMode, PodAction, PodReplacement, RestartPolicy
from holdfast.errors import InvalidManifest
from tests.reading import read_kube_text
from tools.cases.kube_reading import read_kube

STORY = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: simulations
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: {{topologyDomain}} # 1:1 assignment
spec:
  failurePolicy:
    rules:
    - action: RestartJob
      onJobFailureReasons:
      - ExitCode3
    - action: FailJob
      targetReplicatedJobs: [missing]
  replicatedJobs:
  - name: simulations
    replicas: 10
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 0
        podFailurePolicy:
          rules:
          - action: FailJob
            onExitCodes:
              containerName: main
              operator: In
              values: [3]
            setConditionReason: "ExitCode3"
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: bash:latest
              image: python:3.10
              command: ["..."]
"""
DOCUMENT = sorted((Path(__file__).parents[1] / "data" / "kep-262").glob("*.yaml"))
POD = {"containers": [{"name": "main", "command": ["true"]}]}


def jobset(spec: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **group: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    template = {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": POD}, **(job or {})}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js"},
        "spec": {"replicatedJobs": [{"name": "a", "template": template, **group}], **(spec or {})},
    }


def job(spec: dict[str, Any], **pod: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    full = {"template": {"spec": {**POD, "restartPolicy": "Never", **pod}}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": full}


def read_set(value: dict[str, Any], *, lenient: bool = False) -> JobSetSpec:
    found = read_kube(value, lenient=lenient).manifest
    assert isinstance(found, JobSetSpec)
    return found


def refusals(value: dict[str, Any], *, lenient: bool = False) -> str:
    with pytest.raises(InvalidManifest) as caught:
        read_kube(value, lenient=lenient)
    return "\n".join(map(str, caught.value.problems))


def test_the_documents_hazards_are_errors_with_lines() -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_kube_text(STORY)
    assert [problem.line for problem in caught.value.problems] == [6]
    assert "'{{topologyDomain}}' is an unfilled template placeholder" in str(caught.value)
    with pytest.raises(InvalidManifest) as caught:
        read_kube_text(STORY.replace("{{topologyDomain}}", "rack"))
    assert [problem.line for problem in caught.value.problems] == [37]
    assert "duplicate key 'image', first on line 36" in str(caught.value)


def test_the_documents_hazards_are_warnings_with_lines_for_a_lenient_reader() -> None:
    read = read_kube_text(STORY, lenient=True)[0]
    assert [warning.line for warning in read.warnings] == [6, 37, 14, 10]
    assert isinstance(read.manifest, JobSetSpec)
    group = read.manifest.replicated_jobs[0]
    assert group.topology == "{{topologyDomain}}"
    assert group.template["spec"]["template"]["spec"]["containers"][0]["image"] == "python:3.10"
    assert read.manifest.failure is not None
    assert [rule.action for rule in read.manifest.failure.rules] == [SetAction.RESTART_JOB, SetAction.FAIL_JOB]
    assert group.job.failure_rules is not None
    assert (group.job.failure_rules[0].action, group.job.failure_rules[0].job_reason) == (
        PodAction.FAIL_JOB,
        "ExitCode3",
    )


@pytest.mark.parametrize("text", ["run: echo {{x}} {{y}}", "text: '{{x}}'", "# a: {{x}}\nb: 1", 'a: "{{x}}"'])
def test_braces_that_are_no_placeholder_are_left_alone(text: str) -> None:
    assert read_documents(text, lenient=True)[0].warnings == ()
    assert read_documents(text)[0].value == read_documents(text, lenient=True)[0].value


@pytest.mark.parametrize("path", DOCUMENT, ids=lambda path: path.stem)
def test_the_documents_own_manifests_are_refused_with_lines_and_read_leniently(path: Path) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_kube_text(path.read_text())
    assert all(problem.line for problem in caught.value.problems)
    (read,) = read_kube_text(path.read_text(), lenient=True)
    assert isinstance(read.manifest, JobSetSpec)
    assert read.warnings
    assert all(warning.line for warning in read.warnings)


def test_defaults_are_upstreams() -> None:
    spec = read_set(jobset({"failurePolicy": {"rules": [{"action": "FailJobSet"}]}}))
    assert spec.failure is not None
    assert (spec.failure.max_restarts, spec.failure.strategy) == (0, RestartStrategy.RECREATE)
    assert spec.failure.rules[0].name == "failurePolicyRule0"
    group = spec.replicated_jobs[0]
    assert (group.replicas, group.group_name) == (1, "default")
    assert (group.job.mode, group.job.restart_policy) == (CompletionMode.INDEXED, RestartPolicy.ON_FAILURE)
    assert (group.job.backoff_limit, group.job.replacement) == (6, PodReplacement.TERMINATING_OR_FAILED)
    plain = read_kube(job({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1})).manifest
    assert isinstance(plain, JobManifest)
    assert (plain.spec.backoff_limit, plain.spec.parallelism) == (UNLIMITED, 1)
    queue = read_kube(job({"parallelism": 3})).manifest
    assert isinstance(queue, JobManifest)
    assert queue.spec.completions is None


RULE = "spec.failurePolicy.rules[0]"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (jobset({"failurePolicy": {"rules": [{"action": "No"}]}}), f'{RULE}.action: Unsupported value: "No"'),
        (jobset({"failurePolicy": {"rules": [{}]}}), f"{RULE}.action: is required"),
        (
            jobset({"failurePolicy": {"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["x"]}]}}),
            f"{RULE}.onJobFailureReasons[0]: invalid job failure reason 'x' in failure policy",
        ),
        (jobset({"failurePolicy": {"rules": [{"action": "FailJobSet", "name": "1"}]}}), "rule name '1'"),
        (jobset({"successPolicy": {"targetReplicatedJobs": ["b"]}}), "invalid replicatedJob name 'b' does not appear"),
        (jobset({"startupPolicy": {"startupPolicyOrder": "No"}}), 'supported values: "AnyOrder", "InOrder"'),
        (jobset({"network": {"subdomain": "No"}}), "spec.network.subdomain: Invalid value"),
        (jobset({"ttlSecondsAfterFinished": -1}), "must be greater than or equal to 0"),
        (jobset({"coordinator": {"replicatedJob": "b"}}), "coordinator replicatedJob b does not exist"),
        (jobset({"coordinator": {"replicatedJob": "a", "podIndex": 1}}), "coordinator pod index 1 is invalid"),
        (jobset({"unknown": 1}), "unknown field 'unknown'"),
        (jobset(groupName="a" * 64), ".spec.replicatedJob[].groupName is too long"),
        (jobset(dependsOn=[{"name": "b", "status": "Ready"}]), "DependsOn can't be set for the first ReplicatedJob"),
        (jobset(job={"backoffLimit": -1}), "spec.replicatedJobs[0].template.spec.backoffLimit: Invalid value: -1"),
        (jobset(job={"template": {"spec": {}}}), "template.spec.containers: Required value"),
        (jobset(job={"template": {"spec": {**POD, "contianers": []}}}), "did you mean containers?"),
        (job({}, restartPolicy="Always"), 'Required value: valid values: "OnFailure", "Never"'),
        (
            job({"completionMode": "Indexed", "parallelism": 2}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (job({"maxFailedIndexes": 1}), "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode"),
        (
            job({"successPolicy": {"rules": [{}]}}),
            "at least one of succeededCount or succeededIndexes must be specified",
        ),
        (
            job(
                {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "5"}]}}
            ),
            'succeededIndexes: Invalid value: "5": error parsing succeededIndexes: too large index: "5"',
        ),
        (job({}, containers=[{"name": "a"}, {"name": "a"}]), 'containers[1].name: Duplicate value: "a"'),
    ],
)
def test_a_refusal_has_the_path_and_words_of_the_api(value: dict[str, Any], message: str) -> None:
    assert message in refusals(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (jobset({"failurePolicy": {"maxRestarts": -1}}), "must be greater than or equal to 0"),
        (
            jobset({"failurePolicy": {"rules": [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(["]}]}}),
            "is not RE2",
        ),
        (
            jobset({"failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["b"]}]}}),
            "invalid replicatedJob name 'b' in failure policy",
        ),
        (jobset({"failurePolicy": {"rules": [{"action": "RestartJob"}]}}, replicas=1025), "replicas > 1024"),
    ],
)
def test_what_upstream_overlooks_is_refused_unless_the_reader_is_lenient(value: dict[str, Any], message: str) -> None:
    assert message in refusals(value)
    assert any(message in str(warning) for warning in read_kube(value, lenient=True).warnings)


def test_a_dependency_on_itself_is_refused_even_leniently() -> None:
    value = jobset()
    again = copy.deepcopy(value["spec"]["replicatedJobs"][0])
    value["spec"]["replicatedJobs"].append({**again, "name": "b", "dependsOn": [{"name": "b", "status": "Ready"}]})
    assert "replicatedJob: b cannot depend on replicatedJob: b" in refusals(value, lenient=True)


def test_rules_nothing_can_reach_are_warned_of() -> None:
    rules = [{"action": "RestartJobSet"}, {"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]
    warnings = read_kube(jobset({"failurePolicy": {"maxRestarts": 1, "rules": rules}})).warnings
    assert [str(warning) for warning in warnings] == [
        (
            "spec.failurePolicy.rules[1]: is never reached: rules[0] matches everything it does; "
            "hint: put the narrower rule first"
        )
    ]


NATIVE = {
    "apiVersion": "holdfast.dev/v1",
    "kind": "JobSet",
    "metadata": {"name": "train"},
    "spec": {
        "queue": "gpu",
        "totalDeadline": "1d",
        "killTimeout": "30s",
        "failurePolicy": {
            "maxRestarts": 5,
            "window": "1h",
            "resetAfter": "2h",
            "backoff": {"initialDelay": "5s"},
            "rules": [{"action": "RestartReplicatedJob", "limit": 3, "targetReplicatedJobs": ["workers"]}],
        },
        "jobs": [
            {"name": "driver", "shell": "sleep 1"},
            {
                "name": "workers",
                "replicas": 2000,
                "parallelism": 2,
                "command": ["python", "train.py"],
                "env": {"A": "b"},
                "resources": {"cpu": 2, "memory": "1Gi", "gpu": 1},
                "maxRestarts": 2,
                "retryPolicies": ["gentle"],
                "dependsOn": [{"name": "driver", "status": "Ready"}],
            },
        ],
    },
}


def test_the_short_form_becomes_the_same_model() -> None:
    spec = read_set(NATIVE)
    assert (spec.name, spec.queue, spec.total_deadline_s, spec.kill_timeout_s) == ("train", "gpu", 86400.0, 30.0)
    assert spec.failure is not None
    assert (spec.failure.window_s, spec.failure.reset_after_s, spec.failure.rules[0].limit) == (3600.0, 7200.0, 3)
    driver, workers = spec.replicated_jobs
    assert (workers.replicas, workers.max_restarts, workers.job.parallelism, workers.job.completions) == (2000, 2, 2, 2)
    assert workers.retry_policies == ("gentle",)
    assert (driver.job.backoff_limit, driver.job.restart_policy) == (0, RestartPolicy.NEVER)
    container = workers.template["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "train.py"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert (workers.program.resources, workers.program.memory_limit) == (Resources(2000, 1 << 30, 1), 1 << 30)
    assert driver.template["spec"]["template"]["spec"]["containers"][0]["command"] == ["/bin/sh", "-c", "sleep 1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shell": None}, "command: is required"),
        ({"command": ["a"]}, "cannot be set together"),
        ({"maxRestarts": -1}, "must be greater than or equal to 0"),
        ({"resources": {"cpu": "x"}}, "is not a cpu amount"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_the_short_form_is_checked_as_strictly(change: dict[str, Any], message: str) -> None:
    value = copy.deepcopy(NATIVE)
    value["spec"]["jobs"][0].update(change)  # type: ignore[index]  # plain data
    assert message in refusals(value)


def changed(value: dict[str, Any], *path: str | int, to: object) -> dict[str, Any]:
    new = copy.deepcopy(value)
    place: Any = new["spec"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return new


def test_the_short_form_restarts_single_jobs_however_many_there_are() -> None:
    spec = read_set(changed(NATIVE, "failurePolicy", "rules", 0, "action", to="RestartJob"))
    assert spec.failure is not None
    assert (spec.failure.rules[0].action, spec.by_name["workers"].replicas) == ("RestartJob", 2000)


TEMPLATE = ("replicatedJobs", 0, "template", "spec")


@pytest.mark.parametrize(
    ("path", "value", "suspended", "message"),
    [
        (("failurePolicy",), {"maxRestarts": 1}, False, "spec.failurePolicy: Invalid value: Value is immutable"),
        (("managedBy",), "example.com/x", False, 'spec.managedBy: Invalid value: "example.com/x": field is immutable'),
        (("suspend",), True, False, None),
        (("ttlSecondsAfterFinished",), 5, False, None),
        (("replicatedJobs", 0, "replicas"), 2, True, "field is immutable"),
        ((*TEMPLATE, "template", "spec", "nodeSelector"), {"a": "b"}, False, "field is immutable"),
        ((*TEMPLATE, "template", "spec", "nodeSelector"), {"a": "b"}, True, None),
        ((*TEMPLATE, "template", "metadata"), {"labels": {"a": "b"}}, True, None),
        ((*TEMPLATE, "template", "spec", "containers"), [], True, "field is immutable"),
        ((*TEMPLATE, "parallelism"), 2, False, "completions must be equal to parallelism for Elastic Indexed Jobs"),
        ((*TEMPLATE, "parallelism"), 0, False, "parallelism must be >= 1"),
    ],
)
def test_little_may_be_changed_and_a_little_more_while_suspended(
    path: tuple[str | int, ...],
    value: object,
    suspended: bool,  # noqa: FBT001 - pytest passes it by position
    message: str | None,
) -> None:
    old, notes = jobset({"suspend": suspended}), ManifestNotes()
    check_update(old, changed(old, *path, to=value), notes)
    found = "\n".join(map(str, notes.problems))
    assert (not found) if message is None else (message in found)


def test_the_size_of_an_indexed_job_may_change_until_its_set_has_ended() -> None:
    old = jobset()
    new = changed(changed(old, *TEMPLATE, "parallelism", to=4), *TEMPLATE, "completions", to=4)
    running, ended = ManifestNotes(), ManifestNotes()
    check_update(old, new, running)
    check_update(old, new, ended, finished=True)
    assert running.problems == []
    assert "terminal state" in str(ended.problems[0])


@pytest.mark.parametrize("name", ["Bad_Name", "j" * 70])
def test_a_bad_name_of_a_set_is_reported_once_on_its_own_line(name: str) -> None:
    problems = refusals({**jobset(), "metadata": {"name": name}}).splitlines()
    assert [problem.partition(":")[0] for problem in problems] == ["metadata.name"]


def test_a_volume_claim_may_name_no_other_namespace() -> None:
    def claims(namespace: str) -> dict[str, Any]:
        metadata = {"name": "data", "namespace": namespace}
        pod = {"containers": [{**POD["containers"][0], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
        policies = [{"templates": [{"metadata": metadata, "spec": {}}]}]
        return jobset({"volumeClaimPolicies": policies}, job={"template": {"spec": pod}})

    where = "spec.volumeClaimPolicies[0].templates[0].metadata.namespace"
    assert refusals(claims("other")) == f'{where}: Unsupported value: "other": supported values: "default"'
    assert read_set(claims("default")).volume_claims


def test_a_warning_about_what_was_read_does_not_say_that_it_was_not() -> None:
    warning = read_documents("a: {{x}}", lenient=True)[0].warnings[0]
    assert warning.message == "'{{x}}' is an unfilled template placeholder"
