"""Who is told of what, once for each outcome, and when a delivery is tried again."""

from __future__ import annotations

import itertools

import pytest

from holdfast.domain.failure import Cause, ContainerResult, Failure
from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.notifications.notification import (
    GIVE_UP_AFTER_S,
    DeliveryState,
    Notification,
    OutcomeReport,
    delay_s,
    describe_failure,
    of_job,
    of_owner,
)
from holdfast.domain.notifications.words import facts, payload, subject, text
from holdfast.domain.notifier import Notify, Occasion
from holdfast.domain.record import evolve
from holdfast.domain.terms.kinds import KINDS
from holdfast.domain.workloads.array.model import Array, ArrayState
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, Terminal
from tests.kinds.rollout.model import Rollout
from tests.kinds.rollout.words import ROLLOUT

END, FAILURE, HOLD, STALL, RECOVERY, *_ = Occasion
RUNNING = Job(
    "j1", "train", "ml", 0, 100.0, "{}", state=JobState.RUNNING, attempt=1, started_at=101.0, updated_at=102.0
)
BROKEN = Failure(
    conditions=frozenset(),
    cause=Cause.KERNEL_NONZERO_EXIT,
    containers=(ContainerResult(exit_code=3),),
    error_line="ValueError: no such key",
    category="program",
    node="n1",
    failed_at=109.0,
)
FAILED = Attempt("j1", 1, failure=BROKEN)


def over(state: JobState, **given: object) -> Job:
    return evolve(RUNNING, state=state, updated_at=110.0, **given)  # type: ignore[arg-type] # fields by name


@pytest.mark.parametrize(
    ("state", "attempt", "on", "event"),
    [
        (JobState.SUCCEEDED, 1, END, "job.succeeded"),
        (JobState.SUCCEEDED, 1, FAILURE, None),
        (JobState.SUCCEEDED, 1, RECOVERY, None),
        (JobState.SUCCEEDED, 2, RECOVERY, "job.recovered"),
        (JobState.SUCCEEDED, 2, END, "job.recovered"),
        (JobState.FAILED, 2, FAILURE, "job.failed"),
        (JobState.FAILED, 1, END, "job.failed"),
        (JobState.FAILED, 1, HOLD, None),
        (JobState.CANCELLED, 1, END, "job.cancelled"),
        (JobState.CANCELLED, 1, FAILURE, None),
        (JobState.HELD, 1, HOLD, "job.held"),
        (JobState.HELD, 1, END, None),
        (JobState.BACKOFF, 1, FAILURE, None),
        (JobState.QUEUED, 1, END, None),
    ],
)
def test_a_change_of_a_job_is_told_to_those_who_asked_for_it(
    state: JobState, attempt: int, on: Occasion, event: str | None
) -> None:
    told = of_job(RUNNING, over(state, attempt=attempt), None, [Notify("ops", (on,))])
    assert [one.report.event for one in told] == ([] if event is None else [event])


def test_whoever_asks_for_several_events_or_twice_is_told_once() -> None:
    wanted = [Notify("ops", (END, FAILURE)), Notify("me", (FAILURE,)), Notify("ops", (FAILURE, HOLD))]
    told = of_job(RUNNING, over(JobState.FAILED), FAILED, wanted)
    assert [one.to for one in told] == ["ops", "me"]
    assert len({one.id for one in told}) == 2


def test_the_same_outcome_always_has_the_same_id_and_another_hold_another() -> None:
    wanted = [Notify("ops", (END, HOLD))]
    [failed], [again] = (of_job(RUNNING, over(JobState.FAILED, reason=why), FAILED, wanted) for why in ("a", "b"))
    assert failed.id == again.id
    held = over(JobState.HELD)
    [first], [second] = (
        of_job(RUNNING, held, None, wanted),
        of_job(RUNNING, evolve(held, updated_at=111.0), None, wanted),
    )
    assert len({failed.id, first.id, second.id}) == 3
    assert all("." not in each.id for each in (failed, first))  # signatures of webhooks separate by it


def test_what_a_held_job_says_while_it_is_held_is_not_told_again() -> None:
    held = over(JobState.HELD)
    assert of_job(held, evolve(held, reason="more"), None, [Notify("ops")]) == []


def test_a_stalled_attempt_is_told_once_for_a_job_whatever_follows() -> None:
    silent = evolve(FAILED, failure=evolve(BROKEN, cause=Cause.STALLED))
    wanted = [Notify("ops", (STALL, FAILURE))]
    [first] = of_job(RUNNING, over(JobState.BACKOFF), silent, wanted)
    [second] = of_job(RUNNING, over(JobState.BACKOFF, attempt=2), evolve(silent, number=2), wanted)
    assert (first.report.event, first.id) == ("job.stalled", second.id)  # the store keeps the first
    both = of_job(RUNNING, over(JobState.FAILED), silent, wanted)
    assert [one.report.event for one in both] == ["job.stalled", "job.failed"]


