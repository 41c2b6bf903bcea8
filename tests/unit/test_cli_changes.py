"""What keeping a list up to date asks of the server, and what it shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.cli.nouns import Noun
from holdfast.cli.screen.terminal import keys_of
from holdfast.cli.things import Selection
from holdfast.cli.watching.changes import AGAIN_S, MOST_CHECKED, MOST_EVENTS, ChangingList
from holdfast.cli.watching.lists import fitting
from holdfast.wire.events import EventView
from holdfast.wire.jobs import JobSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.client import Client

AT = "2026-01-01T00:00:00.000Z"


def job(job_id: str, state: str = "Queued") -> JobSummary:
    facts: dict[str, Any] = {"resources": {"cpu": "1", "memory": "0", "gpu": 0}, "submitted_at": AT}
    return JobSummary(id=job_id, name=f"name-{job_id}", queue="q", state=state, **facts)


@dataclass
class Place:
    """A server with jobs that counts what it is asked."""

    known: dict[str, JobSummary] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    at: float = 0.0

    def set(self, *jobs: JobSummary) -> None:
        """Change or add jobs, with an event of each."""
        self.known |= {one.id: one for one in jobs}
        self.happened += [f"jobs/{one.id}" for one in jobs]

    def last_event(self) -> int:
        self.asked.append("last")
        return len(self.happened)

    def events(self, *, after: int) -> Iterator[EventView]:
        self.asked.append("events")
        for place, subject in enumerate(self.happened[after:], after + 1):
            yield EventView(id=str(place), type="x", time=AT, subject=subject)

    def jobs(
        self, *, limit: int | None = None, ids: Sequence[str] | None = None, states: Sequence[str]
    ) -> list[JobSummary]:
        assert limit is None
        self.asked.append("all" if ids is None else str(len(ids)))
        found = [one for one in self.known.values() if one.state in states]
        return [one for one in found if ids is None or one.id in ids]

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        self.asked.append(f"states of {len(ids)}")
        return {job_id: self.known[job_id].state for job_id in ids if job_id in self.known}

    def looked(self, changing: ChangingList) -> list[str]:
        """Look once; returns what that asked."""
        self.asked.clear()
        changing.look(cast("Client", self))
        return list(self.asked)

    def changing(self, *states: str) -> ChangingList:
        selection = Selection(Noun.JOB, where={"states": states or ("Queued", "Running")})
        return ChangingList(selection, lambda _: [], lambda: self.at)


def test_while_nothing_happens_a_look_is_one_small_request() -> None:
    place = Place()
    place.set(*(job(str(number)) for number in range(1000)))
    changing = place.changing()
    assert place.looked(changing) == ["last", "all"]
    assert [place.looked(changing) for _ in range(3)] == [["last"]] * 3


def test_only_jobs_that_something_happened_to_are_read_again() -> None:
    place = Place()
    place.set(*(job(str(number)) for number in range(1000)))
    changing = place.changing()
    changing.look(cast("Client", place))
    place.set(job("7", "Running"), job("7", "Running"), job("8", "Failed"), job("new"))
    assert place.looked(changing) == ["last", "events", "3", "states of 1"]
    assert (changing.things["7"].state, "8" in changing.things, len(changing.things)) == ("Running", False, 1000)
    assert list(changing.things)[-1] == "new"


def test_what_runs_is_read_again_now_and_then_for_its_progress() -> None:
    place = Place()
    place.set(job("1", "Running"), job("2"))
    changing = place.changing()
    changing.look(cast("Client", place))
    place.at += AGAIN_S
    assert place.looked(changing) == ["last", "1"]


def test_a_job_that_is_no_longer_what_was_asked_for_was_not_deleted() -> None:
    place = Place()
    place.set(job("1"), job("2"))
    changing = place.changing()
    changing.look(cast("Client", place))
    place.set(job("1", "Failed"))
    place.happened.append("jobs/2")
    del place.known["2"]
    changing.look(cast("Client", place))
    assert (list(changing.things), list(changing.deleted)) == ([], ["2"])
    changing.forget_deleted()
    changing.look(cast("Client", place))
    assert changing.deleted == {}


def test_that_jobs_were_forgotten_is_found_without_an_event_though_others_have_some() -> None:
    place = Place()
    place.set(job("1", "Succeeded"), job("2", "Running"))
    changing = place.changing("Succeeded", "Running")
    changing.look(cast("Client", place))
    del place.known["1"]
    place.at += AGAIN_S
    place.happened.append("jobs/2")
    changing.look(cast("Client", place))
    assert (list(changing.things), list(changing.deleted)) == (["2"], ["1"])


def test_of_many_jobs_that_have_ended_some_are_asked_about_in_turns_until_none_is_gone() -> None:
    place = Place()
    place.set(*(job(str(number), "Failed") for number in range(MOST_CHECKED * 3)))
    changing = place.changing("Failed")
    changing.look(cast("Client", place))
    for number in (1, 2, MOST_CHECKED):
        del place.known[str(number)]
    asked = []
    for _ in range(4):
        place.at += AGAIN_S
        asked += [words for words in place.looked(changing) if words.startswith("states")]
    assert list(changing.deleted) == ["1", "2", str(MOST_CHECKED)]
    assert asked == [f"states of {asked_of}" for asked_of in (1000, 1000, 1000, 1000, 1000, 997)]


def test_who_falls_far_behind_reads_the_list_again_instead_of_every_event() -> None:
    place = Place()
    place.set(job("1"))
    changing = place.changing()
    changing.look(cast("Client", place))
    place.happened += ["jobs/1"] * (MOST_EVENTS + 1)
    assert place.looked(changing) == ["last", "events", "all"]
    assert place.looked(changing) == ["last"]


def test_what_goes_on_and_what_is_newest_is_shown_first() -> None:
    jobs = [job("a", "Running"), job("b", "Failed"), job("c", "Failed"), job("d", "Queued"), job("e", "Failed")]
    assert [one.id for one in fitting(jobs, 3)] == ["a", "d", "e"]
    assert fitting(jobs, 5) == jobs


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[Bq", ["up", "down", "q"]),
        ("\x1b", ["escape"]),
        ("é\r\x7f", ["é", "enter", "backspace"]),
        ("\x1b[5~\x1bOB", ["page up", "down"]),
        ("", []),
    ],
)
def test_keys_are_told_by_what_they_send(sent: str, keys: list[str]) -> None:
    assert keys_of(sent) == keys
