"""What every store answers about many jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import Cause, EndedBy, Failure
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Queue, Resources, Run
from holdfast.domain.lifecycle import Ending, RunStatus
from holdfast.domain.record import evolve
from holdfast.errors import NotFound
from holdfast.ports.overview import AttemptFigures, FailureFigures, FigureScope, Recoveries, Share
from holdfast.ports.store import Changes, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store

SPEC = '{"command":["true"],"name":"a"}'


def job(job_id: str, **given: object) -> Job:
    made = Job(job_id, "a", "default", 0, 100.0, SPEC, Resources(500, 1 << 30, 1), queued_at=100.0, updated_at=100.0)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def run(job_id: str, attempt: int, rank: int = 0, dispatch: int = 1, **given: object) -> Run:
    made = Run(f"{job_id}-{attempt}-{rank}-{dispatch}", job_id, attempt, rank)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def test_of_each_job_its_labels_its_last_attempt_and_that_ones_newest_runs_are_known(store: Store) -> None:
    store.submit(Submission([job("j1"), job("j2"), job("j3")], labels={"j1": {"team": "nlp", "tier": "1"}}))
    runs = [run("j1", 1), *(run("j1", 2, rank, node="old") for rank in range(6))]
    runs += [run("j1", 2, rank, dispatch=2, node="new") for rank in range(6)]
    attempts = [Attempt("j1", 1), Attempt("j1", 2, dispatch=2, message="second"), Attempt("j3", 1)]
    first, _, third = store.jobs_by_id(["j1", "j2", "j3"])
    store.commit(
        Changes(
            jobs={"j1": evolve(first, attempt=2), "j3": evolve(third, attempt=1)},
            attempts={attempt.key: attempt for attempt in attempts},
            runs={one.uid: one for one in runs},
        )
    )
    found = store.latest_of(["j3", "j1", "none", "j2"])
    assert set(found) == {"j1", "j2", "j3"}
    assert found["j1"].labels == {"team": "nlp", "tier": "1"}
    assert found["j1"].attempt == attempts[1]
    assert [(one.rank, one.node) for one in found["j1"].runs] == [(0, "new"), (1, "new"), (2, "new"), (3, "new")]
    assert (found["j2"].labels, found["j2"].attempt, found["j2"].runs) == ({}, None, [])
    assert (found["j3"].attempt, found["j3"].runs) == (attempts[2], [])


def test_of_each_job_all_attempts_and_the_runs_of_the_last_one_are_known(store: Store) -> None:
    store.submit(Submission([job("j1"), job("j2"), job("j3")]))
    first, _, third = store.jobs_by_id(["j1", "j2", "j3"])
    attempts = [Attempt("j1", 2), Attempt("j1", 1), Attempt("j3", 1)]
    runs = [run("j1", 1), *(run("j1", 2, rank) for rank in (5, 0)), run("j3", 1)]
    changes = Changes(jobs={"j1": evolve(first, attempt=2), "j3": evolve(third, attempt=1)})
    changes.attempts = {one.key: one for one in attempts}
    changes.runs = {one.uid: one for one in runs}
    store.commit(changes)
    found = store.attempts_of(["j1", "j2", "none"])
    assert {key: [one.number for one in own] for key, own in found.items()} == {"j1": [1, 2]}
    found_runs = store.last_runs_of(["j3", "j1", "j2"])
    assert {key: [one.uid for one in own] for key, own in found_runs.items()} == {
        "j1": ["j1-2-0-1", "j1-2-5-1"],
        "j3": ["j3-1-0-1"],
    }


def test_more_jobs_than_fit_one_statement_are_asked_for_at_once(store: Store) -> None:
    ids = [f"j{number:05}" for number in range(2500)]
    store.submit(Submission([job(job_id) for job_id in ids]))
    assert list(store.latest_of(ids)) != []
    assert set(store.latest_of(ids)) == set(ids)


NOW = 1000.0
ALL = FigureScope(0.0, NOW)
OOM = Failure(Cause.OOM_KILLED, frozenset(), category="memory", subcategory="limit", node="n1")
EXIT = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset(), node="n2")


def attempt(job_id: str, number: int, *times: float | None, **given: object) -> Attempt:
    started, ended = times
    made = Attempt(job_id, number, started_at=started, ended_at=ended)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def history(store: Store) -> None:
    """One job failed twice and succeeded, one goes on after a failure, one waits, one ended long ago, one has pods."""
    jobs = [job("a"), job("b", queue="gpu"), job("c", queue="gpu"), job("old"), job("pods")]
    store.put_entry(Queue("gpu"))
    store.submit(Submission(jobs, labels={"a": {"team": "nlp", "x": "1"}, "b": {"team": "nlp"}}))
    a, b, c, old, pods = store.jobs_by_id(["a", "b", "c", "old", "pods"])
    changed = [
        evolve(a, state=JobState.SUCCEEDED, attempt=3, started_at=100.0, ended_at=400.0),
        evolve(b, state=JobState.RUNNING, attempt=2, started_at=800.0),
        c,
        evolve(old, state=JobState.FAILED, attempt=1, started_at=10.0, ended_at=20.0),
        evolve(pods, state=JobState.RUNNING, attempt=1, started_at=900.0),
    ]
    attempts = [
        attempt("a", 1, 100.0, 150.0, ending=Ending.FAILED, failure=OOM),
        attempt("a", 2, 160.0, 200.0, ending=Ending.FAILED, failure=EXIT),
        attempt("a", 3, 230.0, 400.0, ending=Ending.SUCCEEDED),
        attempt("b", 1, 800.0, 850.0, ending=Ending.FAILED, failure=EXIT),
        attempt("b", 2, 870.0, None),
        attempt("old", 1, 10.0, 20.0, ending=Ending.FAILED, failure=OOM),
        attempt("pods", 1, 900.0, None),
    ]
    pod = run("pods", 1, started_at=900.0, ended_at=930.0, failure=OOM)
    store.commit(
        Changes(
            jobs={one.id: one for one in changed},
            attempts={one.key: one for one in attempts},
            runs={pod.uid: pod, "other": run("pods", 1, 1, started_at=900.0)},
        )
    )


def test_jobs_are_counted_that_go_on_or_ended_in_the_time_in_question(store: Store) -> None:
    history(store)
    assert store.job_figures(ALL) == {"Succeeded": 1, "Running": 2, "Queued": 1, "Failed": 1}
    assert store.job_figures(FigureScope(300.0, NOW)) == {"Succeeded": 1, "Running": 2, "Queued": 1}
    assert store.job_figures(FigureScope(0.0, NOW, "gpu")) == {"Running": 1, "Queued": 1}
    assert store.job_figures(FigureScope(0.0, NOW, None, (("team", "nlp"),))) == {"Succeeded": 1, "Running": 1}
    assert store.job_figures(FigureScope(0.0, NOW, None, (("team", "nlp"), ("x", "1")))) == {"Succeeded": 1}
    assert store.job_figures(FigureScope(0.0, NOW, "nowhere")) == {}


def test_the_time_of_jobs_is_from_their_first_start_on_and_only_what_lies_within_counts(store: Store) -> None:
    history(store)
    assert store.wall_time(ALL) == pytest.approx(300.0 + 200.0 + 10.0 + 100.0)
    assert store.wall_time(FigureScope(300.0, NOW)) == pytest.approx(100.0 + 200.0 + 100.0)
    assert store.wall_time(FigureScope(950.0, NOW, "gpu")) == pytest.approx(50.0)
    assert store.wall_time(FigureScope(0.0, NOW, "nowhere")) == 0.0


def test_attempts_are_summed_up_by_how_they_ended(store: Store) -> None:
    history(store)
    assert store.attempt_figures(ALL) == {
        "Failed": AttemptFigures(4, 1, 150.0),
        "Succeeded": AttemptFigures(1, 1, 170.0),
        None: AttemptFigures(2, 1, 230.0),
    }
    assert store.attempt_figures(FigureScope(820.0, NOW, "gpu")) == {
        "Failed": AttemptFigures(1, 0, 30.0),
        None: AttemptFigures(1, 1, 130.0),
    }
    assert store.attempt_figures(FigureScope(0.0, NOW, "nowhere")) == {}


def test_failures_are_summed_up_by_what_they_were_and_where(store: Store) -> None:
    history(store)
    oom, other = ("oom_killed", "memory", "limit", "n1"), ("kernel_nonzero_exit", "", "", "n2")
    assert store.failure_figures(ALL) == [FailureFigures(*oom, 3, 90.0), FailureFigures(*other, 2, 90.0)]
    assert store.failure_figures(FigureScope(180.0, NOW)) == [
        FailureFigures(*other, 2, 70.0),
        FailureFigures(*oom, 1, 30.0),
    ]
    assert store.failure_figures(FigureScope(0.0, NOW, None, (("x", "1"),))) == [
        FailureFigures(*other, 1, 40.0),
        FailureFigures(*oom, 1, 50.0),
    ]
    assert store.failure_figures(FigureScope(0.0, NOW, "nowhere")) == []


@pytest.mark.parametrize("ended_by", sorted(EndedBy))
def test_a_deliberate_stop_is_no_failure_and_what_follows_it_neither_a_retry_nor_a_recovery(
    store: Store, ended_by: EndedBy
) -> None:
    stopped = Failure(Cause.UNKNOWN, frozenset(), started=True, ended_by=ended_by)
    store.submit(Submission([job("a")]))
    [a] = store.jobs_by_id(["a"])
    attempts = [
        attempt("a", 1, 100.0, 150.0, ending=Ending.FAILED, failure=stopped),
        attempt("a", 2, 900.0, 950.0, ending=Ending.SUCCEEDED),
    ]
    ended = evolve(a, state=JobState.SUCCEEDED, attempt=2, started_at=100.0, ended_at=950.0)
    runs = {"run": run("a", 1, started_at=100.0, ended_at=150.0, failure=stopped)}
    store.commit(Changes(jobs={"a": ended}, attempts={one.key: one for one in attempts}, runs=runs))
    figures, failures = store.attempt_figures(ALL), store.failure_figures(ALL)
    counts = (figures["Succeeded"].retries, sum(one.count for one in failures), store.recoveries(ALL).count)
    assert counts == ((0, 0, 0) if ended_by in {"user", "suspension", "drain", "preemption"} else (1, 2, 1))


def test_a_recovery_lasts_from_the_end_of_a_failed_attempt_to_the_start_of_the_next(store: Store) -> None:
    history(store)
    assert store.recoveries(ALL) == Recoveries(3, 20.0)
    assert store.recoveries(FigureScope(500.0, NOW)) == Recoveries(1, 20.0)
    assert store.recoveries(FigureScope(0.0, NOW, "default")) == Recoveries(2, 20.0)
    assert store.recoveries(FigureScope(0.0, NOW, "nowhere")) == Recoveries(0, None)


def test_the_load_is_counted_by_queue_and_state_and_lists_begin_with_the_newest(store: Store) -> None:
    states = [JobState.QUEUED, JobState.RUNNING, JobState.FAILED, JobState.RUNNING, JobState.BACKOFF]
    jobs = [job(f"j{place}", name=f"Train_{place}", queue=f"q{place % 2}") for place in range(len(states))]
    for name in {each.queue for each in jobs} - {"default"}:
        store.put_entry(Queue(name))
    store.submit(Submission(jobs))
    known = store.jobs_by_id([one.id for one in jobs])
    moved = [evolve(one, state=state) for one, state in zip(known, states, strict=True)]
    store.commit(Changes(jobs={one.id: one for one in moved}))
    assert store.queue_load() == {
        ("q0", JobState.QUEUED): 1,
        ("q1", JobState.RUNNING): 2,
        ("q0", JobState.BACKOFF): 1,
    }
    active = [JobState.RUNNING, JobState.BACKOFF]
    assert [one.id for one in store.newest(active, limit=5)] == ["j4", "j3", "j1"]
    assert [one.id for one in store.newest(active, limit=2)] == ["j4", "j3"]
    assert [one.id for one in store.newest(active, limit=5, named="train_3")] == ["j3"]
    assert store.newest(active, limit=5, named="%") == []


def test_names_of_jobs_are_found_by_how_they_begin_and_a_near_one_is_suggested(store: Store) -> None:
    names = ["train", "train", "trace", "Train", "eval", "tr%in"]
    tasks = [job("t0", name="trap-0", child=ChildOf("a", "", 0))]
    store.submit(Submission([*(job(f"j{place}", name=name) for place, name in enumerate(names)), *tasks]))
    assert store.job_names("tra", limit=9) == ["trace", "train"]
    assert store.job_names("tr", limit=1) in (["tr%in"], ["trace"])
    assert store.job_names("tr%", limit=9) == ["tr%in"]
    assert set(store.job_names("", limit=9)) == set(names)
    with pytest.raises(NotFound) as refused:
        store.job("trian")
    assert refused.value.hint == "did you mean train?"
    with pytest.raises(NotFound) as refused:
        store.job("quite-another")
    assert refused.value.hint == "list jobs with: holdfast get jobs"


def test_what_runs_had_is_summed_up_by_what_they_share(store: Store) -> None:
    task = '{"version":1,"spec":{"command":["true"],"labels":{"team":"nlp"},"name":"a"}}'
    jobs = [
        job("j1", submitted_by="ann", queue="gpu", group="x/1"),
        job("j2", submitted_by="ann", child=ChildOf("a1", "", 0), spec=task),
        job("j3", submitted_by="ben"),
    ]
    store.put_entry(Queue("gpu"))
    store.submit(Submission(jobs, labels={"j1": {"team": "vision"}}))
    gpu, small = Resources(2000, 4 << 30, 1, 500), Resources(500)
    failed = Failure(Cause.KERNEL_NONZERO_EXIT, frozenset())
    attempts = [
        Attempt("j1", 1, ending=Ending.FAILED, ended_at=150.0),
        Attempt("j1", 2, ending=Ending.SUCCEEDED, ended_at=400.0),
        Attempt("j2", 1),
        Attempt("j3", 1, ending=Ending.SUCCEEDED, ended_at=300.0),
    ]
    runs = [
        run("j1", 1, request=gpu, started_at=100.0, ended_at=150.0, status=RunStatus.ERROR),
        run("j1", 2, request=gpu, started_at=200.0, ended_at=400.0, status=RunStatus.TERMINATED),
        run("j1", 2, 1, request=gpu, started_at=200.0, ended_at=400.0, status=RunStatus.TERMINATED),
        run("j2", 1, request=small, started_at=900.0, status=RunStatus.RUNNING),
        run("j2", 1, 1, request=small, status=RunStatus.PENDING),
        run("j2", 1, 2, request=small, started_at=10.0, status=RunStatus.ERROR),
        run("j3", 1, request=small, started_at=100.0, ended_at=160.0, status=RunStatus.ERROR, failure=failed),
        run("j3", 1, dispatch=2, request=small, started_at=200.0, ended_at=300.0, status=RunStatus.TERMINATED),
    ]
    changes = Changes(attempts={one.key: one for one in attempts}, runs={one.uid: one for one in runs})
    store.commit(changes)

    def used(share: Share, since: float = 0.0, label: str = "") -> list[tuple[str, Resources, bool, int, float]]:
        found = store.usage_figures(FigureScope(since, 1000.0), share, label)
        return [(one.name, one.request, one.wasted, one.runs, one.ran_s) for one in found]

    assert used(Share.USER) == [
        ("ann", small, False, 1, 100.0),
        ("ann", gpu, False, 2, 400.0),
        ("ann", gpu, True, 1, 50.0),
        ("ben", small, False, 1, 100.0),
        ("ben", small, True, 1, 60.0),
    ], "what has ended and nobody knows when, and what never started, had nothing"
    assert used(Share.USER, 300.0) == [
        ("ann", small, False, 1, 100.0),
        ("ann", gpu, False, 2, 200.0),
        ("ben", small, False, 1, 0.0),
    ]
    assert {(name, count) for name, _, _, count, _ in used(Share.QUEUE)} == {
        ("default", 2),
        ("default", 1),
        ("gpu", 2),
        ("gpu", 1),
    }
    assert {name for name, *_ in used(Share.GROUP)} == {"", "x/1"}
    assert {(name, request) for name, request, *_ in used(Share.LABEL, label="team")} == {
        ("vision", gpu),
        ("nlp", small),
        ("", small),
    }
    assert {name for name, *_ in used(Share.LABEL, label="no/such")} == {""}
