"""A job's token at two servers of one PostgreSQL: issued by one, known by the other, and dead at both at once."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import psutil
import psycopg
import pytest

from holdfast.client import Client
from holdfast.errors import NotLeader, Unauthenticated
from tests.e2e.test_databases import wait_until
from tests.e2e.test_leases import on, readiness

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.test_databases import Machine

pytestmark = pytest.mark.slow  # two servers, one of which has to learn that the other leads


def token_in(machine: Machine, job_id: str) -> str:
    """Read it in the environment of the job's program, where alone it is."""
    found: list[str] = []

    def is_there() -> bool:
        for process in machine.programs():
            try:
                told = process.environ()
            except psutil.Error:
                continue
            if told.get("HOLDFAST_JOB_ID") == job_id and "HOLDFAST_TOKEN" in told:
                found.append(told["HOLDFAST_TOKEN"])
        return bool(found)

    wait_until(is_there)
    return found[0]


def test_a_job_s_token_is_known_to_the_other_server_and_dead_at_both_with_its_attempt(
    postgres_url: str, tmp_path: Path
) -> None:
    waits = 'until test -e "$0"; do sleep 0.05; done'
    one, other = on(postgres_url, tmp_path / "one"), on(postgres_url, tmp_path / "other")
    with ExitStack() as stack:
        stack.enter_context(one.serving())
        paused = psutil.Process(one.server_pid())
        stack.callback(paused.resume)
        paused.suspend()  # as a machine that sleeps, until another leads
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE leadership SET expires_at = 0")
        leads = stack.enter_context(other.serving())
        paused.resume()
        wait_until(lambda: "led by" in readiness(one))
        leads.submit({"name": "beside", "shell": "true"})
        job = leads.submit({"name": "own", "identity": True, "command": ["/bin/sh", "-c", waits, str(tmp_path / "go")]})
        token = token_in(other, job.id)
        assert (tmp_path / "one" / "job-tokens").read_text() != (tmp_path / "other" / "job-tokens").read_text()
        servers = [Client(str(each.address()["url"]), token) for each in (one, other)]
        for each in servers:
            stack.enter_context(each)
            assert [found.id for found in each.jobs()] == [job.id], "and nothing of what is beside it"
        with pytest.raises(NotLeader):
            servers[0].submit({"name": "child", "shell": "true"})
        assert servers[1].submit({"name": "child", "shell": "true"}).group == "own"
        assert sorted(found.name for found in servers[0].jobs()) == ["child", "own"]
        (tmp_path / "go").touch()
        wait_until(lambda: leads.job(job.id).state == "Succeeded")
        for each in servers:
            with pytest.raises(Unauthenticated, match=f"attempt 1 of job {job.id} has ended"):
                [*each.jobs()]
