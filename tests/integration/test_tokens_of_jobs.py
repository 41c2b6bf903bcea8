"""Tokens of jobs: what a program does with the one of its run, at each server of a database, and for how long."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.job import Job, JobState, Run
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.record import evolve
from holdfast.errors import Forbidden, HoldfastError, NotFound, Unauthenticated
from holdfast.ports.store import Changes
from holdfast.service.access.tokens import RunTokens
from holdfast.storage.sql import open_store
from tests.integration.test_api_tokens import JOB, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.ports.store import Store

TOKENS = RunTokens(b"a key of this test")
ARRAY = {**JOB, "name": "sweep", "array": {"indices": "0-1"}}


class Runs:
    """A lab in which jobs run as a controller writes it down."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.lab = Lab(path, stack)
        self.store: Store = open_store(path)
        stack.callback(self.store.close)
        self.ann = self.lab.client(self.lab.made("all", user="ann").token)

    def run(self, job_id: str, attempt: int = 1, dispatch: int = 1, status: RunStatus = RunStatus.RUNNING) -> str:
        """Have an attempt run, or be in another status; returns the token of its run."""
        uid = f"{job_id}-{attempt}-0-{dispatch}"
        run = Run(uid, job_id, attempt, 0, status, token_digest=TOKENS.digest(uid))
        job = evolve(self.job(job_id), state=JobState.RUNNING, attempt=attempt)
        self.store.commit(Changes(jobs={job_id: job}, runs={uid: run}))
        return TOKENS.token(uid)

    def put(self, job_id: str, **changes: Any) -> None:  # noqa: ANN401 - fields by name
        self.store.commit(Changes(jobs={job_id: evolve(self.job(job_id), **changes)}))

    def job(self, job_id: str) -> Job:
        [found] = self.store.jobs_by_id([job_id])
        return found

    def launched(self, **said: object) -> tuple[str, Client]:
        """Submit a job that has a token, and show that as its program does."""
        job_id = self.ann.submit({**JOB, "name": "parent", "identity": True, **said}).id
        return job_id, self.lab.client(self.run(job_id))


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with ExitStack() as stack:
        yield Runs(tmp_path / "holdfast.db", stack)


def test_a_program_submits_below_its_job_reads_and_cancels_that_and_is_its_owner(runs: Runs) -> None:
    job_id, own = runs.launched(group="exp")
    child = own.submit({**JOB, "name": "child"})
    assert (child.group, child.submitted_by) == ("exp/parent", "ann")
    assert own.submit({**JOB, "name": "deep", "group": "exp/parent/child"}).group == "exp/parent/child"
    assert own.submit_array(ARRAY).group == "exp/parent"
    for elsewhere in ("exp", "exp/parents", "exp/paren", "parent", "other"):
        with pytest.raises(Forbidden, match="with this token: its scope is submit,watch,logs,cancel@job:group=exp/par"):
            own.submit({**JOB, "name": "no", "group": elsewhere})
    runs.ann.submit({**JOB, "name": "beside", "group": "exp/parents"})
    assert {one.name for one in own.jobs(tasks=False)} == {"parent", "child", "deep"}
    assert own.job(job_id).name == "parent"
    with pytest.raises(NotFound):
        own.job("beside")
    own.cancel("child")
    own.cancel_array("sweep")
    with pytest.raises(Forbidden, match="may not cancel this job with this token"):
        own.cancel(job_id)
    for asked in (own.nodes, own.tokens, own.audit, own.settings, own.queues.list):
        with pytest.raises(Forbidden, match="with this token"):
            [*asked()]  # some are read page by page
    with pytest.raises(Forbidden, match="with this token"):
        own.hold("deep")
    with pytest.raises(Forbidden):
        own.create_token("more")


def test_a_child_may_ask_for_a_token_of_its_own_which_is_for_less(runs: Runs) -> None:
    _, own = runs.launched()
    child = own.submit({**JOB, "name": "child", "identity": True})
    below = runs.lab.client(runs.run(child.id))
    assert below.submit({**JOB, "name": "deep"}).group == "parent/child"
    own.submit({**JOB, "name": "sibling"})
    assert {one.name for one in below.jobs()} == {"child", "deep"}
    with pytest.raises(NotFound):
        below.cancel("sibling")
    with pytest.raises(Forbidden):
        below.submit({**JOB, "name": "no", "group": "parent"})


