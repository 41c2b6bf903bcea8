"""A database server that commits and whose answer is lost: nothing is written twice, and nothing is believed undone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import Job, JobState
from holdfast.domain.record import evolve
from holdfast.errors import Uncertain
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store
from tests import wire

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def line(postgres_url: str) -> Iterator[wire.Wire]:
    with wire.laid(postgres_url) as laid:
        yield laid


def test_a_commit_whose_answer_is_lost_is_called_uncertain(line: wire.Wire, postgres_url: str) -> None:
    job = Job("j1", "a", "default", 0, 100.0, "{}", queued_at=100.0, updated_at=100.0)
    with closing(open_store(line.url)) as store, closing(open_store(postgres_url)) as direct:
        store.submit(Submission([job]))
        line.cut_commits(every=1)
        with pytest.raises(Uncertain, match="while it committed"):
            store.commit(Changes({"j1": evolve(store.job("j1"), state=JobState.HELD)}))
        assert direct.job("j1").state is JobState.HELD
        with pytest.raises(Uncertain) as raised:
            store.submit(Submission([evolve(job, id="j2")], idempotency_key="k", fingerprint="f"))
        assert "idempotency key" in str(raised.value)
        line.cut_commits(every=0)
        assert store.submit(Submission([evolve(job, id="j3")], idempotency_key="k", fingerprint="f")) == ("j2",)
        assert line.cut == 2
