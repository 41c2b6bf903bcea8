"""The client's calls that cancel jobs unless they have started, through the whole API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.domain.access import Principal
from holdfast.domain.record import evolve
from holdfast.errors import Conflict
from holdfast.ports.store import Changes
from holdfast.sdk.job import Job
from tests.contract.test_client_api import JOB, Counting, Noon, OneLog
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def client(store: MemoryStore) -> Iterator[Client]:
    app = create_app(store=store, clock=Noon(), ids=Counting(), logs=OneLog(), entrance=Entrance(Principal("tester")))
    with in_process(app.state.backend, Principal("tester")) as client:
        yield client


def test_a_job_is_cancelled_on_condition_that_it_has_not_started(client: Client, store: MemoryStore) -> None:
    accepted = client.submit(JOB)
    job: Job[None] = Job(client, accepted.id, "train")
    job.cancel("late", unless_started=True)
    asked = store.requests(limit=9)[-1]
    assert (asked.kind.value, asked.targets, asked.reason) == ("cancel-unless-started", (job.id,), "late")
    store.commit(Changes(jobs={job.id: evolve(store.job(job.id), started_at=2.0)}))
    with pytest.raises(Conflict, match="has started, so it was not cancelled"):
        job.cancel(unless_started=True)
    job.cancel("really")
    assert store.requests(limit=9)[-1].kind.value == "cancel"


def test_of_many_jobs_those_that_have_started_are_left_out_and_named_with_the_states(
    client: Client, store: MemoryStore
) -> None:
    waits, runs = client.submit(JOB).id, client.submit({**JOB, "name": "other"}).id
    store.commit(Changes(jobs={runs: evolve(store.job(runs), started_at=2.0)}))
    assert client.cancel_many([waits, runs], reason="late", unless_started=True) == [waits]
    asked = store.requests(limit=9)[-1]
    assert (asked.kind.value, asked.targets) == ("cancel-unless-started", (waits,))
    found = client.job_states([waits, runs])
    assert (found.states, found.started) == ({waits: "Queued", runs: "Queued"}, [runs])