def test_whoever_shows_a_token_that_is_for_less_submits_nothing_that_has_one_for_more(runs: Runs) -> None:
    scopes = ["submit,watch,logs@job", "cancel@job:group=a/"]
    less = runs.lab.client(runs.lab.made("less", user="ann", scopes=scopes).token)
    assert less.submit({**JOB, "name": "b", "group": "a", "identity": True}).group == "a"
    with pytest.raises(Forbidden, match="may not submit a job with an identity by this token") as caught:
        less.submit({**JOB, "name": "c", "identity": True})
    assert "submit,watch,logs,cancel@job:group=c/" in (caught.value.hint or "")


def refused(client: Client) -> str:
    with pytest.raises(Unauthenticated) as caught:
        [*client.jobs()]
    return caught.value.message


def test_a_token_ends_with_its_run_and_an_earlier_attempt_s_opens_nothing(runs: Runs) -> None:
    job_id, first = runs.launched()
    assert [*first.jobs()]
    runs.run(job_id, status=RunStatus.ERROR)
    assert refused(first) == f"attempt 1 of job {job_id} has ended, so its token is no longer valid"
    second = runs.lab.client(runs.run(job_id, attempt=2))
    assert [*second.jobs()]
    runs.run(job_id, attempt=1)  # as of a run that nobody has heard the end of
    runs.put(job_id, attempt=2)
    assert refused(first) == f"attempt 1 of job {job_id} has ended, so its token is no longer valid"
    runs.put(job_id, state=JobState.SUCCEEDED)
    assert refused(second) == f"attempt 2 of job {job_id} has ended, so its token is no longer valid"


def test_a_run_that_is_being_ended_reads_and_submits_nothing_more(runs: Runs) -> None:
    job_id, own = runs.launched()
    runs.run(job_id, status=RunStatus.TERMINATING)
    runs.put(job_id, cancel_requested=True)
    assert own.job(job_id).id == job_id
    with pytest.raises(Forbidden):
        own.submit({**JOB, "name": "late"})


def test_what_is_no_run_s_token_opens_nothing_and_tells_nothing(runs: Runs) -> None:
    job_id, _ = runs.launched()
    plain = runs.ann.submit({**JOB, "name": "plain"}).id
    runs.run(plain)
    uid = f"{plain}-1-0-1"
    runs.store.commit(Changes(runs={f"{plain}-1-0-2": Run(f"{plain}-1-0-2", plain, 1, 0, RunStatus.RUNNING)}))
    own = TOKENS.token(f"{job_id}-1-0-1")
    forged = RunTokens(b"another key").token(f"{job_id}-1-0-1")
    swapped = f"hfj_{uid}_{own.rpartition('_')[2]}"
    without = TOKENS.token(f"{plain}-1-0-2")
    for text in (forged, swapped, without, TOKENS.token("none-1-0-1"), own[:-1], f"{own}x", "hfj_", "hfj__", own + "é"):
        try:
            told = refused(runs.lab.client(text))
        except HoldfastError as error:  # what no header can carry
            told = error.message
            assert not text.isascii()
            continue
        assert told == "this server does not know that job token", text


def test_an_account_that_was_made_again_is_not_the_owner_of_a_job_that_still_runs(runs: Runs) -> None:
    _, own = runs.launched()
    runs.lab.accounts["ann"] = Principal("ann", uid=2001)
    runs.lab.clock.time += 31.0
    assert refused(own) == "the job belongs to an account 'ann' that no longer exists"


def test_the_digest_of_a_run_stays_what_it_was_when_it_is_written_again(runs: Runs) -> None:
    job_id, own = runs.launched()
    uid = f"{job_id}-1-0-1"
    runs.store.commit(Changes(runs={uid: Run(uid, job_id, 1, 0, RunStatus.RUNNING, progress="50%")}))
    assert [*own.jobs()]
