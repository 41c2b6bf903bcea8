"""How far attempts are is told as events, at most every 30 seconds, and only where it is news."""

from __future__ import annotations

from itertools import count, pairwise
from typing import TYPE_CHECKING

from holdfast.controller.observations import PROGRESS_WRITTEN_EVERY_S
from holdfast.controller.progress import PROGRESS_TOLD_EVERY_S, ProgressEvents
from holdfast.domain.events.jobs import AttemptProgressed
from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import ChildOf
from holdfast.domain.record import evolve
from holdfast.ports.engine import Observation, RunPhase
from holdfast.ports.exchange import ExchangeRequest
from tests.unit.conftest import Lab, exits, job_named, retrying
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.job import Run
    from holdfast.ports.store import Changes

RUNS_LONG = exits(0, after_s=10_000.0)
STEP_S = 0.5


class CountingStore(MemoryStore):
    """A store that counts what is written to it."""

    written = 0
    """Changes of runs, and events."""

    def commit(self, changes: Changes) -> None:
        self.written += len(changes.runs) + len(changes.events)
        super().commit(changes)


class Reports:
    """An executor that reports what its runs say of their progress."""

    def __init__(self, lab: Lab, job: str) -> None:
        self.lab, self.job = lab, job
        self.life, self.numbers, self.begun = lab.clock.now(), count(1), lab.clock.time
        self.ended: dict[str, RunOutcome] = {}
        """How runs have ended, by uid."""

    def say(self, said: Mapping[int, str], *, for_s: float = STEP_S) -> None:
        """Let time pass in which the ranks report this; other ranks go on without a word."""
        until = self.lab.clock.time + for_s
        while self.lab.clock.time < until:
            self.lab.clock.time += STEP_S
            seen = {run.uid: self._seen(run, said) for run in self.lab.runs(self.job)}
            request = ExchangeRequest("local", next(self.numbers), self.lab.engine.nodes(), seen, self.life)
            self.lab.controller.tick([request])

    def _seen(self, run: Run, said: Mapping[int, str]) -> Observation:
        outcome = self.ended.get(run.uid)
        if outcome is not None:
            return Observation(run.uid, RunPhase.FINISHED, self.begun, outcome)
        return Observation(run.uid, RunPhase.RUNNING, self.begun, progress=said.get(run.rank, ""))

    def end(self, code: int, rank: int = 0) -> None:
        """Have the newest run of a rank end."""
        run = next(run for run in reversed(self.lab.runs(self.job)) if run.rank == rank)
        outcome = RunOutcome(containers=(ContainerResult(code),), started_at=self.begun)
        self.ended[run.uid] = outcome
        self.say({})

    def told(self) -> list[tuple[float, AttemptProgressed]]:
        """Return what was told, and how many seconds after the beginning."""
        stored = self.lab.store.events(limit=1000)
        return [(each.at - self.begun, each.event) for each in stored if isinstance(each.event, AttemptProgressed)]

    def words(self) -> list[tuple[int, str]]:
        """Return which ranks told what."""
        return [(event.rank, event.progress) for _, event in self.told()]


def begin(lab: Lab, gang: int = 1) -> Reports:
    """Run a job whose progress is reported by hand."""
    job = lab.submit(job_named("train", retrying(3), gang=gang), RUNS_LONG)
    lab.pass_s(2)
    return Reports(lab, job)


def test_progress_that_changes_all_the_time_is_told_at_a_bounded_rate_and_so_is_the_last_of_it(lab: Lab) -> None:
    reports = begin(lab)
    for step in range(240):
        reports.say({0: f"{step}/240"})
    reports.say({0: "239/240"}, for_s=200.0)
    times = [at for at, _ in reports.told()]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert times[0] <= PROGRESS_WRITTEN_EVERY_S + STEP_S
    assert all(PROGRESS_TOLD_EVERY_S <= wait <= PROGRESS_TOLD_EVERY_S + PROGRESS_WRITTEN_EVERY_S for wait in waits)
    assert len(times) == 5
    assert reports.told()[-1][1] == AttemptProgressed(1, 0, "239/240")
    assert lab.runs(reports.job)[0].progress == "239/240"


