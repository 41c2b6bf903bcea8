"""Manifests of job sets and Kubernetes Jobs among all others: what is read, refused with lines, and warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.dialects.diagnostics import all_problems
from holdfast.dialects.documents import read_documents
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.manifests import Reading, read_one, try_job
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest
from tests.reading import read_all, read_job, read_manifests

DOCUMENT = sorted((Path(__file__).parents[1] / "data" / "kep-262").glob("*.yaml"))
UPSTREAM = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        template:
          spec:
            containers:
            - name: main
              image: python:3.12
              command: [python, train.py]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: pi
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: pi
        command: [perl]
"""
NATIVE = """\
apiVersion: holdfast.dev/v1
kind: JobSet
metadata: {name: short}
spec:
  jobs:
  - name: a
    command: [echo]
    image: busybox
"""


def read(text: str, *, lenient: bool = False) -> Reading:
    return read_one(read_documents(text, lenient=lenient)[0], lenient=lenient)


def named(text: str, *lines: str) -> str:
    """Add lines below the name in a manifest's metadata."""
    written = text.splitlines()
    place = next(place for place, line in enumerate(written) if line.startswith("  name: "))
    return "\n".join([*written[: place + 1], *(f"  {line}" for line in lines), *written[place + 1 :]])


def test_all_three_kinds_are_read_beside_the_others() -> None:
    found = read_manifests(f"{UPSTREAM}---\n{JOB}---\n{NATIVE}---\ncommand: [x]\n")
    assert [type(one) for one in found] == [JobSetSpec, JobSpec, JobSetSpec, JobSpec]


def test_a_kubernetes_job_is_a_job_whose_pods_are_known() -> None:
    job = read_job(read_documents(JOB)[0])
    assert (job.name, job.command, job.gang) == ("pi", ("perl",), 1)
    assert job.kube is not None
    assert (job.kube.spec.backoff_limit, job.kube.spec.restart_policy) == (2, RestartPolicy.NEVER)


def test_a_job_in_the_short_form_is_still_a_job() -> None:
    assert read_job({"command": ["x"]}).kube is None


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (UPSTREAM, "spec.replicatedJobs[0].template.spec.template.spec", 12),
        (NATIVE, "spec.jobs[0]", 6),
        (JOB.replace("command", "image: perl\n        command"), "spec.template.spec", 8),
    ],
)
def test_an_image_that_is_not_used_is_warned_of_at_its_line(text: str, path: str, line: int) -> None:
    (warning,) = read(text).warnings
    assert (warning.path, warning.line) == (path, line)
    assert "is ignored: the command runs as a local process" in warning.message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (UPSTREAM, "spec.replicatedJobs[0].template.spec.template.spec.containers[0].command"),
        (JOB, "spec.template.spec.containers[0].command"),
    ],
)
def test_an_image_alone_is_refused_unless_the_reader_is_lenient(text: str, path: str) -> None:
    alone = "\n".join(line for line in text.splitlines() if "command" not in line)
    found = read(alone)
    assert found.manifest is None
    (problem,) = found.problems
    assert (problem.path, problem.message.split(":")[0]) == (path, "Required value")
    assert problem.hint is not None
    assert problem.line is not None
    lenient = read(alone, lenient=True)
    assert lenient.manifest is not None
    assert path in [warning.path for warning in lenient.warnings]


def test_arguments_without_a_command_are_an_image_alone_too() -> None:
    assert read(JOB.replace("command", "args")).manifest is None


def test_an_amount_that_is_none_is_refused_unless_the_reader_is_lenient() -> None:
    wrong = JOB.replace("command: [perl]", "command: [perl]\n        resources: {limits: {memory: 4 Gi}}")
    (problem,) = read(wrong).problems
    assert problem.path == "spec.template.spec.containers[0].resources"
    assert problem.message.startswith("Invalid value: memory: '4 Gi' is not a quantity")
    lenient = read(wrong, lenient=True)
    assert lenient.manifest is not None
    assert problem.path in [warning.path for warning in lenient.warnings]


def test_a_variables_value_is_text() -> None:
    wrong = JOB.replace("command: [perl]", "command: [perl]\n        env: [{name: A, value: 1}]")
    (problem,) = read(wrong).problems
    assert (problem.path, problem.hint) == ("spec.template.spec.containers[0].env[0].value", 'quote it: "1"')


