"""What keeping a list up to date asks of the server, and what it shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.cli.nouns import Noun
from holdfast.cli.screen.terminal import keys_of
from holdfast.cli.things import Selection
from holdfast.cli.watching.changes import AGAIN_S, MOST_EVENTS, ChangingList
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

    def jobs(self, *, limit: int | None = None, ids: Sequence[str] | None = None, **where: object) -> list[JobSummary]:
        assert (limit, where) == (None, {"states": ["Queued", "Running"]})
        self.asked.append("all" if ids is None else str(len(ids)))
        found = [one for one in self.known.values() if one.state in {"Queued", "Running"}]
        return [one for one in found if ids is None or one.id in ids]

    def looked(self, changing: ChangingList) -> list[str]:
        """Look once; returns what that asked."""
        self.asked.clear()
        changing.look(cast("Client", self))
        return list(self.asked)

    def changing(self) -> ChangingList:
        selection = Selection(Noun.JOB, where={"states": ["Queued", "Running"]})
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
    assert place.looked(changing) == ["last", "events", "3"]
    assert (changing.things["7"].state, "8" in changing.things, len(changing.things)) == ("Running", False, 1000)
    assert list(changing.things)[-1] == "new"


def test_what_runs_is_read_again_now_and_then_for_its_progress() -> None:
    place = Place()
    place.set(job("1", "Running"), job("2"))
    changing = place.changing()
    changing.look(cast("Client", place))
    place.at += AGAIN_S
    assert place.looked(changing) == ["last", "1"]


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
