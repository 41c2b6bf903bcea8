"""Stored job sets come back the same, their jobs share one description, and Jobs survive the codec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.dialects.codec import dump_spec, load_spec
from holdfast.dialects.documents import read_documents
from holdfast.dialects.jobset.loading import child_spec, dump_set, load_set, plain_job_spec, queue_of
from holdfast.dialects.jobset.reading import JobManifest, read_kube
from holdfast.domain.resources import Resources
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.kubejob.model import CompletionMode
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec
from holdfast.errors import Internal

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
    return load_set(dump_set(read_documents(NATIVE)[0]), lenient=False)


@pytest.mark.parametrize("path", DOCUMENT, ids=lambda path: path.stem)
def test_every_set_of_the_document_comes_back_from_its_stored_text(path: Path) -> None:
    for document in read_documents(path.read_text(), lenient=True):
        read_first = read_kube(document, lenient=True).manifest
        if isinstance(read_first, JobSetSpec):
            assert load_set(dump_set(document), lenient=True) == read_first


def test_equal_texts_share_one_object_and_fields_may_come_in_any_order() -> None:
    value = dict(read_documents(NATIVE)[0].value)
    turned = dict(reversed(value.items()))
    assert dump_set(turned) == dump_set(value)
    assert load_set(dump_set(turned), lenient=False) is load_set(dump_set(value), lenient=False)


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
    assert queue_of(JobSetSpec(name="a")) == DEFAULT_QUEUE
    assert queue_of(JobSetSpec(name="a", labels={"holdfast.dev/queue": "gpu"})) == "gpu"
    assert queue_of(JobSetSpec(name="a", queue="own", labels={"holdfast.dev/queue": "gpu"})) == "own"


def test_a_job_of_its_own_survives_the_codec_with_its_pods() -> None:
    spec = job()
    text = dump_spec(spec)
    assert load_spec(text) == spec
    assert dump_spec(load_spec(text)) == text
    assert spec.kube is not None
    assert (spec.queue, spec.command) == ("slow", ("perl", "-e", "print 3", "$(JOB_COMPLETION_INDEX)"))
    assert (spec.kube.spec.mode, spec.kube.spec.backoff_limit_per_index) == (CompletionMode.INDEXED, 1)
    assert spec.kube.raw["template"]["spec"]["containers"][0]["name"] == "pi"


def test_a_job_without_pods_is_written_as_before() -> None:
    assert "kube" not in json.loads(dump_spec(JobSpec("a", ("true",))))


@pytest.mark.parametrize("text", ["{}", '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{}}'])
def test_a_stored_text_that_is_no_set_is_a_defect(text: str) -> None:
    with pytest.raises(Internal, match="stored job set"):
        load_set(text, lenient=True)