def test_problems_of_sets_have_lines_and_say_which_document() -> None:
    broken = UPSTREAM.replace("replicas: 2", "replicas: -1")
    with pytest.raises(InvalidManifest) as caught:
        read_all(read_documents(f"{JOB}---\n{broken}"))
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("document[1].spec.replicatedJobs[0].replicas", 13 + 8)


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("terminationGracePeriodSeconds: -1", "terminationGracePeriodSeconds"),
        ("terminationGracePeriodSeconds: soon", "terminationGracePeriodSeconds"),
        ("nodeSelector: {a: [b]}", "nodeSelector.a"),
    ],
)
def test_what_a_program_needs_is_checked_when_it_is_read(field: str, path: str) -> None:
    problems = read(UPSTREAM.replace("containers:", f"{field}\n            containers:")).problems
    assert [one.path.removeprefix("spec.replicatedJobs[0].template.spec.template.spec.") for one in problems] == [path]


def test_a_place_to_work_in_is_text() -> None:
    (problem,) = read(JOB.replace("command: [perl]", "command: [perl]\n        workingDir: 3")).problems
    assert problem.path == "spec.template.spec.containers[0].workingDir"


def test_a_set_that_somebody_else_manages_is_warned_of() -> None:
    text = UPSTREAM.replace("  replicatedJobs", "  managedBy: kueue.x-k8s.io/multikueue\n  replicatedJobs", 1)
    assert "spec.managedBy" in [warning.path for warning in read(text).warnings]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (JOB.replace("spec:", "spec:\n  managedBy: other.example/queue", 1), "spec.managedBy"),
        (
            UPSTREAM.replace(
                "template:\n      spec:", "template:\n      spec:\n        managedBy: other.example/queue", 1
            ),
            "spec.replicatedJobs[0].template.spec.managedBy",
        ),
    ],
    ids=["a Job", "a Job of a set"],
)
def test_a_job_that_somebody_else_manages_is_warned_of(text: str, path: str) -> None:
    told = {warning.path: warning.message for warning in read(text).warnings}
    assert told[path] == "is managed by other.example/queue, so Holdfast does not run it"


@pytest.mark.parametrize("path", DOCUMENT, ids=lambda path: path.stem)
def test_every_manifest_of_the_document_is_taken_leniently_and_warned_of(path: Path) -> None:
    for document in read_documents(path.read_text(), lenient=True):
        found = read_one(document, lenient=True)
        assert found.problems == ()
        assert found.manifest is not None
        assert found.warnings


def test_a_reading_passes_on_what_the_text_was_forgiven() -> None:
    text = UPSTREAM.replace("replicas: 2", "replicas: 2\n    replicas: 3")
    found = read(text, lenient=True)
    assert "duplicate key 'replicas', first on line 8" in [warning.message for warning in found.warnings]
    assert isinstance(found.manifest, JobSetSpec)
    assert found.manifest.replicated_jobs[0].replicas == 3


@pytest.mark.parametrize(
    ("kind", "hint"),
    [("kind: JobSet", "job sets are sent to /jobsets"), ("kind: Queue", None)],
)
def test_what_is_no_job_is_refused_with_what_would_be(kind: str, hint: str | None) -> None:
    document = read_documents(NATIVE.replace("kind: JobSet", kind))[0]
    (problem,) = try_job(document).problems
    assert (problem.path, problem.allowed, problem.hint) == ("kind", ("holdfast.dev/v1/Job", "batch/v1/Job"), hint)
    with pytest.raises(InvalidManifest):
        read_job(document)


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ("replicas: 1", "replicas: 2", ["spec.jobs"]),
        ("command: [echo]", "command: [true]", ["spec.jobs"]),
        ("parallelism: 2", "parallelism: 4", []),
        ("nodeSelector: {a: b}", "nodeSelector: {a: c}", ["spec.jobs"]),
        ("suspend: false", "suspend: true", []),
        ("suspend: false", "suspend: true, ttl: 5s", []),
        ("suspend: false", "suspend: false, queue: other", ["spec.queue"]),
        ("suspend: false", "suspend: false, startup: InOrder", ["spec.startup"]),
        ("holdfast.dev/v1", "jobset.x-k8s.io/v1alpha2", ["apiVersion"]),
    ],
)
def test_what_may_change_in_the_short_form_is_what_may_change_upstream(old: str, new: str, paths: list[str]) -> None:
    text = """\
apiVersion: holdfast.dev/v1
kind: JobSet
metadata: {name: short}
spec: {suspend: false, jobs: [{name: a, replicas: 1, parallelism: 2, nodeSelector: {a: b}, command: [echo]}]}
"""
    before, after, notes = read_documents(text)[0], read_documents(text.replace(old, new))[0], ManifestNotes()
    check_update(before.value, after.value, notes)
    assert [problem.path for problem in notes.problems] == paths


