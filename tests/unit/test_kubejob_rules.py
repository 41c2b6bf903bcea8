"""Rules of Kubernetes Jobs that no single example shows: which pods go first, and how what is counted adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes
from holdfast.domain.workloads.kubejob.model import (
    CompletionMode,
    KubeJobSpec,
    KubeJobState,
    Pod,
    PodAction,
    PodPhase,
    PodRule,
)
from holdfast.domain.workloads.kubejob.pods import failed_by_itself
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.rulesets import FAILURE_POLICY
from tools.cases.podjob import stopped_by

NOW = 100_000.0


@given(st.lists(st.booleans(), min_size=2, max_size=12), st.data())
def test_of_too_many_pods_those_go_first_that_are_not_ready_and_of_these_the_last(
    ready: list[bool], data: st.DataObject
) -> None:
    left = data.draw(st.integers(1, len(ready) - 1))
    spec = KubeJobSpec(parallelism=left, completions=len(ready), mode=CompletionMode.INDEXED)
    pods = [Pod(name=f"p{index}", index=index, ready=is_ready) for index, is_ready in enumerate(ready)]
    shuffled = data.draw(st.permutations(pods))
    stopped = {*stopped_by(reconcile(spec, KubeJobState(started_at=NOW), shuffled, NOW))}
    going = [(pod.ready, -pods.index(pod)) for pod in pods if pod.name in stopped]
    staying = [(pod.ready, -pods.index(pod)) for pod in pods if pod.name not in stopped]
    assert len(staying) == left
    assert max(going) < min(staying)


@given(st.lists(st.sampled_from(["going", "good", "bad"]), min_size=1, max_size=6))
def test_a_job_with_failed_indexes_ends_once_every_index_has_an_end(fates: list[str]) -> None:
    spec = KubeJobSpec(
        parallelism=6, completions=len(fates), mode=CompletionMode.INDEXED, backoff_limit_per_index=0, backoff_limit=99
    )
    phases = {"going": PodPhase.RUNNING, "good": PodPhase.SUCCEEDED, "bad": PodPhase.FAILED}
    pods = [Pod(name=f"p{index}", index=index, phase=phases[fate]) for index, fate in enumerate(fates)]
    state = reconcile(spec, KubeJobState(started_at=NOW), pods, NOW).state
    reasons = {each.reason for each in state.conditions if each.status}
    expected = set() if "going" in fates else {"FailedIndexes"} if "bad" in fates else {"CompletionsReached"}
    assert reasons == expected
    assert state.failed_indexes == {index for index, fate in enumerate(fates) if fate == "bad"}


@pytest.mark.parametrize(
    ("action", "rule", "policy"),
    [
        (PodAction.FAIL_JOB, "named", FAILURE_POLICY),
        (PodAction.IGNORE, "named", FAILURE_POLICY),
        (PodAction.COUNT, "named", FAILURE_POLICY),
        (None, None, None),
    ],
)
def test_a_decision_about_a_pod_names_the_policy_of_its_rule(
    action: PodAction | None, rule: str | None, policy: str | None
) -> None:
    codes = ExitCodes(ExitCodeOperator.IN, frozenset({3}), ContainerScope.ANY_FAILED)
    rules = None if action is None else (PodRule(action, codes, name="named"),)
    failed = Pod(name="p", phase=PodPhase.FAILED, containers=(ContainerResult(3),))
    (found,) = reconcile(KubeJobSpec(failure_rules=rules), KubeJobState(started_at=NOW), [failed], NOW).decisions
    assert (found.decision.rule, found.decision.policy) == (rule, policy)


@pytest.mark.parametrize("ended_by", EndedBy)
def test_a_pod_that_was_stopped_with_its_job_has_not_failed_by_itself(ended_by: EndedBy) -> None:
    stopped = RunOutcome((ContainerResult(143),), ended_by=ended_by)
    assert failed_by_itself(stopped) is (ended_by not in {EndedBy.CASCADE, EndedBy.SUSPENSION})
