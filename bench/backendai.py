"""How fast sessions of Backend.AI's users are: searched among many, and read back when a server starts.

Run it by itself (``python -m bench.backendai [SESSIONS]``) or take the figures from ``measure``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

from bench.storage import NOW, postgresql
from holdfast.domain.access.grants import Seen
from holdfast.domain.job import Job, JobState, Queue, Resources
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import SessionResult, SessionSpec, SessionStatus
from holdfast.domain.sessions.records import first_session
from holdfast.ports.sessions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Compare,
    Comparison,
    NoneOf,
    Order,
    PageRequest,
    SessionField,
)
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.ports.sessions import Condition
    from holdfast.ports.store import Store

SESSIONS = 100_000
BULK = 5_000
USERS, PROJECTS = 40, 10
TIMES = 100
F, C = SessionField, Comparison
_NAMED = Compare(F.NAME, C.CONTAINS, "-777", ignores_case=True)
_RUNNING = Compare(F.STATUS, C.IN, ("PENDING", "RUNNING"))
_MINE = Compare(F.USER, C.EQUALS, "user-7")
_ANY_OF_TWO = AnyOf((_NAMED, AllOf((Compare(F.RESULT, C.EQUALS, "failure"), NoneOf((_MINE,))))))
SEARCHES: Mapping[str, tuple[Condition, PageRequest, Seen | None]] = {
    "the newest": (EVERYTHING, PageRequest(20), None),
    "by status": (_RUNNING, PageRequest(20), None),
    "by user and status": (AllOf((_MINE, _RUNNING)), PageRequest(20), None),
    "by project": (Compare(F.PROJECT, C.EQUALS, "project-3"), PageRequest(20), None),
    "by a part of the name": (_NAMED, PageRequest(20), None),
    "by OR and NOT": (_ANY_OF_TWO, PageRequest(20), None),
    "by status, in order of names": (_RUNNING, PageRequest(20, order=(Order(F.NAME),)), None),
    "in order of end": (EVERYTHING, PageRequest(20, order=(Order(F.TERMINATED_AT, descending=True),)), None),
    "from 50,000 on": (EVERYTHING, PageRequest(20, SESSIONS // 2), None),
    "a user's own": (EVERYTHING, PageRequest(20), Seen("user-7")),
    "a Unix account's own": (_RUNNING, PageRequest(20), Seen("user-7", uid=1007)),
}


class Search(NamedTuple):
    """How long a search took, in milliseconds."""

    what: str
    database: str
    median_ms: float
    p99_ms: float


def fill(store: Store, count: int) -> None:
    """Submit jobs that are sessions; nine of ten have ended."""
    spec = SessionSpec(domain="default", resource_group="default", image="cr.backend.ai/stable/python:3.9")
    for project in range(PROJECTS):
        store.put_entry(Queue(f"project-{project}"))
    for start in range(0, count, BULK):
        jobs = [_job(number) for number in range(start, min(start + BULK, count))]
        sessions = [first_session(job, spec, name=f"train-{number}") for number, job in enumerate(jobs, start)]
        store.submit(Submission(jobs, sessions=sessions))
        changes = Changes()
        for number, (job, session) in enumerate(zip(jobs, sessions, strict=True), start):
            if number % 10:
                is_good = number % 3 > 0
                at, state = job.submitted_at + 60, JobState.SUCCEEDED if is_good else JobState.FAILED
                result = SessionResult.SUCCESS if is_good else SessionResult.FAILURE
                changes.jobs[job.id] = evolve(job, state=state, ended_at=at, updated_at=at)
                changes.sessions[session.id] = evolve(
                    session, status=SessionStatus.TERMINATED, result=result, terminated_at=at
                )
        store.commit(changes)


def _job(number: int) -> Job:
    at, owner = NOW + number, f"user-{number % USERS}"
    return Job(
        f"j{number:025d}", "train", f"project-{number % PROJECTS}", 0, at, '{"name":"train"}', Resources(1000, 2 << 30),
        queued_at=at, updated_at=at, submitted_by=owner, submitter_uid=1000 + number % USERS,
    )  # fmt: skip


def searches(place: str, database: str, count: int) -> Iterator[Search]:
    """Search among sessions, the last page of the way through them included."""
    store = open_store(place)
    fill(store, count)
    far = store.search_sessions(EVERYTHING, PageRequest(1, count // 2)).items[0].id
    after = {"after an item in the middle": (EVERYTHING, PageRequest(20, after=far), None)}
    for what, (where, page, seen) in {**SEARCHES, **after}.items():
        took = []
        for _ in range(TIMES):
            began = time.perf_counter()
            store.search_sessions(where, page, seen=seen)
            took.append((time.perf_counter() - began) * 1000)
        took.sort()
        yield Search(what, database, took[TIMES // 2], took[TIMES * 99 // 100])
    store.close()


def measure(count: int = SESSIONS) -> Iterator[Search]:
    """Measure SQLite, and PostgreSQL where the machine has a server and the driver."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        yield from searches(f"{folder}/holdfast.db", "SQLite", count)
    with postgresql() as place:
        if place is not None:
            yield from searches(place, "PostgreSQL", count)


if __name__ == "__main__":
    for search in measure(int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS):
        print(f"{search.database:10} {search.what:30} {search.median_ms:8.1f} ms {search.p99_ms:8.1f} ms", flush=True)