def test_places_and_labels_may_change_while_a_set_is_suspended_in_the_short_form() -> None:
    text = NATIVE.replace("spec:\n", "spec:\n  suspend: true\n")
    change = text.replace("image: busybox", "image: busybox\n    nodeSelector: {a: b}\n    labels: {c: d}")
    notes = ManifestNotes()
    check_update(read_documents(text)[0].value, read_documents(change)[0].value, notes)
    assert notes.problems == []


def test_a_set_stays_in_its_queue() -> None:
    labelled = UPSTREAM.replace("name: train", "name: train\n  labels: {holdfast.dev/queue: gpu}")
    notes = ManifestNotes()
    check_update(read_documents(UPSTREAM)[0].value, read_documents(labelled)[0].value, notes)
    assert [problem.path for problem in notes.problems] == ["metadata.labels.holdfast.dev/queue"]


def test_a_version_names_its_kinds() -> None:
    (problem,) = read(JOB.replace("kind: Job", "kind: CronJob")).problems
    assert (problem.path, problem.allowed) == ("kind", ("Job",))


def test_a_text_that_cannot_be_read_still_tells_what_is_wrong_with_its_sets() -> None:
    text = UPSTREAM.replace("replicas: 2", "replicas: -1\n    name: twice")
    with pytest.raises(InvalidManifest) as caught:
        read_documents(text)
    paths = [problem.path for problem in all_problems(text, caught.value)]
    assert "spec.replicatedJobs[0].replicas" in paths


RESOURCES = "resources: {requests: {memory: %s}, limits: {memory: %s}}"


@pytest.mark.parametrize(("asked", "limit"), [("600Mi", "500Mi"), (2, 1), ("1Gi", "1G")])
def test_a_request_above_its_limit_is_refused_unless_the_reader_is_lenient(asked: object, limit: object) -> None:
    wrong = JOB.replace("command: [perl]", f"command: [perl]\n        {RESOURCES % (asked, limit)}")
    (problem,) = read(wrong).problems
    assert (problem.path, problem.line) == ("spec.template.spec.containers[0].resources.requests.memory", 13)
    assert problem.message.endswith(f"must be less than or equal to memory limit of {limit}")
    assert read(wrong, lenient=True).manifest is not None


@pytest.mark.parametrize(("asked", "limit"), [("500Mi", "500Mi"), ("1G", "1Gi"), ("50Mi", "500Mi")])
def test_a_request_up_to_its_limit_is_taken(asked: str, limit: str) -> None:
    assert read(JOB.replace("command: [perl]", f"command: [perl]\n        {RESOURCES % (asked, limit)}")).problems == ()


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        (named(UPSTREAM, "failurePolicy: {maxRestarts: 3}"), "metadata.failurePolicy", "spec"),
        (named(JOB, "label: {a: b}"), "metadata.label", "did you mean labels?"),
        (
            UPSTREAM.replace("    template:\n", "    template:\n      metadata: {backoffLimit: 3}\n", 1),
            "spec.replicatedJobs[0].template.metadata.backoffLimit",
            "spec",
        ),
        (
            JOB.replace("  template:\n", "  template:\n    metadata: {restartPolicy: Never}\n"),
            "spec.template.metadata.restartPolicy",
            "spec",
        ),
        (JOB.replace("  name: pi\n", "  generateName: pi-\n", 1), "metadata.generateName", "holdfast create"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_metadata_has_kubernetes_own_fields_only(text: str, path: str, hint: str, lenient: bool) -> None:  # noqa: FBT001 - a table
    problems = {problem.path: problem for problem in read(text, lenient=lenient).problems}
    assert path in problems
    assert hint in str(problems[path].hint)
    assert problems[path].line is not None


@pytest.mark.parametrize("text", [UPSTREAM, JOB])
def test_what_a_server_adds_to_metadata_is_no_mistake(text: str) -> None:
    served = ("uid: x", "generation: 2", "resourceVersion: '3'", "ownerReferences: []", "namespace: default")
    assert read(named(text, *served)).problems == ()


@pytest.mark.parametrize("text", [UPSTREAM, JOB])
@pytest.mark.parametrize("lenient", [False, True])
def test_there_is_one_namespace(text: str, lenient: bool) -> None:  # noqa: FBT001 - a table
    (problem,) = read(named(text, "namespace: team-a"), lenient=lenient).problems
    unsupported = 'Unsupported value: "team-a": supported values: "default"'
    assert (problem.path, problem.message) == ("metadata.namespace", unsupported)


def pod_with(lines: str) -> str:
    return JOB.replace("      restartPolicy: Never\n", f"      restartPolicy: Never\n      {lines}\n")


def container_with(lines: str) -> str:
    return JOB.replace("command: [perl]", f"command: [perl]\n        {lines}")


PROBE = "{exec: {command: [x]}}"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (pod_with("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}"), "affinity"),
        (pod_with("nodeName: n7"), "nodeName"),
        (pod_with("topologySpreadConstraints: [{maxSkew: 1}]"), "topologySpreadConstraints"),
        (pod_with("schedulingGroup: {podGroupName: g}"), "schedulingGroup"),
        (pod_with("priorityClassName: high"), "priorityClassName"),
        (pod_with("resourceClaims: [{name: c}]"), "resourceClaims"),
        (pod_with("securityContext: {runAsUser: 7}"), "securityContext"),
        (pod_with("volumes: [{name: v, hostPath: {path: /x}}]"), "volume v"),
        (container_with(f"livenessProbe: {PROBE}"), "livenessProbe"),
        (container_with("terminationMessagePath: /tmp/said"), "terminationMessagePath"),
        (container_with("terminationMessagePolicy: File"), "terminationMessagePolicy File"),
        (container_with(f"startupProbe: {PROBE}"), "startupProbe"),
        (container_with(f"readinessProbe: {PROBE}"), "readinessProbe"),
        (container_with(f"lifecycle: {{preStop: {PROBE}}}"), "lifecycle"),
        (container_with("restartPolicyRules: [{action: Restart}]"), "restartPolicyRules"),
        (container_with("volumeDevices: [{name: d, devicePath: /d}]"), "volumeDevices"),
        (container_with("resources: {requests: {ephemeral-storage: 1Gi}}"), "ephemeral-storage"),
    ],
)
def test_what_would_change_what_happens_in_a_cluster_is_warned_of(text: str, field: str) -> None:
    found = read(text)
    assert found.problems == ()
    assert [one.message.split(" is ignored")[0] for one in found.warnings] == [field]


