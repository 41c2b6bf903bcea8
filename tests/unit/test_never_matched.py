"""What a manifest names and nothing ever has is accepted, and warned of by everything that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.manifests import read_one
from holdfast.domain.policy.model import Action, ExitCodes, RetryPolicy, Rule
from holdfast.domain.policy.model import ExitCodeOperator as Is
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

ARMADA = "armadaproject.io/retry-policy"
NATIVE = {"apiVersion": "holdfast.dev/v1", "metadata": {"name": "a"}}
COMMAND = {"command": ["true"]}


def warned(document: Mapping[str, Any], *, lenient: bool = False) -> list[tuple[str, str]]:
    found = read_one(document, lenient=lenient)
    assert (found.manifest is not None, found.problems) == (True, ())
    return [(warning.path, warning.message) for warning in found.warnings]


def codes(operator: str, *values: int) -> dict[str, Any]:
    return {"onExitCodes": {"operator": operator, "values": list(values)}}


def with_rule(form: str, rule: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a manifest with a rule, and the path to that rule."""
    rule = {"action": "Retry", **rule}
    match form:
        case "policy":
            return {**NATIVE, "kind": "RetryPolicy", "spec": {"rules": [rule]}}, "spec.rules[0]"
        case "armada":
            flat = {"apiVersion": "armadaproject.io/v1beta1", "kind": "RetryPolicy", "name": "a"}
            return {**flat, "defaultAction": "Fail", "rules": [rule]}, "spec.rules[0]"
        case "category":
            rule = {key: value for key, value in rule.items() if key != "action"}
            return {**NATIVE, "kind": "FailureCategory", "spec": {"rules": [rule]}}, "spec.rules[0]"
    spec = {**COMMAND, "retry": {"rules": [rule]}, **({"array": {"matrix": {"n": [1, 2]}}} if form == "array" else {})}
    return {**NATIVE, "kind": "Job", "spec": spec}, "spec.retry.rules[0]"


FORMS = ["policy", "armada", "category", "job", "array"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("rule", "at", "says"),
    [
        (codes("In", 0), "onExitCodes.values", "0 never matches: a program that exits with 0 has not failed"),
        (codes("In", 3, 0), "onExitCodes.values", "0 never matches"),
        (codes("In", 3, 256), "onExitCodes.values", "256 never matches: programs exit with 0 to 255"),
        (codes("In", -1, 255, 300), "onExitCodes.values", "-1, 300 never match: programs exit with 0 to 255"),
        (
            {**codes("In", 3), "containerName": "side"},
            "containerName",
            "only pods have a container 'side': the program of any other job is 'main'",
        ),
    ],
)
def test_what_no_failure_has_is_warned_of_wherever_rules_are(
    form: str, rule: dict[str, Any], at: str, says: str
) -> None:
    document, where = with_rule(form, rule)
    ((path, message),) = warned(document)
    assert (path, says in message) == (f"{where}.{at}", True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "rule",
    [codes("NotIn", 0), codes("NotIn", -1, 256), codes("In", 1, 255), {**codes("In", 3), "containerName": "main"}],
)
def test_what_a_failure_can_have_is_not_warned_of(form: str, rule: dict[str, Any]) -> None:
    assert warned(with_rule(form, rule)[0]) == []


@pytest.mark.parametrize("form", ["policy", "armada", "job"])
def test_a_condition_of_a_whole_run_that_is_looked_for_in_a_container_is_warned_of(form: str) -> None:
    rule = {"onConditions": ["Preempted", "Evicted"], "containerName": "main"}
    document, where = with_rule(form, rule)
    told = "Evicted, Preempted never holds for a container: it is true of a whole run"
    assert warned(document) == [(f"{where}.containerName", told)]
    assert warned(with_rule(form, {**rule, "onConditions": ["OOMKilled", "Evicted"]})[0]) == []


def kube(form: str, level: str) -> tuple[dict[str, Any], str]:
    """Return a manifest with Armada's annotation at some level, and the path to that."""
    annotated = {"annotations": {ARMADA: "flaky"}}
    a_group = group("w")
    template, pod = a_group["template"], a_group["template"]["spec"]["template"]
    owner = {"set": manifest(replicatedJobs=[a_group]), "job": {"apiVersion": "batch/v1", "kind": "Job", **template}}
    document = {**owner[form], "metadata": {"name": "a"}}
    jobs = "spec.replicatedJobs[0].template." if form == "set" else ""
    match level:
        case "own":
            document["metadata"] = {"name": "a", **annotated}
            return document, "metadata"
        case "template":
            template["metadata"] = annotated
            return document, f"{jobs}metadata"
    pod["metadata"] = annotated
    return document, f"{jobs}spec.template.metadata"


@pytest.mark.parametrize(
    ("document", "where"),
    [
        kube("set", "own"),
        kube("set", "template"),
        kube("set", "pod"),
        kube("job", "own"),
        kube("job", "pod"),
        ({**NATIVE, "kind": "Job", "spec": COMMAND}, "metadata"),
        ({**NATIVE, "kind": "Job", "spec": {**COMMAND, "array": {"matrix": {"n": [1, 2]}}}}, "metadata"),
        ({**NATIVE, "kind": "JobSet", "spec": {"jobs": [{"name": "w", **COMMAND}]}}, "metadata"),
    ],
)
def test_the_annotation_that_names_a_policy_in_armada_is_warned_of(document: dict[str, Any], where: str) -> None:
    if document.get("apiVersion") == "holdfast.dev/v1":
        document = {**document, "metadata": {"name": "a", "annotations": {ARMADA: "flaky"}}}
    told = [path for path, message in warned(document) if "has no effect here" in message]
    assert told == [f"{where}.annotations.{ARMADA}"]


def test_a_pod_rule_about_a_container_that_a_lenient_reading_leaves_out_is_warned_of() -> None:
    a_group = group("w", podFailurePolicy={"rules": [{"action": "FailJob", **codes("In", 3)}]})
    job = a_group["template"]["spec"]
    job["template"]["spec"]["containers"].append({"name": "side", "command": ["true"]})
    where = "spec.replicatedJobs[0].template.spec.podFailurePolicy.rules[0].onExitCodes.containerName"
    for name in ("main", "side"):
        job["podFailurePolicy"]["rules"][0]["onExitCodes"]["containerName"] = name
        told = [message for path, message in warned(manifest(replicatedJobs=[a_group]), lenient=True) if path == where]
        assert told == (["never matches: container 'side' is not run here"] if name == "side" else [])


@pytest.mark.parametrize(("name", "state"), [("trainer", Terminal.COMPLETED), ("main", Terminal.FAILED)])
def test_a_policys_container_is_the_one_that_the_pods_template_names(name: str, state: Terminal) -> None:
    lab = SetLab()
    rule = Rule(Action.RETRY, "again", exit_codes=ExitCodes(Is.IN, frozenset({3})), container_name=name)
    lab.store.put_entry(RetryPolicy("flaky", (rule,), retry_limit=1))
    a_group = group("w")
    a_group["template"]["metadata"] = {"annotations": {"holdfast.dev/retry-policies": "flaky"}}
    a_group["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "trainer"
    set_id = lab.submit_set(manifest(replicatedJobs=[a_group]), fails_first("train-w-0"))
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal is state
