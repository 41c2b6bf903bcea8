"""Whatever is changed in a manifest of a job set or a Kubernetes Job, it is read or refused with field paths.

What is read can be stored, read back equal, and described.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.compiled.codec import dump_set_spec, dump_spec, load_set_spec, load_spec
from holdfast.dialects.jobset.loading import child_spec
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.manifests import read_one
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.engine import SIMULATED

POD: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": {"zone": "a"},
        "initContainers": [{"name": "first", "command": ["true"]}],
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["run", "$(A)"],
                "args": ["x"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {}}}],
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "workingDir": "/srv",
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
JOB_SPEC: dict[str, Any] = {
    "completionMode": "Indexed",
    "parallelism": 2,
    "completions": 2,
    "backoffLimit": 3,
    "activeDeadlineSeconds": 60,
    "ttlSecondsAfterFinished": 60,
    "suspend": False,
    "podFailurePolicy": {
        "rules": [{"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [3]}}]
    },
    "template": POD,
}
RULE = {"name": "flaky", "action": "RestartJob", "onJobFailureReasons": ["BackoffLimitExceeded"]}
SET_SPEC: dict[str, Any] = {
    "suspend": False,
    "network": {"enableDNSHostnames": True, "subdomain": "net"},
    "coordinator": {"replicatedJob": "workers", "jobIndex": 0, "podIndex": 0},
    "successPolicy": {"operator": "All", "targetReplicatedJobs": ["workers"]},
    "failurePolicy": {"maxRestarts": 2, "rules": [RULE]},
    "ttlSecondsAfterFinished": 60,
    "replicatedJobs": [
        {"name": "driver", "template": {"spec": JOB_SPEC}},
        {
            "name": "workers",
            "replicas": 2,
            "groupName": "g",
            "dependsOn": [{"name": "driver", "status": "Ready"}],
            "template": {"metadata": {"annotations": {"a": "b"}}, "spec": JOB_SPEC},
        },
    ],
}
NATIVE_SPEC: dict[str, Any] = {
    "queue": "default",
    "priority": 3,
    "failurePolicy": {"maxRestarts": 2, "rules": [RULE], "backoff": {"initialDelay": "1s"}},
    "totalDeadline": "1h",
    "ttl": "1m",
    "jobs": [
        {
            "name": "workers",
            "replicas": 2,
            "parallelism": 2,
            "command": ["run"],
            "env": {"A": "1"},
            "grace": "5s",
            "resources": {"cpu": 1, "memory": "1Gi", "gpu": 1},
            "nodeSelector": {"zone": "a"},
            "maxRestarts": 3,
        }
    ],
}
METADATA = {"name": "train", "labels": {"team": "blue"}, "annotations": {"note": "x"}}
WHOLE = [
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": METADATA, "spec": JOB_SPEC},
    {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": METADATA, "spec": SET_SPEC},
    {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": METADATA, "spec": NATIVE_SPEC},
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**33),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["10", "1Gi", "Always", "Never", "workers", "a/b", "x" * 300, "\0", "$(A)"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers() | st.text(max_size=3) | st.just({}) | st.none(), max_size=3),
    st.dictionaries(st.sampled_from(["name", "cpu", "value", "a"]), st.integers() | st.text(max_size=3), max_size=2),
)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """Take a whole manifest and put something odd in up to three places."""
    document = copy.deepcopy(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 3))):
        spec = document.get("spec")
        _disturb(draw, spec if isinstance(spec, dict) and draw(st.booleans()) else document)
    return document


def _disturb(draw: st.DrawFn, at: Any) -> None:  # noqa: ANN401 - any part of a manifest
    while at:
        keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw(st.sampled_from(keys))
        deeper = isinstance(at[key], (dict, list)) and bool(at[key])
        if not deeper or draw(st.integers(0, 4)) == 0:
            if isinstance(at, dict) and draw(st.booleans()):
                del at[key]
            else:
                at[key] = draw(ODD)
            return
        at = at[key]


@pytest.mark.parametrize("document", WHOLE, ids=lambda one: f"{one['apiVersion']}-{one['kind']}")
def test_the_whole_manifests_are_read(document: dict[str, Any]) -> None:
    assert read_one(document, engines=lambda: [SIMULATED]).problems == ()


@given(manifests(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_manifest_is_read_or_refused_with_paths(document: dict[str, Any], lenient: bool) -> None:  # noqa: FBT001 - drawn
    found = read_one(document, lenient=lenient, engines=lambda: [SIMULATED])
    assert (found.manifest is None) == bool(found.problems)
    assert all(problem.message for problem in (*found.problems, *found.warnings))
    if isinstance(found.manifest, JobSpec):
        assert load_spec(dump_spec(found.manifest)) == found.manifest
    if isinstance(found.manifest, JobSetSpec):
        assert load_set_spec(dump_set_spec(found.manifest)) == found.manifest
        for group in found.manifest.replicated_jobs:
            described = child_spec(found.manifest, group)
            assert load_spec(dump_spec(described)) == described


@given(manifests(), manifests())
@settings(max_examples=100, deadline=None)
def test_any_two_manifests_of_a_set_can_be_compared(before: dict[str, Any], after: dict[str, Any]) -> None:
    notes = ManifestNotes()
    check_update(before, after, notes)
    assert all(problem.path and problem.message for problem in notes.problems)