def test_a_termination_message_from_the_end_of_the_log_is_not_warned_of() -> None:
    assert read(container_with("terminationMessagePolicy: FallbackToLogsOnError")).warnings == ()


@pytest.mark.parametrize("name", ["google.com/tpu", "amd.com/gpu", "hugepages-2Mi"])
def test_what_is_not_to_be_had_here_is_refused_unless_the_reader_is_lenient(name: str) -> None:
    text = container_with(f"resources: {{limits: {{{name}: 4}}}}")
    (problem,) = read(text).problems
    assert problem.path == "spec.template.spec.containers[0].resources"
    assert problem.message.startswith(f"Invalid value: {name}: ")
    assert read(text, lenient=True).manifest is not None


def test_pods_that_wait_for_somebody_to_open_a_gate_are_refused_unless_the_reader_is_lenient() -> None:
    text = pod_with("schedulingGates: [{name: example.com/quota}]")
    (problem,) = read(text).problems
    assert problem.path == "spec.template.spec.schedulingGates"
    assert problem.hint == "suspend the job until it may start"
    (warning,) = read(text, lenient=True).warnings
    assert (warning.path, warning.message) == (problem.path, problem.message)
    assert "nothing removes gates here; pods start as soon as there is room" in warning.message


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_pods_deadline_is_a_time(value: str) -> None:
    assert [one.path for one in read(pod_with(f"activeDeadlineSeconds: {value}")).problems] == [
        "spec.template.spec.activeDeadlineSeconds"
    ]


@pytest.mark.parametrize("action", ["RestartJobSet", "RestartJob", "RestartReplicatedJob"])
@pytest.mark.parametrize(("limit", "warned"), [("", True), ("maxRestarts: 0, ", True), ("maxRestarts: 1, ", False)])
def test_a_counted_rule_without_any_restarts_to_count_is_warned_of(action: str, limit: str, warned: bool) -> None:  # noqa: FBT001 - a table
    others = f"{{action: {action}AndIgnoreMaxRestarts, name: b}}, {{action: FailJobSet, name: c}}"
    rules = f"rules: [{{action: {action}}}, {others}]"
    text = UPSTREAM.replace("spec:\n", f"spec:\n  failurePolicy: {{{limit}{rules}}}\n", 1)
    told = [one.path for one in read(text).warnings if "maxRestarts" in one.message]
    assert told == (["spec.failurePolicy.rules[0].action"] if warned else [])
