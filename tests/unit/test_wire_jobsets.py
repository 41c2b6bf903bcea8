"""Records of job sets become wire models with the words the outside relies on."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.render.jobs import pod_facts
from holdfast.domain.events.registry import StoredEvent
from holdfast.domain.events.workloads import JobSetCreated
from holdfast.domain.job import ChildOf, Job, JobState
from holdfast.domain.policy.model import Considered, LimitUse, SetAction
from holdfast.domain.workloads.jobset.model import (
    CoordinatorPod,
    DependencyStatus,
    DependsOn,
    FailurePolicy,
    JobSetSpec,
    ReplicatedJob,
)
from holdfast.domain.workloads.jobset.state import (
    GroupStatus,
    JobSet,
    JobSetState,
    SetCondition,
    SetDecision,
    SetEvent,
    SetLogEntry,
    Terminal,
)
from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobSpec, KubeJobState
from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord
from holdfast.errors import Problem
from holdfast.wire.base import timestamp
from holdfast.wire.jobs import PodsView
from holdfast.wire.render_events import event_view
from holdfast.wire.render_jobs import job_summary
from holdfast.wire.render_jobsets import child_view, log_entry, set_applied, set_summary, set_view

WORKERS = ReplicatedJob(
    name="workers",
    replicas=3,
    job=KubeJobSpec(parallelism=2, completions=5),
    depends_on=(DependsOn("driver", DependencyStatus.READY),),
    max_restarts=4,
)
SPEC = JobSetSpec(
    name="train",
    replicated_jobs=(ReplicatedJob(name="driver"), WORKERS),
    failure=FailurePolicy(max_restarts=6),
    coordinator=CoordinatorPod("driver"),
    priority=2,
    ttl_s=60.0,
    labels={"team": "blue"},
)
DECISION = SetDecision(
    job="train-workers-1",
    attempt=(2, 1),
    action=SetAction.RESTART_JOB,
    granted=True,
    reason="RestartJobFailurePolicyAction",
    message="restarting train-workers-1",
    rule="flaky",
    rule_index=0,
    limits=(LimitUse("maxRestarts", 3, 6),),
    delay_s=1.5,
    considered=(Considered("", "flaky", matched=True, because="the reason is ExitCode3"),),
)


def holds(type_: str) -> SetCondition:
    return SetCondition(type_, status=True, reason=f"Because{type_}", message=f"it is {type_}", since=5.0)


def a_set(*, deleting: bool = False, **state: Any) -> JobSet:  # noqa: ANN401 - any field of a set's state
    return JobSet(id="s1", name="train", created_at=1.0, manifest="{}", deleting=deleting, state=JobSetState(**state))


@pytest.mark.parametrize(
    ("job_set", "spec", "word"),
    [
        (a_set(), SPEC, "Pending"),
        (a_set(started_at=2.0), SPEC, "Running"),
        (a_set(started_at=2.0, conditions=(holds("RestartingJobSet"),)), SPEC, "Restarting"),
        (a_set(conditions=(holds("RestartingJobSet"), holds("Suspended"))), SPEC, "Suspended"),
        (a_set(), JobSetSpec(name="a", suspend=True), "Suspended"),
        (a_set(conditions=(holds("Completed"),), terminal=Terminal.COMPLETED), SPEC, "Completed"),
        (a_set(conditions=(holds("Failed"),), terminal=Terminal.FAILED), SPEC, "Failed"),
        (a_set(conditions=(holds("Failed"),), terminal=Terminal.FAILED, deleting=True), SPEC, "Deleting"),
        (a_set(started_at=2.0, conditions=(holds("StartupPolicyInProgress"),)), SPEC, "Running"),
        (a_set(), JobSetSpec(name="a", managed_by="kueue.x-k8s.io/multikueue"), "Unmanaged"),
        (a_set(), JobSetSpec(name="a", managed_by="jobset.sigs.k8s.io/jobset-controller"), "Pending"),
    ],
)
def test_a_set_has_one_word_for_its_state(job_set: JobSet, spec: JobSetSpec, word: str) -> None:
    assert job_set.phase(spec) == word


def test_a_summary_adds_up_the_jobs_and_says_what_the_state_is_for() -> None:
    groups = (GroupStatus("driver", ready=1, active=1), GroupStatus("workers", ready=1, succeeded=2))
    job_set = a_set(
        restarts=2,
        restarts_counted=1,
        group_restarts_counted={"workers": 1},
        job_restarts_counted={"workers": {0: 1, 2: 2}},
        groups=groups,
        conditions=(holds("RestartingJobSet"),),
    )
    view = set_summary(job_set, SPEC, queue="gpu")
    assert (view.jobs, view.ready, view.active, view.succeeded, view.failed) == (4, 2, 1, 2, 0)
    assert (view.restarts, view.restarts_counted, view.max_restarts) == (2, 5, 6)
    assert (view.state, view.reason, view.message) == (
        "Restarting",
        "BecauseRestartingJobSet",
        "it is RestartingJobSet",
    )
    assert (view.queue, view.priority, view.terminal) == ("gpu", 2, None)
    assert set_summary(job_set, JobSetSpec(name="a"), queue="gpu").max_restarts is None


def test_a_view_shows_each_replicated_job_before_anything_has_run() -> None:
    view = set_view(a_set(), SPEC, queue="default", manifest={"kind": "JobSet"}, children=[])
    assert [(group.name, group.replicas, group.ready) for group in view.groups] == [("driver", 1, 0), ("workers", 3, 0)]
    assert view.groups[1].model_dump(include={"max_restarts", "depends_on", "parallelism", "completions"}) == {
        "max_restarts": 4,
        "depends_on": {"driver": "Ready"},
        "parallelism": 2,
        "completions": 5,
    }
    assert (view.coordinator, view.restart_strategy) == ("train-driver-0-0.train", "Recreate")
    assert (view.startup_order, view.success_operator, view.manifest) == ("AnyOrder", "All", {"kind": "JobSet"})


def test_a_view_says_what_waits_what_is_left_failed_and_when_it_goes() -> None:
    job_set = a_set(
        not_before={"": 3.0, "group/workers": 4.0, "job/train-workers-1": 5.0},
        left_failed={"train-workers-2": (0, 1), "train-workers-0": (0, 0)},
        job_restarts={"workers": {1: 2, 2: 1}},
        ended_at=100.0,
        terminal=Terminal.FAILED,
    )
    view = set_view(job_set, SPEC, queue="default", manifest={}, children=[])
    assert [(one.replicated_job, one.job, one.until) for one in view.backoff] == [
        (None, None, timestamp(3.0)),
        ("workers", None, timestamp(4.0)),
        (None, "train-workers-1", timestamp(5.0)),
    ]
    assert view.left_failed == ["train-workers-0", "train-workers-2"]
    assert view.groups[1].job_restarts == 3
    assert view.expires_at == timestamp(160.0)


def test_a_job_of_a_set_is_shown_with_its_pods_and_its_own_restarts() -> None:
    job = Job("j1", "train-workers-1", "default", 0, 1.0, "{}", state=JobState.RUNNING, attempt=4)
    at = ChildOf("s1", "workers", 1)
    job_set = a_set(restarts=1, group_restarts={"workers": 1}, job_restarts={"workers": {1: 1}})
    condition = JobCondition("FailureTarget", status=True, reason="PodFailurePolicy", message="m", since=9.0)
    state = KubeJobState(
        active=1, ready=1, succeeded=3, failed=2, completed_indexes=frozenset({0, 1, 2}), conditions=(condition,)
    )
    pods = (PodRecord("train-workers-1-3-4", 3, restarts=2), PodRecord("train-workers-1-2-3", 2, restarts=1))
    known = KubeJobRecord(id="j1", parallelism=4, completions=4, state=state, pods=pods)
    view = child_view(job, at, job_set, SPEC, known)
    assert (view.replicated_job, view.index, view.state, view.attempt, view.restarts) == (
        "workers",
        1,
        "Running",
        4,
        2,
    )
    assert (view.pods.completed_indexes, view.pods.parallelism, view.pods.completions) == ("0-2", 4, 4)
    assert (view.pods.active, view.pods.ready, view.pods.failed, view.pods.restarts) == (1, 1, 2, 3)
    assert ("Program restarts", "3") in pod_facts(view.pods)
    assert "Program restarts" not in dict(pod_facts(PodsView(parallelism=1)))
    assert [one.type for one in view.pods.conditions] == ["FailureTarget"]
    before = child_view(job, at, job_set, SPEC, None)
    assert (before.pods.parallelism, before.pods.completions, before.pods.active) == (2, 5, 0)


def test_the_log_tells_decisions_from_events() -> None:
    decided = log_entry(SetLogEntry(set_id="s1", at=7.0, what=DECISION, seq=4))
    assert (decided.seq, decided.type, decided.reason) == (4, "Decision", "RestartJobFailurePolicyAction")
    assert decided.decision is not None
    assert (decided.decision.attempt, decided.decision.action, decided.decision.rule) == (4, "RestartJob", "flaky")
    assert decided.decision.limits[0].model_dump() == {"name": "maxRestarts", "used": 3, "limit": 6}
    assert decided.decision.considered[0].because == "the reason is ExitCode3"
    noted = log_entry(SetLogEntry(set_id="s1", at=8.0, what=SetEvent("Warning", "Why", "what"), seq=5))
    assert (noted.type, noted.reason, noted.message, noted.decision) == ("Warning", "Why", "what", None)


def test_what_was_sent_is_answered_with_its_warnings() -> None:
    view = set_applied(a_set(), SPEC, queue="default", result="created", warnings=[Problem("spec", "is odd", line=3)])
    assert (view.result, view.name, view.warnings[0].line) == ("created", "train", 3)


def test_a_job_says_where_it_stands_in_its_set() -> None:
    job = Job("j1", "n", "default", 0, 1.0, "{}", child=ChildOf("s1", "workers", 0))
    view = job_summary(job)
    assert (view.job_set, view.replicated_job, view.job_index) == ("s1", "workers", 0)
    assert job_summary(Job("j1", "n", "default", 0, 1.0, "{}")).job_set is None


def test_events_of_a_set_are_about_it() -> None:
    stored = StoredEvent(3, None, None, 1.0, JobSetCreated("s1", "train", 4))
    assert (event_view(stored).subject, event_view(stored).type) == ("jobsets/train", "dev.holdfast.jobset.created.v1")
