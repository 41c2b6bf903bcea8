"""The controller cancels what has not started by what it alone knows, whenever it was asked."""

from __future__ import annotations

import pytest

from holdfast.domain.job import JobState
from holdfast.ports.requests import RequestKind
from holdfast.service.admission.dependencies import about_to_be_retried
from tests.unit.conftest import Lab, exits, job_named, retrying
from tests.unit.jobset_lab import SetLab
from tests.unit.test_controller_pods import Batch


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_job_is_cancelled_unless_the_controller_has_begun_an_attempt(
    lab: Lab, *, begun: bool, restarted: bool
) -> None:
    job = lab.submit(job_named("job"), exits(0, after_s=5.0))
    if begun:
        lab.step(3)
    for _ in range(2):
        lab.ask(RequestKind.CANCEL_UNLESS_STARTED, job)
    if restarted:
        lab.restart_controller()
    lab.pass_s(10)
    assert lab.job(job).state is (JobState.SUCCEEDED if begun else JobState.CANCELLED)
    assert len(lab.runs(job)) == begun
    assert lab.store.requests(limit=1) == []


def test_a_job_that_waits_for_its_next_attempt_has_started(lab: Lab) -> None:
    job = lab.submit(job_named("job", retrying(1, delay_s=30.0)), exits(1))
    lab.pass_s(5)
    assert lab.job(job).state is JobState.BACKOFF
    lab.ask(RequestKind.CANCEL_UNLESS_STARTED, job)
    lab.pass_s(60)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.FAILED, 2)


def test_what_leaves_a_job_alone_leaves_its_retry_by_hand_alone(lab: Lab) -> None:
    job = lab.submit(job_named("job"), exits(1))
    lab.pass_s(5)
    lab.ask(RequestKind.RETRY, job)
    lab.ask(RequestKind.CANCEL_UNLESS_STARTED, job)
    assert about_to_be_retried(lab.store) == {job}


@pytest.mark.parametrize("suspended", [False, True])
def test_a_kubernetes_job_is_cancelled_unless_a_pod_has_its_place(*, suspended: bool) -> None:
    lab = SetLab()
    batch = Batch(lab, lambda _: exits(0, after_s=9.0), suspend=suspended)
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL_UNLESS_STARTED, batch.id)
    lab.pass_s(20)
    assert batch.state() is (JobState.CANCELLED if suspended else JobState.SUCCEEDED)
    assert len(lab.orders) == (not suspended)
