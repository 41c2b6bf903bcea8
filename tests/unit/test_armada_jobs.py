"""Armada's items are checked by its rules, in its order, and compiled into jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.armada.jobs import read_items, request_problems
from holdfast.dialects.armada.messages import read_policy_message, sentence, write_policy_message

if TYPE_CHECKING:
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.errors import Problem

AMOUNTS = {"cpu": "1", "memory": "1Gi"}
TWICE = 'specified in containers "main" and "main". Should only be exposed once'
BOTH = {"requests": AMOUNTS, "limits": AMOUNTS}


def container(**more: object) -> dict[str, Any]:
    return {"name": "main", "args": ["true"], "resources": BOTH, **more}


def item(**more: object) -> dict[str, Any]:
    return {"namespace": "default", "podSpec": {"containers": [container()]}, **more}


def pod(**more: object) -> dict[str, Any]:
    return item(podSpec={"containers": [container()], **more})


def only(**more: object) -> dict[str, Any]:
    return item(podSpec={"containers": [container(**more)]})


def messages(given: dict[str, Any]) -> list[str]:
    return [problem.message for problem in read_items("q", "s", [given])[0].problems]


def differing(**limits: str) -> dict[str, Any]:
    return only(resources={"requests": AMOUNTS, "limits": {**AMOUNTS, **limits}})


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (item(namespace=""), "namespace is a required field"),
        ({"namespace": "n"}, "Job must contain at least one PodSpec"),
        (item(podSpecs=[{}]), "PodSpec must be nil if PodSpecs is provided (i.e., these are exclusive)"),
        (
            {"namespace": "n", "podSpecs": [{"containers": [container()]}] * 2},
            "Jobs with multiple pods are not supported",
        ),
        (only(resources={}), "container main has no resources specified"),
        (
            only(resources={"requests": AMOUNTS, "limits": {"cpu": "1"}}),
            "container main defines different resources for requests and limits",
        ),
        (differing(memory="2Gi"), "container main defines memory with limits great than 1.00*requests"),
        (differing(memory="1Mi"), "container main defines memory with limits smaller than requests"),
        (
            only(resources={"requests": {"memory": "1Ki"}, "limits": {"memory": "1Ki"}}),
            'container "main" memory requests (1Ki) below server minimum (1Mi)',
        ),
        (
            only(resources={"requests": {"cpu": "-1"}, "limits": {"cpu": "1"}}),
            "container main defines negative resource request (-1) for resource cpu",
        ),
        (pod(priorityClassName="gold"), "priority class gold is not supported"),
        (
            pod(terminationGracePeriodSeconds=301),
            "terminationGracePeriodSeconds of 301 must be [1000000000, 300000000000], or omitted",
        ),
        (
            item(ingress=[{"ports": []}]),
            "ingress contains zero ports. Each ingress should have at least one port",
        ),
        (
            only(ports=[{"containerPort": 80}, {"containerPort": 80}]),
            f"container port 80 is exposed multiple times, {TWICE}",
        ),
        (item(clientId="x" * 101), "client id of length 101 is greater than max allowed length of  100"),
        (only(args=[], command=[]), "is required: images are not run here"),
        (pod(initContainers=[container(resources=differing()["podSpec"]["containers"][0]["resources"])]), None),
    ],
)
def test_what_is_wrong_with_an_item_is_said_as_upstream_says_it(given: dict[str, Any], first: str | None) -> None:
    found = messages(given)
    assert found
    assert first in {None, found[0]}


def test_all_that_is_wrong_is_found_and_a_good_item_has_nothing_wrong() -> None:
    assert len(messages({"podSpec": {"containers": [container(resources={})], "priorityClassName": "x"}})) == 3
    assert messages(item()) == []
    assert [one.path for one in request_problems("", "")] == ["queue", "jobSetId"]
    assert request_problems("q", "é" * 511) == []
    assert [one.path for one in request_problems("q", "é" * 512)] == ["jobSetId"], "upstream counts bytes"
    assert [one.path for one in request_problems("q", "a\0b")] == ["jobSetId"], "a watch could not ask for it"


def test_an_item_is_a_job_that_runs_its_first_container() -> None:
    written = item(
        priority=2.5,
        clientId="c",
        labels={"team": "a"},
        annotations={"armadaproject.io/retry-policy": "extra, more", "armadaproject.io/failFast": "true"},
        requiredNodeLabels={"zone": "a"},
        externalJobUri="airflow://x",
        podSpec={
            "containers": [
                container(
                    name="Train_1",
                    command=["sh", "-c"],
                    args=["echo $(ARMADA_JOB_ID) $(X)"],
                    env=[{"name": "X", "value": "$(ARMADA_QUEUE)!"}],
                )
            ],
            "activeDeadlineSeconds": 60,
        },
    )
    found = read_items("ml", "set/1", [written])[0]
    assert (found.problems, found.client_id) == ((), "c")
    spec = found.spec
    assert (spec.name, spec.queue, spec.group, spec.priority) == ("train-1", "ml", "set/1", -2)
    assert (spec.retry_policies, spec.no_retry) == (("extra", "more"), True)
    assert spec.labels == {"team": "a", "armadaproject.io/externalJobUri": "airflow://x"}
    assert (spec.node_selector, spec.deadline_s, spec.grace_s) == ({"zone": "a"}, 60.0, 1.0)
    assert (spec.resources.cpu_m, spec.resources.memory) == (1000, 1 << 30)
    assert spec.pod is not None
    assert [spec.pod.pod_name("id", attempt) for attempt in (1, 2, 11)] == [
        "armada-id-0",
        "armada-id-0-1",
        "armada-id-0-10",
    ]
    told = {"JOB_UID": "id", "POD_NAME": "armada-id-0"}
    command, env = spec.pod.program.for_pod(told)
    assert command == ("sh", "-c", "echo id ml!")
    assert (env["ARMADA_JOB_ID"], env["ARMADA_QUEUE"], env["ARMADA_JOB_SET_ID"]) == ("id", "ml", "set/1")


@pytest.mark.parametrize(("written", "ours"), [(0, 0), (0.5, 0), (1.5, -2), (-3, 0), (5e9, -2147483647), (None, 0)])
def test_a_priority_is_rounded_as_upstream_does_and_lower_ones_go_first(written: float | None, ours: int) -> None:
    assert read_items("q", "s", [item(priority=written)])[0].spec.priority == ours


def test_what_is_left_out_of_resources_is_filled_in() -> None:
    some = {"memory": "64Mi"}
    spec = read_items("q", "s", [only(resources={"requests": some, "limits": some})])[0].spec
    assert (spec.resources.cpu_m, spec.resources.memory) == (1000, 64 << 20)


RULES = [
    {"name": "a", "action": 2, "conditions": ["Preempted", "Evicted"], "antiAffinity": {"mode": "node"}},
    {"name": "b", "action": 2, "conditions": ["OOMKilled"], "retryLimit": 0},
    {"name": "c", "action": 1, "exitCodes": {"operator": "In", "values": [2]}, "containerName": "main"},
    {"name": "d", "action": 2, "terminationMessage": {"pattern": "X"}, "includeInitContainers": True},
    {"name": "e", "action": 2, "onFailureCategory": ["x", "y"], "backoff": {"initialDelay": "30s", "maxDelay": "5m"}},
    {"name": "f", "action": 2, "onCategory": "gpu", "onSubcategory": "ecc",
     "mutate": {"affinity": {"avoidSameNode": True}, "resources": {"memory": {"factor": 1.5}}}},
]  # fmt: skip


def read(**more: object) -> tuple[RetryPolicy | None, list[Problem]]:
    problems: list[Problem] = []
    return read_policy_message({"name": "p", "defaultAction": 1, **more}, problems), problems


@pytest.mark.parametrize(
    "more", [{}, {"retryLimit": 3}, {"inheritRetryLimit": True}, {"rules": RULES, "retryLimit": 1}]
)
def test_a_policy_that_was_written_reads_back_the_same(more: dict[str, Any]) -> None:
    policy, problems = read(**more)
    assert problems == []
    assert policy is not None
    assert policy.retry_limit == (None if more.get("inheritRetryLimit") else more.get("retryLimit", 0))
    again: list[Problem] = []
    assert read_policy_message(write_policy_message(policy), again) == policy
    assert again == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"name": ""}, "retry policy name must not be empty"),
        ({"name": "x" * 64}, f'retry policy name "{"x" * 64}" must be at most 63 characters'),
        ({"defaultAction": 0}, 'retry policy "p" must set a default action (Fail or Retry)'),
        ({"rules": [{"onCategory": "x"}]}, 'retry policy "p" rule 0: action must be Fail or Retry'),
        ({"rules": [RULES[0], {"action": 1}]}, 'retry policy "p" rule 1: on_category must be set'),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_as_upstream_says_it(more: dict[str, Any], told: str) -> None:
    policy, problems = read(**more)
    assert policy is None
    assert sentence(more.get("name", "p"), problems[0]) == told
