"""Rules of Kubernetes Jobs that no single example shows: which pods go first, and how what is counted adds up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.workloads.kubejob.model import CompletionMode, KubeJobSpec, KubeJobState, Pod
from holdfast.domain.workloads.kubejob.reconcile import reconcile
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
