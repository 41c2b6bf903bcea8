"""After a restore nothing is started before somebody says so, and what ran elsewhere is told as that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.events.operators import NodeLost
from holdfast.domain.job import JobState
from holdfast.domain.placement.cordon import Pause
from holdfast.domain.policy.model import Action, Rule
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.service.explain import Explainer
from tests.unit.conftest import job_named, retrying
from tests.unit.jobset_lab import SetLab, group, manifest
from tests.unit.jobset_service import why

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.conftest import Lab

ENDLESS = SimulatedRun(0.0, None)
PAUSE = Pause(0.0, "the database was restored from friday.db")
WORDS = "nothing is started until `holdfast db resume`: the database was restored from friday.db"


def restore_elsewhere(lab: Lab) -> None:
    """Go on as a copy of the database does whose executor has none of its programs."""
    lab.store.put_pause(PAUSE)
    lab.use(*lab.engine.nodes())
    lab.restart_controller()
    lab.orders.clear()


def runs_for(lab: Lab) -> None:
    lab.pass_s(3)


def has_placed(lab: Lab) -> None:
    """Leave a run handed out that its executor has not been heard of having."""
    lab.executor.step()
    lab.transport.broken = True
    lab.executor.step()
    lab.tick()
    lab.transport.broken = False


def waits(lab: Lab) -> None:
    """Leave a job queued."""


@pytest.mark.parametrize("before", [runs_for, has_placed, waits])
def test_what_a_restored_database_has_is_started_when_it_is_resumed_and_no_sooner(
    lab: Lab, before: Callable[[Lab], None]
) -> None:
    job = lab.submit(job_named("job", on_unknown_end=None), ENDLESS)
    before(lab)
    restore_elsewhere(lab)
    lab.pass_s(120)
    assert lab.orders == []
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.QUEUED, WORDS)
    lab.store.delete_pause()
    lab.pass_s(5)
    assert [order.job_id for order in lab.orders] == [job]
    assert lab.job(job).state is JobState.RUNNING


def test_a_run_that_may_go_on_elsewhere_is_told_as_that_and_speaks_against_nobody(lab: Lab) -> None:
    rule = Rule(Action.HOLD, "unknown", conditions=frozenset({"EndUnknown"}))
    job = lab.submit(job_named("job", retrying(rules=(rule,))), ENDLESS)
    lab.pass_s(3)
    restore_elsewhere(lab)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.HELD
    failure = lab.attempts(job)[0].failure
    assert failure is not None
    assert "the database was restored" in failure.message
    assert "it may run elsewhere" in failure.message
    assert {"ExecutorLost", "EndUnknown"} <= failure.conditions
    assert [stored for stored in lab.store.events(limit=1000) if isinstance(stored.event, NodeLost)] == []
    assert WORDS in " ".join(Explainer(lab.store).why(job).summary)


def test_what_runs_here_goes_on_while_all_else_is_paused(lab: Lab) -> None:
    first = lab.submit(job_named("first"), ENDLESS)
    lab.pass_s(3)
    lab.store.put_pause(PAUSE)
    lab.restart_controller()
    second = lab.submit(job_named("second"), ENDLESS)
    lab.pass_s(5)
    assert [lab.job(job).state for job in (first, second)] == [JobState.RUNNING, JobState.QUEUED]


def test_no_time_to_find_a_place_passes_while_nothing_is_started(lab: Lab) -> None:
    lab.store.put_pause(PAUSE)
    job = lab.submit(job_named("job", scheduling_timeout_s=10.0), ENDLESS)
    lab.pass_s(100)
    assert lab.job(job).state is JobState.QUEUED
    lab.store.delete_pause()
    lab.pass_s(2)
    assert lab.job(job).state is JobState.RUNNING


@pytest.mark.parametrize("strategy", ["Recreate", "InPlaceRestart"])
def test_a_set_of_a_restored_database_waits_too(strategy: str) -> None:
    lab = SetLab()
    policy = {"maxRestarts": 5, "restartStrategy": strategy}
    forever = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "parallelism": 1, "completions": 1}
    document = manifest(failurePolicy=policy, replicatedJobs=[group("w", 2, **forever)])
    set_id = lab.submit_set(document, lambda _: ENDLESS)
    lab.pass_s(3)
    assert len(lab.orders) == 2
    restore_elsewhere(lab)
    lab.pass_s(60)
    assert lab.orders == []
    assert not lab.store.workload(JobSet, set_id).ended
    lab.store.delete_pause()
    lab.pass_s(30)
    assert len(lab.orders) == 2


def test_a_job_and_a_set_say_once_that_nothing_is_started_while_they_wait_for_that() -> None:
    lab = SetLab()
    lab.store.put_pause(PAUSE)
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w")]), lambda _: ENDLESS)
    job = lab.submit(job_named("job"), ENDLESS)
    lab.pass_s(3)
    of_job = Explainer(lab.store).why(job)
    of_set = why(lab, set_id)
    for headline, summary in ((of_job.headline, of_job.summary), (of_set.headline, of_set.summary)):
        assert " ".join((headline, *summary)).count(WORDS) == 1
