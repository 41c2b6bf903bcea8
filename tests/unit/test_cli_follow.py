"""Following and waiting, against a server that answers from a script; time is counted, not spent."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.cli import exit_codes
from holdfast.cli.context import Cli
from holdfast.cli.watching.follow import ENDED, Follower, LogSelection, Prefixed
from holdfast.cli.watching.pacing import Polling
from holdfast.cli.watching.waiting import WaitGoal, wait_for
from holdfast.errors import NotFound
from holdfast.wire.events import EventView
from holdfast.wire.jobs import AttemptView, JobOutcome, JobView, LogChunk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.client import Client

RESOURCES = {"cpu": "1", "memory": "0", "gpu": 0}
AT = "2026-01-01T00:00:00.000Z"


@dataclass
class Script:
    """A client whose job moves on one step with every look."""

    jobs: list[JobView] = field(default_factory=list)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    """What each (attempt, rank) printed."""
    told: list[dict[str, str]] = field(default_factory=list)
    happened: list[list[EventView]] = field(default_factory=list)
    """What is new at each look after the first; afterwards it is always something that changes the whole job."""
    looks: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    """Why each job is as ``told`` says; one that has none here is forgotten by the time it is asked about."""

    def last_event(self) -> int:
        return 7

    def events(self, *, after: int, job: str) -> list[EventView]:
        assert (after, job) == (7, "j")
        return self.happened.pop(0) if self.happened else [event("job.held")]

    def job_outcomes(self, *, ids: Sequence[str]) -> list[JobOutcome]:
        known = self.reasons or dict.fromkeys(self.told[0], "")
        states = self.told[0]
        return [outcome(one, states[one], known[one]) for one in ids if one in known and one in states]

    def attempts(self, reference: str) -> list[AttemptView]:
        return self.job(reference).attempts

    def job(self, reference: str) -> JobView:
        assert reference == "j"
        self.looks += 1
        return self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]

    def logs(
        self, reference: str, *, attempt: int = 1, rank: int = 0, offset: int | None = None, tail: int | None = None
    ) -> LogChunk:
        if self.told:
            raise NotFound(reference)
        assert reference == "j"
        whole = self.texts.get((attempt, rank), "")
        if tail is not None:
            assert offset is None
            lines = whole.splitlines(keepends=True)
            offset = len(whole) - len("".join(lines[len(lines) - tail :]))
        assert offset is not None
        text = whole[offset : offset + 4]
        end = offset + len(text)
        finished = end == len(whole)
        return LogChunk(attempt=attempt, rank=rank, offset=offset, next_offset=end, text=text, finished=finished)

    def states(self, job_ids: Sequence[str]) -> dict[str, str]:
        states = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        return {job: states[job] for job in job_ids if job in states}

    def client(self) -> Client:
        return cast("Client", self)


@dataclass
class Surroundings:
    """Streams that are kept, and a clock that sleeping moves."""

    at: float = 0.0
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    def cli(self) -> Cli:
        return Cli(stdout=self.out, stderr=self.err, now=lambda: self.at, sleep=self.sleep)


def job(state: str, *attempts: str, gang: int = 1) -> JobView:
    views = [
        {"number": number, "state": one, "phase": "x", "created_at": AT, "resources": RESOURCES, "exit_code": 3}
        for number, one in enumerate(attempts, 1)
    ]
    facts: dict[str, Any] = {"labels": {}, "counters": {}, "spec": {}, "attempts": views, "gang": gang}
    header = {"id": "j", "name": "j", "queue": "default", "state": state, "resources": RESOURCES, "submitted_at": AT}
    return JobView.model_validate({**header, **facts})


def outcome(job_id: str, state: str, reason: str = "") -> JobOutcome:
    known = job(state).model_dump(include=set(JobOutcome.model_fields))
    return JobOutcome.model_validate({**known, "id": job_id, "name": job_id, "reason": reason})


def event(kind: str, **data: object) -> EventView:
    return EventView(id="7", type=f"dev.holdfast.{kind}.v1", time=AT, subject="jobs/j", data=data)


def followed(script: Script) -> Surroundings:
    surroundings = Surroundings()
    follower = Follower(script.client(), "j", surroundings.cli())
    while follower.look().state not in ENDED:
        pass
    return surroundings


def waited(told: list[dict[str, str]], ids: Sequence[str], wanted: WaitGoal) -> tuple[int, Surroundings]:
    surroundings = Surroundings()
    return wait_for(Script(told=told).client(), ids, wanted, surroundings.cli()), surroundings


def test_the_log_of_every_attempt_is_printed_once_and_whole() -> None:
    script = Script(
        [job("Queued"), job("Running", "Running"), job("Running", "Failed", "Running"), job("Succeeded", *_TWO)],
        {(1, 0): "first attempt\n", (2, 0): "second attempt\n"},
    )
    assert followed(script).out.getvalue() == "first attempt\nsecond attempt\n"


_TWO = ("Failed", "Succeeded")


def test_an_attempt_begins_on_a_line_of_its_own_and_the_last_line_is_left_as_it_was_written() -> None:
    unfinished = Script([job("Succeeded", *_TWO)], {(1, 0): "end of 1", (2, 0): "end of 2"})
    assert followed(unfinished).out.getvalue() == "end of 1\nend of 2"
    nothing_printed = Script([job("Succeeded", "Failed", *_TWO)], {(1, 0): "end of 1", (3, 0): "end of 3\n"})
    assert followed(nothing_printed).out.getvalue() == "end of 1\nend of 3\n"


def test_what_is_said_of_an_attempt_begins_on_a_line_of_its_own_where_its_log_is_shown_too(tmp_path: Path) -> None:
    script = Script([job("Failed", "Failed", "Failed")], {(1, 0): "end of 1", (2, 0): "2\n"})
    with (tmp_path / "terminal").open("w") as both:
        follower = Follower(script.client(), "j", Cli(stdout=both, stderr=both))
        follower.look()
    assert (tmp_path / "terminal").read_text().splitlines() == [
        "end of 1",
        "attempt 1 failed: exit code 3",
        "2",
        "attempt 2 failed: exit code 3",
    ]


def test_a_run_begins_on_a_line_of_its_own_after_that_whose_place_it_took() -> None:
    out, said = io.StringIO(), list[str]()
    lines = Prefixed(out, said.append, many=False)
    lines.write(0, "end")
    lines.mark(0, "run 2 begins")
    lines.write(0, "")
    lines.write(0, "next\n")
    assert (out.getvalue(), said) == ("end\nnext\n", ["run 2 begins"])


def test_a_job_is_read_again_only_when_something_happened_to_it() -> None:
    script = Script([job("Running", "Running")], happened=[[], [], []])
    follower = Follower(script.client(), "j", Surroundings().cli())
    assert {follower.look().state for _ in range(4)} == {"Running"}
    assert script.looks == 1


def test_of_a_failed_attempt_only_the_attempts_are_read_again() -> None:
    retried = [event("attempt.ended"), event("job.retry_scheduled", reason="a rule")]
    script = Script([job("Running", "Running"), job("Queued", "Failed")], happened=[retried])
    surroundings = Surroundings()
    follower = Follower(script.client(), "j", surroundings.cli())
    follower.look()
    seen = follower.look()
    assert (seen.state, seen.reason) == ("BackOff", "a rule")
    assert surroundings.err.getvalue() == "attempt 1 failed: exit code 3\n"


def test_each_failed_attempt_is_told_and_the_good_one_is_not() -> None:
    assert followed(Script([job("Succeeded", *_TWO)])).err.getvalue() == "attempt 1 failed: exit code 3\n"


def test_attempts_that_passed_between_two_looks_are_not_missed() -> None:
    script = Script([job("Failed", "Failed", "Failed", "Failed")], {(n, 0): f"{n}\n" for n in (1, 2, 3)})
    assert followed(script).out.getvalue() == "1\n2\n3\n"


def test_lines_of_a_gang_follow_their_rank() -> None:
    script = Script([job("Succeeded", "Succeeded", gang=2)], {(1, 0): "a\nb", (1, 1): "c\n"})
    assert followed(script).out.getvalue() == "[0] a\n[1] c\n[0] b\n"


def test_a_rank_never_breaks_into_the_line_of_another() -> None:
    out = io.StringIO()
    lines = Prefixed(out, print, many=True)
    for rank, text in ((0, "half"), (1, "whole\n"), (0, " and half\n")):
        lines.write(rank, text)
    lines.close()
    assert out.getvalue() == "[1] whole\n[0] half and half\n"


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["Succeeded", "Succeeded"], exit_codes.OK),
        (["Succeeded", "Failed"], exit_codes.FAILED),
        (["Cancelled", "Succeeded"], exit_codes.FAILED),
    ],
)
def test_waiting_ends_with_a_code_by_outcome(states: list[str], code: int) -> None:
    told = dict(zip(("a", "b"), states, strict=True))
    assert waited([{"a": "Running", "b": "Queued"}, told], ["a", "b"], WaitGoal())[0] == code


def test_waiting_names_the_jobs_that_ended_otherwise() -> None:
    states = {"a": "Succeeded", "b": "Failed", "c": "Cancelled", "d": "Failed"}
    script = Script(
        told=[states], reasons={"a": "", "b": "exit code 1: ValueError: no such key; no rule matched", "c": ""}
    )
    surroundings = Surroundings()
    assert wait_for(script.client(), list(states), WaitGoal(), surroundings.cli()) == exit_codes.FAILED
    assert surroundings.err.getvalue().splitlines() == [
        "b: Failed: exit code 1: ValueError: no such key; no rule matched (job b)",
        "c: Cancelled (job c)",
        "d: is gone",
        "a: Succeeded",
    ]


def test_waiting_gives_up_when_the_time_is_over() -> None:
    code, surroundings = waited([{"a": "Running"}], ["a"], WaitGoal(timeout_s=5))
    assert code == exit_codes.TIMED_OUT
    assert surroundings.at == pytest.approx(5)
    assert "1 of 1 jobs are not terminal yet" in surroundings.err.getvalue()


def test_waiting_for_a_state_ends_when_it_is_there_or_can_never_be() -> None:
    wanted = WaitGoal(state="Running")
    assert waited([{"a": "Queued"}, {"a": "Running"}], ["a"], wanted)[0] == exit_codes.OK
    assert waited([{"a": "Queued"}, {"a": "Failed"}], ["a"], wanted)[0] == exit_codes.FAILED


def test_waiting_says_once_that_a_job_is_held() -> None:
    _, surroundings = waited([{"a": "Held"}, {"a": "Held"}, {"a": "Succeeded"}], ["a"], WaitGoal())
    assert surroundings.err.getvalue().count("holdfast release a") == 1


def test_a_job_that_is_gone_is_not_waited_for() -> None:
    code, surroundings = waited([{}], ["a"], WaitGoal())
    assert (code, surroundings.err.getvalue()) == (exit_codes.FAILED, "a: is gone\n")


def test_rests_grow_while_nothing_happens_and_start_over_with_news() -> None:
    rests: list[float] = []
    pace = Polling(rests.append, first_s=0.1, longest_s=0.2)
    for news in (False, False, False, True):
        pace.rest(news=news)
    assert rests == pytest.approx([0.1, 0.15, 0.2, 0.1])


def test_rests_are_longer_while_much_is_asked_for_at_once() -> None:
    rests: list[float] = []
    pace = Polling(rests.append, first_s=0.1, longest_s=1.0)
    for things in (100_000, 2_000, 100):
        pace.rest(news=True, things=things)
    assert rests == pytest.approx([1.0, 0.6, 0.1])


def test_a_tail_is_of_what_was_printed_before_and_what_comes_later_is_whole() -> None:
    script = Script(
        [job("Running", "Failed", "Running"), job("Succeeded", "Failed", "Failed", "Succeeded")],
        {(2, 0): "one\ntwo\nthree\n", (3, 0): "four\nfive\n"},
    )
    surroundings = Surroundings()
    follower = Follower(script.client(), "j", surroundings.cli(), LogSelection(2, tail=1))
    while follower.look().state not in ENDED:
        pass
    assert surroundings.out.getvalue() == "three\nfour\nfive\n"


def test_a_job_that_is_deleted_before_its_log_is_read_is_not_taken_for_one_that_printed_nothing() -> None:
    surroundings, script = Surroundings(), Deleted(jobs=[job("Succeeded", "Succeeded")])
    with pytest.raises(NotFound, match="no job has the id"):
        Follower(script.client(), "j", surroundings.cli()).look()
    assert surroundings.out.getvalue() == ""


class Deleted(Script):
    """A job that retention deletes between the look at it and the look at its log."""

    def job(self, reference: str) -> JobView:
        if not self.jobs:
            message = f"no job has the id or name {reference!r}"
            raise NotFound(message)
        return self.jobs.pop()

    def logs(self, reference: str, **_: object) -> LogChunk:
        raise NotFound(reference)
