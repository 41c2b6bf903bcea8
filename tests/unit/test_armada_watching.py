"""What follows Armada's job sets remembers little of each job, most of it together with all others that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.armada.translation import JobRecord, Translator
from holdfast.domain.events.jobs import (
    AttemptEnded,
    FailureDecided,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
)
from holdfast.domain.events.registry import StoredEvent
from holdfast.domain.failure import FailureCondition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.api.armada._generated import event
    from holdfast.domain.events.registry import Event

SUBMITTED = JobSubmitted("a", "ml", 1)
STARTED = JobStarted(1, 1, (("here", "node-1", 0),))


def follow(events: Sequence[Event], *ids: str) -> tuple[Translator, list[event.EventMessage]]:
    """Tell of the same events of each job."""
    followed = Translator("ml", "s", recall=lambda _: JobRecord(), describe=lambda _, __: None)
    told = [
        message
        for number, (job_id, happened) in enumerate((job_id, one) for job_id in ids for one in events)
        # as it is read from a database, nothing of which is shared
        for message in followed.messages(StoredEvent(number, "".join([*job_id]), 1, 1.0, happened))
    ]
    return followed, told


def test_jobs_at_a_place_are_remembered_as_one_by_all_that_follow_them() -> None:
    (one, _), (other, _) = follow([SUBMITTED, STARTED], "job-1", "job-2"), follow([SUBMITTED, STARTED], "job-1")
    assert len({id(remembered) for followed in (one, other) for remembered in followed.by_job.values()}) == 1
    assert next(iter(one.by_job)) is next(iter(other.by_job)), "its id, too"


def test_jobs_that_failed_alike_are_remembered_as_one_whenever_they_are_tried_again() -> None:
    ended = AttemptEnded(1, "Failed", "Error", message="broken", exit_code=3)
    later = [
        FailureDecided(1, "Retry", "RULE", "a rule", delay_s=delay_s, retry_at=9.0 + delay_s) for delay_s in (1, 2)
    ]
    (one, _), (other, _) = (follow([SUBMITTED, STARTED, ended, decided], "job-1") for decided in later)
    assert one.by_job["job-1"] is other.by_job["job-1"]


def test_the_run_of_a_job_is_told_by_its_own_name() -> None:
    _, told = follow([SUBMITTED, STARTED], "job-1", "job-2")
    runs = [one.pending.kubernetes_id for one in told if one.WhichOneof("events") == "pending"]
    assert runs == ["job-1-1-0-1", "job-2-1-0-1"]


def test_a_job_that_has_ended_is_forgotten_also_one_that_never_had_a_pod() -> None:
    ended = AttemptEnded(1, "Failed", "Error", conditions=(FailureCondition.UNSCHEDULABLE,))
    decided = FailureDecided(1, "Fail", "NO_MATCH", "no rule")
    followed, told = follow([SUBMITTED, STARTED, ended, decided, JobFailed(1, "it never fits")], "job-1")
    assert followed.by_job == {}
    assert (told[-1].failed.reason, told[-1].failed.node_name) == ("it never fits", "")


def test_what_failed_before_is_forgotten_when_the_job_starts_again() -> None:
    ended = AttemptEnded(1, "Failed", "Error", message="broken", exit_code=3)
    retried = JobRetryScheduled(1, "again")
    followed, told = follow([SUBMITTED, STARTED, ended, retried, JobStarted(2, 1, STARTED.places)], "job-1")
    [failed] = [one.failed for one in told if one.WhichOneof("events") == "failed"]
    assert (failed.retryable, failed.reason) == (True, "main exited with code 3\nbroken")
    assert followed.by_job["job-1"].ended is None
