"""Stored job sets come back the same, their jobs share one description, and Jobs survive the codec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import VERSION, dump_set_spec, dump_spec, load_set_spec, load_spec
from holdfast.dialects.documents import read_documents
from holdfast.dialects.jobset.loading import child_spec, dump_set, plain_job_spec
from holdfast.dialects.jobset.reading import JobManifest
from holdfast.dialects.manifests import read_manifest
from holdfast.domain.job import Resources
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.kubejob.model import CompletionMode
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec
from holdfast.errors import InvalidManifest, UnreadableSpec
from tests.reading import read_job
from tests.unit.jobset_lab import compiled
from tools.cases.kube_reading import read_kube

if TYPE_CHECKING:
    from collections.abc import Callable

STORED = Path(__file__).parents[1] / "data" / "stored"
"""Samples of what each version stored: ``source`` is the manifest, ``child`` the first replicated job of its set."""
DOCUMENT = sorted((Path(__file__).parents[1] / "data" / "kep-262").glob("*.yaml"))
NATIVE = """\
apiVersion: holdfast.dev/v1
kind: JobSet
metadata:
  name: train
  labels: {team: blue}
spec:
  queue: gpu
  priority: 7
  jobs:
  - name: workers
    replicas: 3
    parallelism: 2
    command: [python, train.py, "--rank=$(JOB_COMPLETION_INDEX)", "$$HOME"]
    env: {A: "1", B: "$(A)"}
    workingDir: /srv
    grace: 5s
    resources: {cpu: 2, memory: 1Gi, gpu: 1}
    nodeSelector: {zone: a}
    retryPolicies: [patient]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: pi
  labels: {holdfast.dev/queue: slow}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: pi
        command: [perl, "-e", "print 3"]
        args: ["$(JOB_COMPLETION_INDEX)"]
"""


def job() -> JobSpec:
    manifest = read_kube(read_documents(JOB)[0]).manifest
    assert isinstance(manifest, JobManifest)
    return plain_job_spec(manifest)


def native() -> JobSetSpec:
    return compiled(dict(read_documents(NATIVE)[0].value))


@pytest.mark.parametrize("path", DOCUMENT, ids=lambda path: path.stem)
def test_every_set_of_the_document_comes_back_as_it_was_compiled(path: Path) -> None:
    for document in read_documents(path.read_text(), lenient=True):
        read_first = read_kube(document, lenient=True).manifest
        if isinstance(read_first, JobSetSpec):
            assert load_set_spec(dump_set_spec(read_first)) == read_first


def test_equal_texts_share_one_object_and_fields_may_come_in_any_order() -> None:
    value = dict(read_documents(NATIVE)[0].value)
    turned = dict(reversed(value.items()))
    assert dump_set(turned) == dump_set(value)
    texts = [dump_set_spec(compiled(one)) for one in (value, turned)]
    assert load_set_spec(texts[0]) is load_set_spec(texts[1])


def test_what_a_server_adds_to_an_object_is_left_out() -> None:
    value = dict(read_documents(NATIVE)[0].value)
    served = {**value, "status": {"restarts": 1}, "metadata": {**value["metadata"], "uid": "x", "generation": 3}}
    assert dump_set(served) == dump_set(value)


def test_jobs_of_a_replicated_job_are_described_without_filling_anything_in() -> None:
    spec = native()
    assert child_spec(spec, spec.replicated_jobs[0]) == JobSpec(
        name="train-workers",
        command=("python", "train.py", "--rank=$(JOB_COMPLETION_INDEX)", "$$HOME"),
        queue="gpu",
        priority=7,
        labels={
            "team": "blue",
            "jobset.sigs.k8s.io/jobset-name": "train",
            "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        },
        env={"A": "1", "B": "$(A)"},
        working_dir="/srv",
        resources=Resources(2000, 1 << 30, 1),
        grace_s=5.0,
        node_selector={"zone": "a"},
        retry_policies=("patient",),
    )


def test_a_label_names_the_queue_where_a_manifest_has_no_field_for_it() -> None:
    assert JobSetSpec(name="a").queue_name == DEFAULT_QUEUE
    assert JobSetSpec(name="a", labels={"holdfast.dev/queue": "gpu"}).queue_name == "gpu"
    assert JobSetSpec(name="a", queue="own", labels={"holdfast.dev/queue": "gpu"}).queue_name == "own"


def test_a_job_of_its_own_survives_the_codec_with_its_pods() -> None:
    spec = job()
    text = dump_spec(spec)
    assert load_spec(text) == spec
    assert dump_spec(load_spec(text)) == text
    assert spec.kube is not None
    assert (spec.queue, spec.command) == ("slow", ("perl", "-e", "print 3", "$(JOB_COMPLETION_INDEX)"))
    assert (spec.kube.spec.mode, spec.kube.spec.backoff_limit_per_index) == (CompletionMode.INDEXED, 1)
    assert spec.kube.raw["template"]["spec"]["containers"][0]["name"] == "pi"


def test_what_has_its_default_is_not_stored() -> None:
    assert json.loads(dump_spec(JobSpec("a", ("true",)))) == {"version": 1, "spec": {"name": "a", "command": ["true"]}}


@pytest.mark.parametrize(
    "text", ["", "{}", '{"version":0,"spec":{}}', '{"version":1,"spec":{"name":3}}', '{"version":1,"spec":{"name":"a"']
)
@pytest.mark.parametrize("load", [load_spec, load_set_spec])
def test_a_stored_text_that_is_no_specification_has_an_error_of_its_own(
    load: Callable[[str], object], text: str
) -> None:
    with pytest.raises(UnreadableSpec, match="stored specification"):
        load(text)


def samples(version: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((STORED / f"version-{version}.json").read_text())
    return found


@pytest.mark.parametrize("sample", samples(VERSION), ids=lambda one: one["kind"])
def test_what_is_stored_changes_only_with_its_version(sample: dict[str, str]) -> None:
    (document,) = read_documents(sample["source"])
    found: Any = read_job(document) if sample["kind"] == "job" else read_manifest(document)
    if sample["kind"] == "child":
        found = child_spec(found, found.replicated_jobs[0])
    load, dump = (load_set_spec, dump_set_spec) if sample["kind"] == "set" else (load_spec, dump_spec)
    again: Any = load(sample["stored"])
    assert dump(again) == sample["stored"]
    assert again == found
    assert dump(found) == dump(again)


def test_an_annotation_names_retry_policies_in_kubernetes_own_forms() -> None:
    named = JOB.replace("metadata:\n", 'metadata:\n  annotations: {holdfast.dev/retry-policies: "oom, flaky,oom"}\n', 1)
    manifest = read_kube(read_documents(named)[0]).manifest
    assert isinstance(manifest, JobManifest)
    assert plain_job_spec(manifest).retry_policies == ("oom", "flaky")
    with pytest.raises(InvalidManifest) as caught:
        read_kube(read_documents(named.replace("oom, flaky", "Not a name"))[0])
    assert [one.path for one in caught.value.problems] == ["metadata.annotations.holdfast.dev/retry-policies"]