def test_the_lowest_rank_that_reports_speaks_for_its_attempt(lab: Lab) -> None:
    reports = begin(lab, gang=3)
    for step in range(60):
        reports.say({1: f"one {step}", 2: f"two {step}"})
    for step in range(140):
        reports.say({0: f"zero {step}", 1: f"one {60 + step}", 2: f"two {60 + step}"})
    assert [rank for rank, _ in reports.words()] == [1, 0, 0, 0]
    assert [run.progress[:3] for run in lab.runs(reports.job)] == ["zer", "one", "two"]


def test_of_ranks_that_first_report_at_once_only_the_lowest_is_told(lab: Lab) -> None:
    reports = begin(lab, gang=3)
    reports.say({2: "two", 1: "one", 0: "zero"}, for_s=100.0)
    assert reports.words() == [(0, "zero")]


def test_another_rank_speaks_where_the_first_has_ended_and_no_sooner_than_it_would(lab: Lab) -> None:
    reports = begin(lab, gang=2)
    reports.say({0: "all of it", 1: "a half"}, for_s=10.0)
    reports.end(0)
    reports.say({1: "two thirds"}, for_s=100.0)
    assert reports.words() == [(0, "all of it"), (1, "two thirds")]
    first, second = [at for at, _ in reports.told()]
    assert second - first >= PROGRESS_TOLD_EVERY_S


def test_each_attempt_tells_at_once_how_far_it_is(lab: Lab) -> None:
    reports = begin(lab)
    reports.say({0: "1/9"}, for_s=10.0)
    reports.end(1)
    reports.say({0: "1/9"}, for_s=10.0)
    assert [(event.attempt, event.progress) for _, event in reports.told()] == [(1, "1/9"), (2, "1/9")]


def test_a_controller_that_begins_anew_may_tell_news_early_and_tells_nothing_twice(lab: Lab) -> None:
    reports = begin(lab)
    reports.say({0: "1/9"}, for_s=10.0)
    lab.restart_controller()
    reports.say({0: "1/9"}, for_s=40.0)
    assert reports.words() == [(0, "1/9")]
    reports.say({0: "2/9"}, for_s=10.0)
    lab.restart_controller()
    reports.say({0: "3/9"}, for_s=10.0)
    assert reports.words() == [(0, "1/9"), (0, "2/9"), (0, "3/9")]


def test_tasks_of_arrays_and_jobs_that_report_nothing_tell_nothing_and_the_latter_write_nothing(lab: Lab) -> None:
    task = begin(lab)
    active = lab.controller.state.active[task.job]
    lab.controller.state.put_job(evolve(active.job, child=ChildOf("sweep", "", 7)))
    task.say({0: "1/9"}, for_s=40.0)
    assert (lab.runs(task.job)[0].progress, task.words()) == ("1/9", [])
    silent = Lab()
    silent.store = store = CountingStore()
    silent.restart_controller()
    quiet = begin(silent)
    before = store.written
    quiet.say({}, for_s=40.0)
    assert (store.written - before, quiet.words()) == (0, [])


def test_jobs_of_sets_tell_how_far_they_are(lab: Lab) -> None:
    reports = begin(lab)
    active = lab.controller.state.active[reports.job]
    lab.controller.state.put_job(evolve(active.job, child=ChildOf("set", "workers", 0)))
    reports.say({0: "1/9"}, for_s=10.0)
    assert reports.words() == [(0, "1/9")]


def test_an_event_has_the_beginning_of_a_long_report_and_its_job_is_rebuilt_as_without_it(lab: Lab) -> None:
    reports = begin(lab)
    reports.say({0: "x" * 5000}, for_s=10.0)
    reports.say({0: "x" * 5000 + "y"}, for_s=60.0)
    assert reports.words() == [(0, "x" * 256)]
    events = lab.store.events(limit=100)
    told = rebuild(each for each in events if not isinstance(each.event, AttemptProgressed))
    assert rebuild(events) == told
    assert [each.job_seq for each in events if each.job_id == reports.job] == [1, 2, 3, 4]


def test_what_was_told_of_an_attempt_is_forgotten_once_it_is_over(lab: Lab) -> None:
    reports, events = begin(lab), ProgressEvents(lab.controller.state)
    active = lab.controller.state.active[reports.job]
    events.heard(active, next(iter(active.runs.values())))
    events.tell(lab.clock.now(), 0.0)
    assert list(events.last_by_attempt) == [(reports.job, 1)]
    reports.end(1)
    reports.say({}, for_s=10.0)
    events.tell(lab.clock.now(), 10.0)
    assert events.last_by_attempt == {}
