"""A manifest written another way is the same; one that means something else is not."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.dialects.jobset.canonical import canonical_set, canonical_template
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.manifests import read_one
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.engine import SIMULATED
from tests.property.test_jobset_manifest_properties import WHOLE, manifests

if TYPE_CHECKING:
    from collections.abc import Callable

JOB: dict[str, Any] = WHOLE[0]
SET: dict[str, Any] = WHOLE[1]
REMOVED = "(removed)"
_JOB = ("spec", "replicatedJobs", 0, "template", "spec")
_POD = ("template", "spec")
_MAIN = (*_POD, "containers", 0)
_REQUESTS = (*_MAIN, "resources", "requests")
_ENV = JOB["spec"]["template"]["spec"]["containers"][0]["env"]

REWRITTEN: list[tuple[tuple[str | int, ...], Any]] = [
    ((*_REQUESTS, "cpu"), "0.5"),
    ((*_REQUESTS, "cpu"), 0.5),
    ((*_REQUESTS, "memory"), 1 << 30),
    ((*_REQUESTS, "memory"), "1024Mi"),
    ((*_REQUESTS, "nvidia.com/gpu"), "1"),
    ((*_MAIN, "resources", "limits", "nvidia.com/gpu"), "1"),
    ((*_MAIN, "env"), _ENV[::-1]),
    ((*_MAIN, "imagePullPolicy"), "Always"),
    ((*_MAIN, "terminationMessagePath"), "/dev/termination-log"),
    ((*_MAIN, "terminationMessagePolicy"), "File"),
    ((*_MAIN, "ports"), []),
    ((*_POD, "dnsPolicy"), "ClusterFirst"),
    ((*_POD, "schedulerName"), "default-scheduler"),
    ((*_POD, "securityContext"), {}),
    (("template", "metadata", "creationTimestamp"), None),
    (("template", "metadata", "labels", "controller-uid"), "1234"),
    (("template", "metadata", "labels", "batch.kubernetes.io/job-name"), "train"),
    (("podReplacementPolicy",), "Failed"),
    (("podFailurePolicy", "rules", 0, "onPodConditions"), REMOVED),
    (("suspend",), REMOVED),
]
"""Of the ``spec`` of a Job."""
CHANGED: list[tuple[tuple[str | int, ...], Any]] = [
    ((*_REQUESTS, "cpu"), "501m"),
    ((*_REQUESTS, "memory"), 1000),
    ((*_REQUESTS, "memory"), REMOVED),
    ((*_MAIN, "command"), ["$(A)", "run"]),
    ((*_MAIN, "args"), REMOVED),
    ((*_MAIN, "image"), "busybox:2"),
    ((*_MAIN, "imagePullPolicy"), "Never"),
    ((*_MAIN, "env", 0, "value"), "2"),
    ((*_MAIN, "securityContext"), {"runAsUser": 1}),
    ((*_POD, "terminationGracePeriodSeconds"), 6),
    ((*_POD, "volumes", 0), {"name": "v", "hostPath": {"path": "/v"}}),
    (("template", "metadata", "labels", "a"), "c"),
    (("backoffLimit",), REMOVED),
    (("activeDeadlineSeconds",), 61),
    (("podFailurePolicy",), REMOVED),
]
REWRITTEN_SETS: list[tuple[tuple[str | int, ...], Any]] = [
    *(((*_JOB, *path), value) for path, value in REWRITTEN),
    (("status",), {"conditions": []}),
    (("metadata", "uid"), "1"),
    (("metadata", "managedFields"), [{"manager": "kubectl"}]),
    (("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"), "{}"),
    (("spec", "replicatedJobs", 0, "replicas"), 1),
    (("spec", "replicatedJobs", 0, "groupName"), "default"),
    (("spec", "startupPolicy"), {"startupPolicyOrder": "AnyOrder"}),
    (("spec", "failurePolicy", "restartStrategy"), "Recreate"),
    (("spec", "network", "publishNotReadyAddresses"), True),
    (("spec", "successPolicy", "operator"), REMOVED),
    (("spec", "coordinator", "podIndex"), REMOVED),
]
CHANGED_SETS: list[tuple[tuple[str | int, ...], Any]] = [
    *(((*_JOB, *path), value) for path, value in CHANGED),
    (("spec", "replicatedJobs", 0, "replicas"), 2),
    (("spec", "failurePolicy"), REMOVED),
    (("spec", "failurePolicy", "rules", 0, "name"), "failurePolicyRule0"),
    (("spec", "network", "subdomain"), REMOVED),
    (("spec", "startupPolicy"), {"startupPolicyOrder": "InOrder"}),
]


def written(document: dict[str, Any], *edits: tuple[tuple[str | int, ...], Any]) -> dict[str, Any]:
    """Return a manifest with other values in some places."""
    found = copy.deepcopy(document)
    for path, value in edits:
        at: Any = found
        for key in path[:-1]:
            at = at[key]
        last = path[-1]
        if value != REMOVED:
            at[last] = copy.deepcopy(value)
        elif last in at:
            del at[last]
    return found


def compiled(document: dict[str, Any]) -> JobSetSpec | JobSpec | None:
    """Read a manifest; what is written of templates is left out, and its annotations and labels, which may be added."""
    found = read_one(document, engines=lambda: [SIMULATED]).manifest
    if isinstance(found, JobSetSpec):
        groups = [evolve(one, template={}, program=_sorted(one.program)) for one in found.replicated_jobs]
        return evolve(found, replicated_jobs=tuple(groups), labels={}, annotations={})
    if isinstance(found, JobSpec) and found.kube is not None:
        kube = evolve(found.kube, program=_sorted(found.kube.program), raw={})
        return evolve(found, labels={}, annotations={}, kube=kube)
    return None


def _sorted(program: Any) -> Any:  # noqa: ANN401 - Program or ContainerSpec
    others = tuple(map(_sorted, getattr(program, "others", ())))
    own = {"others": others} if others else {}
    return evolve(program, env=tuple(sorted(program.env, key=lambda one: one.name)), **own)


@given(st.lists(st.sampled_from(REWRITTEN_SETS), max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_set_written_another_way_is_the_same(edits: list[tuple[tuple[str | int, ...], Any]]) -> None:
    other, notes = written(SET, *edits), ManifestNotes()
    assert compiled(other) == compiled(SET) is not None
    assert canonical_set(other) == canonical_set(SET)
    check_update(SET, other, notes)
    assert notes.problems == []


def test_a_set_in_the_short_form_written_another_way_may_be_suspended() -> None:
    job = ("spec", "jobs", 0)
    edits: list[tuple[tuple[str | int, ...], Any]] = [
        (("spec", "suspend"), True),
        (("spec", "failurePolicy", "restartStrategy"), "Recreate"),
        ((*job, "resources", "cpu"), "1000m"),
        ((*job, "resources", "memory"), 1 << 30),
        ((*job, "grace"), 5),
        ((*job, "restartPolicy"), "Never"),
        ((*job, "completions"), 2),
        ((*job, "backoffLimit"), 0),
    ]
    notes, other = ManifestNotes(), written(WHOLE[2], *edits)
    check_update(WHOLE[2], other, notes)
    assert notes.problems == []
    check_update(WHOLE[2], written(other, ((*job, "grace"), 6)), notes)
    assert "grace of workers" in str(notes.problems[0])


@given(st.sampled_from(CHANGED_SETS), st.lists(st.sampled_from(REWRITTEN_SETS), max_size=3))
@settings(max_examples=200, deadline=None)
def test_a_set_that_means_something_else_is_not(
    change: tuple[tuple[str | int, ...], Any], edits: list[tuple[tuple[str | int, ...], Any]]
) -> None:
    assert canonical_set(written(SET, *edits, change)) != canonical_set(SET)


@given(manifests(), st.sampled_from(WHOLE[1:]))
@settings(max_examples=400, deadline=None)
def test_sets_that_are_taken_for_the_same_are_compiled_to_the_same(
    document: dict[str, Any], other: dict[str, Any]
) -> None:
    read = compiled(document)
    if isinstance(read, JobSetSpec) and canonical_set(document) == canonical_set(other):
        assert read == compiled(other)


@pytest.mark.parametrize(
    "same",
    [
        lambda env: env,
        lambda env: [{"name": "A", "value": "0"}, *env],  # the last of equal names counts
        lambda env: env[::-1],
    ],
)
def test_the_order_of_variables_counts_only_where_one_refers_to_another(
    same: Callable[[list[dict[str, str]]], list[dict[str, str]]],
) -> None:
    def template(env: list[dict[str, str]]) -> dict[str, Any]:
        return canonical_template({"spec": {"containers": [{"name": "main", "env": env}]}})

    plain = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    referring = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]
    assert template(same(plain)) == template(plain)
    assert (template(same(referring)) == template(referring)) is (same(referring) == referring)
