"""However runs went: what a report says of each adds up to what all runs had, by whatever it is reported."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.domain.access.grants import Seen
from holdfast.domain.failure import Cause, Failure
from holdfast.domain.job import Attempt, ChildOf, Job, Queue, Resources, Run
from holdfast.domain.lifecycle import Ending, RunStatus
from holdfast.domain.record import evolve
from holdfast.ports.overview import FigureScope, Share
from holdfast.ports.store import Changes, Submission
from holdfast.service.overview import Hours, usage, with_others_together
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable


SINCE, UNTIL = 1000.0, 5000.0
USERS, QUEUES = ("ann", "ben", "cyd"), ("default", "gpu")
TIMES = st.floats(0.0, UNTIL, width=32)
KINDS = st.sampled_from(["job", "task", "of a set"])
ENDINGS = st.sampled_from([None, Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED, Ending.NEVER_STARTED])
REQUESTS = st.builds(
    Resources, st.integers(0, 8000), st.integers(0, 1 << 36), st.integers(0, 4), st.sampled_from([0, 250])
)


class Ran(NamedTuple):
    """One run: of which rank and dispatch, when, and whether it failed by itself as a pod does."""

    rank: int
    dispatch: int
    started_at: float | None
    ran_s: float | None
    """``None``: it goes on."""
    failed: bool


class Had(NamedTuple):
    """A job with its attempts, each with its end and its runs."""

    user: str
    queue: str
    group: str
    team: str
    kind: str
    request: Resources
    attempts: list[tuple[Ending | None, list[Ran]]]


RUNS = st.builds(
    Ran,
    st.integers(0, 3),
    st.integers(1, 2),
    st.none() | TIMES,
    st.none() | st.floats(0.0, 3000.0, width=32),
    st.booleans(),
)
JOBS = st.builds(
    Had,
    st.sampled_from(USERS),
    st.sampled_from(QUEUES),
    st.sampled_from(["", "x", "x/1"]),
    st.sampled_from(["", "nlp"]),
    KINDS,
    REQUESTS,
    st.lists(st.tuples(ENDINGS, st.lists(RUNS, max_size=4, unique_by=lambda run: run[:2])), max_size=3),
)


class Kept:
    """A store, and what the runs of its jobs had by the plainest reckoning there is."""

    def __init__(self) -> None:
        self.store, self.numbers = MemoryStore(), count()
        self.had: list[tuple[Had, Hours, bool]] = []
        self.store.put_entry(Queue("gpu"))

    def add(self, jobs: Iterable[Had]) -> None:
        for each in jobs:
            self._add(f"j{next(self.numbers):06}", each)

    def _add(self, key: str, had: Had) -> None:
        child = {"task": ChildOf("a1", "", 0), "of a set": ChildOf("s1", "w", 0)}.get(had.kind)
        labels = {"team": had.team} if had.team else {}
        written = f'{{"version":1,"spec":{{"command":["true"],"labels":{{"team":"{had.team}"}},"name":"a"}}}}'
        spec = written if labels else '{"version":1,"spec":{"command":["true"],"name":"a"}}'
        made = Job(key, "a", had.queue, 0, 0.0, spec, had.request, child=child, queued_at=0.0, updated_at=0.0)
        job = evolve(made, submitted_by=had.user, group=had.group)
        changes = Changes()
        for number, (ending, runs) in enumerate(had.attempts, start=1):
            attempt = Attempt(key, number, ending=ending)
            changes.attempts[attempt.key] = attempt
            for one in runs:
                run = self._run(key, number, one, had.request)
                changes.runs[run.uid] = run
                self._note(had, run, wasted=one.failed or ending is Ending.FAILED)
        self.store.submit(Submission([job], labels={} if had.kind == "task" or not labels else {key: labels}))
        self.store.commit(changes)

    @staticmethod
    def _run(key: str, number: int, one: Ran, request: Resources) -> Run:
        over = one.ran_s is not None
        began = one.started_at
        return Run(
            f"{key}-{number}-{one.rank}-{one.dispatch}",
            key,
            number,
            one.rank,
            request=request,
            started_at=began,
            ended_at=(began or 0.0) + (one.ran_s or 0.0) if over else None,
            status=RunStatus.TERMINATED if over else RunStatus.RUNNING,
            failure=Failure(Cause.KERNEL_NONZERO_EXIT, frozenset()) if one.failed else None,
        )

    def _note(self, had: Had, run: Run, *, wasted: bool) -> None:
        if run.started_at is None or (run.ended_at is not None and run.ended_at < SINCE):
            return
        ended = UNTIL if run.ended_at is None else run.ended_at
        hours = max(0.0, ended - max(run.started_at, SINCE)) / 3600.0
        each = run.request
        gpus = each.gpu + each.share_m / 1000
        self.had.append((had, Hours(hours * each.cpu_m / 1000, hours * each.memory / (1 << 30), hours * gpus), wasted))


@pytest.fixture(scope="module")
def kept() -> Kept:
    return Kept()


def total(hours: Iterable[Hours]) -> tuple[float, float, float]:
    found = sum(hours, Hours())
    return found.cpu, found.memory, found.gpu


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(JOBS, max_size=6), st.sampled_from(USERS), st.sampled_from([frozenset[str](), frozenset({"gpu"})]))
def test_a_report_adds_up_to_what_the_runs_had_by_whatever_it_is(
    kept: Kept, jobs: list[Had], user: str, queues: frozenset[str]
) -> None:
    kept.add(jobs)
    scope, seen = FigureScope(SINCE, UNTIL), Seen(user, queues)
    every = total(hours for _, hours, _ in kept.had)
    wasted = total(hours for _, hours, was in kept.had if was)
    names = {Share.USER: "user", Share.QUEUE: "queue", Share.GROUP: "group", Share.LABEL: "team"}
    for share, field in names.items():
        found = usage(kept.store, scope, share, "team")
        assert total(one.had for one in found) == pytest.approx(every)
        assert total(one.wasted for one in found) == pytest.approx(wasted)
        assert sum(one.runs for one in found) == len(kept.had)
        for one in found:
            own = [(hours, was) for had, hours, was in kept.had if getattr(had, field) == one.name]
            assert (one.runs, one.failed) == (len(own), sum(was for _, was in own))
            assert total([one.had]) == pytest.approx(total(hours for hours, _ in own))
    alone = with_others_together(usage(kept.store, scope, Share.USER), user)
    assert total(one.had for one in alone) == pytest.approx(every)
    assert {one.name for one in alone} <= {user, "other users"}
    known = [hours for had, hours, _ in kept.had if had.user == user or had.queue in queues]
    narrowed = usage(kept.store, FigureScope(SINCE, UNTIL, seen=seen), Share.QUEUE)
    assert total(one.had for one in narrowed) == pytest.approx(total(known))