def test_what_is_told_is_exactly_what_happened() -> None:
    [told] = of_job(RUNNING, over(JobState.FAILED, reason="no retries left", attempt=2), FAILED, [Notify("ops")])
    line = "exit code 3: ValueError: no such key"
    assert subject(told.report) == f"job train failed: {line}"
    assert dict(facts(told.report)) == {
        "job": "train (j1)",
        "queue": "ml",
        "state": "Failed",
        "reason": "no retries left",
        "failure": line,
        "cause": "program",
        "attempts": "2",
        "node": "n1",
        "took": "9s",
        "at": "1970-01-01T00:01:50.000Z",
        "more": "holdfast why j1",
    }
    assert text(told.report).splitlines()[0] == subject(told.report)


def test_whose_it_is_is_told_of_jobs_arrays_and_job_sets() -> None:
    job = evolve(over(JobState.FAILED), submitted_by="ann")
    array = Array(id="a1", name="sweep", submitted_by="ann", state=ArrayState(status="Failed"))
    job_set = JobSet(id="s1", name="set", submitted_by="ann", state=JobSetState(terminal=Terminal.FAILED))
    wanted = [Notify("ops", (END,))]
    for told in (
        of_job(RUNNING, job, FAILED, wanted),
        of_owner(array, wanted, 5.0),
        of_owner(job_set, wanted, 5.0),
    ):
        assert [dict(facts(one.report))["user"] for one in told] == ["ann"]
        assert [payload(one.report)["data"]["submitted_by"] for one in told] == ["ann"]


def test_an_array_is_told_once_with_what_its_tasks_failed_of() -> None:
    state = ArrayState(succeeded=1, failed=2, status="Failed", reason="2 of 3 tasks did not succeed")
    [told] = of_owner(Array(id="a1", name="sweep", state=state), [Notify("ops", (FAILURE, END))], 5.0)
    report = evolve(told.report, causes={"OOMKilled": 2})
    assert subject(report) == "array sweep failed: 2 of 3 tasks did not succeed (2 x OOMKilled)"
    assert dict(facts(report))["tasks"] == "1 succeeded, 2 failed, 0 cancelled"
    assert of_owner(Array(id="a1", name="sweep", state=state), [Notify("ops", (HOLD,))], 5.0) == []


def test_an_array_that_is_held_is_told_each_time_with_how_far_it_is() -> None:
    held = Array(id="a1", name="sweep", state=ArrayState(succeeded=1, failed=2, held="wait for the data"))
    wanted = [Notify("ops"), Notify("me", (END, FAILURE))]
    [told] = of_owner(held, wanted, 5.0)
    assert (told.to, told.report.event, told.report.complete) == ("ops", "array.held", True)
    assert subject(told.report) == "array sweep is held until it is released: wait for the data"
    assert dict(facts(told.report))["tasks"] == "1 succeeded, 2 failed, 0 cancelled"
    [again] = of_owner(held, wanted, 6.0)
    assert told.id != again.id


def test_a_kind_that_nobody_heard_of_is_told_of_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Rollout, frozen=True):
        @property
        def ended(self) -> str:
            return "Failed"

    monkeypatch.setitem(KINDS, ROLLOUT.name, ROLLOUT)
    row = Ended(id="r1", name="web", queue="ml", submitted_by="ann")
    [told] = of_owner(row, [Notify("ops", (FAILURE,))], 5.0)
    assert (told.report.event, told.report.queue) == ("rollout.failed", "ml")
    assert subject(told.report) == "rollout web failed"
    assert dict(facts(told.report))["more"] == "holdfast why rollout r1"
    assert of_owner(row, [Notify("ops", (HOLD,))], 5.0) == []


def test_tasks_that_failed_alike_are_counted_together_whatever_they_printed() -> None:
    other = evolve(BROKEN, category="", error_line="another line")
    assert (describe_failure(BROKEN), describe_failure(other), describe_failure(None)) == (
        "program",
        "exit code 3",
        "unknown",
    )


def test_a_delivery_that_fails_is_tried_for_a_day_ever_more_rarely_and_then_given_up() -> None:
    one = Notification(
        id="m", to="ops", report=OutcomeReport(event="e", kind="job", id="j", name="n", at=0, state=""), created_at=0.0
    )
    times = [0.0]
    while one.state is DeliveryState.WAITING:
        one = one.failed("it answered 500", times[-1], draw=0.5, final=False)
        times.append(one.next_at)
    pauses = [round(later - before) for before, later in itertools.pairwise(times[:-1])]
    assert pauses == [5, 15, 45, 135, 405, 1215, 3645, 10935, 14400, 14400, 14400, 14400]
    assert GIVE_UP_AFTER_S - 14_400 < times[-2] <= GIVE_UP_AFTER_S
    assert (one.state, one.error, one.settled_at) == (DeliveryState.DEAD, "it answered 500", times[-2])
    fresh = one.replayed(1e6)
    assert (fresh.id, fresh.state, fresh.tries, fresh.next_at) == ("m", DeliveryState.WAITING, 0, 1e6)
    assert fresh.failed("no", 1e6, draw=0.5, final=True).state is DeliveryState.DEAD


def test_a_delay_varies_by_a_fifth() -> None:
    assert (delay_s(1, 0.0), delay_s(1, 0.5), delay_s(1, 1.0)) == pytest.approx((4.0, 5.0, 6.0))
