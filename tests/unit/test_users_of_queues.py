"""A queue that limits what each user runs: whoever is at the limit waits, and nobody else does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.compiled.codec import dump_spec
from holdfast.domain.job import Ceiling, Job, JobState, Queue, Resources, UserLimits
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.store import JobFilter, Submission
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import RetryPolicy

GIB = 1 << 30
FOREVER = SimulatedRun(duration_s=1e9)
TWO_EACH = UserLimits(max_running_jobs=2)


def submit(
    lab: Lab, user: str, name: str, plan: SimulatedRun = FOREVER, *policies: RetryPolicy, **fields: object
) -> str:
    """Submit a job of somebody."""
    spec = job_named(name, *policies, **{"queue": "lab", "resources": Resources(100), **fields})
    lab.plans[name] = lambda _: plan
    now, number = lab.clock.now(), len(lab.plans)
    job = Job(
        id=f"job-{number:03}-{name}",
        name=name,
        queue=spec.queue,
        priority=spec.priority,
        submitted_at=now,
        spec=dump_spec(spec),
        request=spec.resources,
        gang=spec.gang,
        queued_at=now,
        submitted_by=user,
    )
    lab.store.submit(Submission([job]))
    return job.id


def running(lab: Lab) -> Counter[str]:
    """Count what runs, by user."""
    return Counter(job.submitted_by for job in lab.store.jobs(JobFilter(states=frozenset({JobState.RUNNING}))))


def limit(lab: Lab, limits: UserLimits, name: str = "lab") -> None:
    lab.store.put_entry(Queue(name, per_user=limits))


@pytest.mark.parametrize(
    ("limits", "cost", "most", "reason"),
    [
        (TWO_EACH, Resources(100), 2, "limit of 2 running jobs"),
        (UserLimits(Ceiling(cpu_m=1000)), Resources(400), 2, "cpu limit"),
        (UserLimits(Ceiling(cpu_m=800)), Resources(400), 2, "cpu limit"),
        (UserLimits(Ceiling(memory=3 * GIB)), Resources(100, GIB), 3, "memory limit"),
        (UserLimits(Ceiling(cpu_m=300), max_running_jobs=2), Resources(100), 2, "limit of 2 running jobs"),
        (UserLimits(Ceiling(cpu_m=0)), Resources(100), 0, "cpu limit"),
    ],
)
def test_each_user_has_as_much_of_a_queue_as_its_limit_says_and_why_tells_which(
    lab: Lab, limits: UserLimits, cost: Resources, most: int, reason: str
) -> None:
    limit(lab, limits)
    jobs = {user: [submit(lab, user, f"{user}{at}", resources=cost) for at in range(4)] for user in ("ann", "bob")}
    lab.step(3)
    assert running(lab) == Counter({user: most for user in jobs if most})
    for user, ids in jobs.items():
        assert lab.job(ids[most]).reason == f"{user} is at the per-user {reason} of queue lab"


def test_the_queues_own_limit_counts_beside_those_of_its_users(lab: Lab) -> None:
    lab.store.put_entry(Queue("lab", max_running_jobs=3, per_user=TWO_EACH))
    for at in range(3):
        submit(lab, "ann", f"ann{at}")
        submit(lab, "bob", f"bob{at}")
    lab.step(3)
    assert sorted(running(lab).values()) == [1, 2]
    reasons = {job.reason for job in lab.store.jobs(JobFilter(states=frozenset({JobState.QUEUED})))}
    assert "queue lab is at its limit of 3 running jobs" in reasons


def test_whoever_is_at_the_limit_keeps_nobody_behind_waiting_and_no_node_free(lab: Lab) -> None:
    limit(lab, TWO_EACH)
    for at in range(5):
        submit(lab, "ann", f"ann{at}")
    lab.step(3)
    lab.pass_s(60.0)  # long enough to be kept a node free for
    last = submit(lab, "bob", "bob", resources=Resources(3800))
    lab.step(3)
    assert lab.job(last).state is JobState.RUNNING


def test_a_job_that_ends_lets_its_users_next_one_start_and_a_retry_is_under_the_limit_too(lab: Lab) -> None:
    limit(lab, UserLimits(max_running_jobs=1))
    first = submit(lab, "ann", "first", exits(3, after_s=2.0), retrying(2, delay_s=3.0))
    second = submit(lab, "ann", "second", exits(0, after_s=10.0))
    for _ in range(40):
        lab.pass_s(1.0)
        assert running(lab)["ann"] <= 1
    assert (lab.job(first).state, lab.job(second).state) == (JobState.FAILED, JobState.SUCCEEDED)


def test_a_gang_is_one_job_and_all_of_its_ranks_count(lab: Lab) -> None:
    limit(lab, UserLimits(Ceiling(cpu_m=500), max_running_jobs=2))
    gang = submit(lab, "ann", "gang", gang=4)
    more = submit(lab, "ann", "more", gang=2)
    small = submit(lab, "ann", "small")
    lab.step(3)
    states = [lab.job(one).state for one in (gang, more, small)]
    assert states == [JobState.RUNNING, JobState.QUEUED, JobState.RUNNING]


def test_a_limit_that_is_set_changed_or_taken_away_holds_for_what_waits_already(lab: Lab) -> None:
    lab.store.put_entry(Queue("lab", paused=True))
    for at in range(5):
        submit(lab, "ann", f"ann{at}")
        submit(lab, "bob", f"bob{at}")
    lab.step(3)
    for most, expected in ((2, 2), (3, 3), (1, 3)):
        limit(lab, UserLimits(max_running_jobs=most))
        lab.step(3)
        assert running(lab) == Counter(ann=expected, bob=expected)
    limit(lab, UserLimits())
    lab.step(3)
    assert running(lab) == Counter(ann=5, bob=5)


def test_a_restarted_controller_knows_what_each_user_runs(lab: Lab) -> None:
    limit(lab, TWO_EACH)
    for at in range(4):
        submit(lab, "ann", f"ann{at}")
    lab.step(3)
    lab.restart_controller()
    submit(lab, "bob", "bob")
    lab.pass_s(5.0)
    assert running(lab) == Counter(ann=2, bob=1)


def test_a_job_that_is_left_alone_still_counts_while_its_program_runs(lab: Lab) -> None:
    limit(lab, UserLimits(max_running_jobs=1))
    left = submit(lab, "ann", "left")
    lab.step(3)
    lab.controller.state.drop(left)
    later = submit(lab, "ann", "later")
    lab.step(3)
    assert lab.job(later).state is JobState.QUEUED


def test_work_of_nobody_known_shares_one_limit(lab: Lab) -> None:
    limit(lab, TWO_EACH)
    ids = [submit(lab, "", f"old{at}") for at in range(3)]
    lab.step(3)
    assert running(lab) == Counter({"": 2})
    assert lab.job(ids[2]).reason == "nobody is at the per-user limit of 2 running jobs of queue lab"


def test_no_user_is_summed_up_where_no_queue_limits_them(lab: Lab) -> None:
    lab.store.put_entry(Queue("lab", max_running_jobs=1))
    for at in range(3):
        submit(lab, "ann", f"ann{at}")
    lab.step(3)
    assert {key.user for key in lab.controller.state.pending.groups()} == {None}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(["ann", "bob", "eve"]), st.integers(1, 3), st.integers(1, 9)),
        st.tuples(st.just("pass"), st.integers(1, 4)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("limit"), st.integers(1, 4), st.integers(3, 9)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_never_more_than_the_limit_of_a_user_runs(steps: Sequence[tuple[str | int, ...]]) -> None:
    lab = Lab()
    most, cpu_m = 2, 400
    limit(lab, UserLimits(Ceiling(cpu_m=cpu_m), max_running_jobs=most))
    started: set[str] = set()
    for at, (what, *rest) in enumerate(steps):
        if what == "submit":
            user, ranks, lasts = rest
            plan = exits(at % 2, after_s=float(lasts))
            submit(lab, str(user), f"j{at}", plan, retrying(1, delay_s=1.0), gang=int(ranks))
        elif what == "restart":
            lab.restart_controller()
        elif what == "limit":
            most, cpu_m = int(rest[0]), 100 * int(rest[1])
            limit(lab, UserLimits(Ceiling(cpu_m=cpu_m), max_running_jobs=most))
        for _ in range(int(rest[0]) if what == "pass" else 1):
            lab.pass_s(1.0)
            now = {job.id: job for job in lab.store.jobs(JobFilter(states=frozenset({JobState.RUNNING})))}
            fresh = {now[key].submitted_by for key in now.keys() - started}
            started = set(now)
            for user in fresh:  # a limit that was lowered stops nothing, and starts nothing
                theirs = [job for job in now.values() if job.submitted_by == user]
                assert len(theirs) <= most
                assert sum(job.gang * job.request.cpu_m for job in theirs) <= cpu_m


def test_a_limit_of_users_is_kept_with_its_queue(lab: Lab) -> None:
    queue = Queue("lab", per_user=UserLimits(Ceiling(1000, GIB, 1, (("licence", 2000),)), max_running_jobs=3))
    lab.store.put_entry(queue)
    assert lab.store.catalogue().queues["lab"] == queue
    assert evolve(queue, per_user=UserLimits()) != queue
