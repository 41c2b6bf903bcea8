"""Servers that share a PostgreSQL server and are cut off from it: one writes, one runs, both say what they may."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from holdfast.errors import Conflict, NotLeader, Unavailable
from holdfast.ports.store import Changes
from holdfast.service.manifests.armada import read_configuration
from holdfast.storage.sql import open_store
from tests import wire
from tests.e2e.test_databases import Machine, all_succeeded, is_ready, manifests, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # servers that lose each other, for as long as leases last


LEASE_S = 12.0
"""Long enough for a machine that is busy with other tests."""


@pytest.fixture
def line(postgres_url: str) -> Iterator[wire.Wire]:
    with wire.laid(postgres_url) as laid:
        yield laid


def on(url: str, folder: Path, **more: str) -> Machine:
    return Machine(folder, {"HOLDFAST_DATABASE": url, "HOLDFAST_LEASE": f"{LEASE_S}s", **more})


def readiness(machine: Machine) -> str:
    """Ask what keeps a server from working, as a load balancer does."""
    address = str(machine.address()["url"])
    with suppress(httpx.HTTPError):
        return httpx.get(f"{address}/readyz", timeout=20).text
    return ""


def test_no_event_is_written_twice_when_answers_to_commits_are_lost(
    line: wire.Wire, postgres_url: str, tmp_path: Path
) -> None:
    retry = {"retryLimit": 3, "defaultAction": "Retry", "backoff": {"initialDelay": "0s"}}
    program = "sleep 0.$((RANDOM % 10)); exit $((HOLDFAST_ATTEMPT < 3))"
    with on(line.url, tmp_path / "data").serving() as client, closing(open_store(postgres_url)) as direct:
        for one in manifests(20, program, retry=retry):
            client.submit(one)
        line.cut_commits(every=4)
        wait_until(lambda: line.cut >= 4)
        line.cut_commits(every=0)
        wait_until(lambda: all_succeeded(client, 20))
        events = Counter((stored.job_id, stored.at, stored.event) for stored in direct.events(limit=100_000))
        assert [event for event, times in events.items() if times > 1] == []
        assert [len(direct.attempts(job.id)) for job in client.jobs()] == [3] * 20


def test_a_deposed_server_takes_nothing_in_says_so_and_leads_again_when_it_may(
    postgres_url: str, tmp_path: Path
) -> None:
    machine = on(postgres_url, tmp_path / "data")
    with machine.serving() as client, closing(open_store(postgres_url)) as store:
        wait_until(lambda: is_ready(client))
        job = client.submit(manifests(1, "sleep 60")[0]).id
        wait_until(lambda: client.job(job).state == "Running")
        epoch = depose(postgres_url, store.lead)
        wait_until(lambda: "led by the test" in readiness(machine), within_s=5)
        with pytest.raises(NotLeader, match="led by the test"):
            client.submit(manifests(1)[0])
        address = machine.address()
        answer = httpx.get(f"{address['url']}/api/v1/jobs", headers={"Authorization": f"Bearer {address['token']}"})
        assert (answer.status_code, "led by the test" in answer.headers["holdfast-warning"]) == (200, True)
        wait_until(lambda: machine.programs() == [])
        store.lead("the test", 0.0, time.time())
        wait_until(lambda: is_ready(client))
        wait_until(lambda: client.job(job).state == "Running" and len(client.job(job).attempts) == 2)
        client.submit({"name": "more", "shell": "true"})
        wait_until(lambda: client.job("more").state == "Succeeded")
        with pytest.raises(Conflict):
            store.commit(Changes(handled=[1], epoch=epoch))
        client.cancel(job)


def test_servers_keep_to_the_configuration_file_of_the_one_that_leads(postgres_url: str, tmp_path: Path) -> None:
    file, text = tmp_path / "armada.yaml", "scheduling: {{retryPolicy: {{enabled: true, globalMaxRetries: {}}}}}"
    file.write_text(text.format(7))
    machine = on(postgres_url, tmp_path / "data", HOLDFAST_ARMADA_CONFIG=str(file))
    with machine.serving() as client, closing(open_store(postgres_url)) as store:
        wait_until(lambda: is_ready(client))
        assert client.settings().global_max_retries == 7
        depose(postgres_url, store.lead)
        wait_until(lambda: "led by the test" in readiness(machine), within_s=5)
        store.put_configured(read_configuration(text.format(9), "of the other"))
        file.write_text(text.format(8))
        assert client.settings().global_max_retries == 9, "both show what is in force"
        with pytest.raises(NotLeader, match="led by the test"):
            client.reload_settings()
        assert client.settings().global_max_retries == 9
        file.write_text(text.format(7))
        store.lead("the test", 0.0, time.time())
        wait_until(lambda: client.settings().global_max_retries == 7)
        assert client.reload_settings().changed is False


def depose(url: str, lead: object) -> int:
    """Take the lease away from whoever has it, as nobody may."""
    assert callable(lead)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE leadership SET expires_at = 0, owner = 'the test', epoch = epoch + 1")
    return int(lead("the test", 3600.0, time.time()))


def test_a_machine_that_is_cut_off_stops_its_programs_before_another_runs_them(
    line: wire.Wire, postgres_url: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    one, other = on(line.url, tmp_path / "one"), on(postgres_url, tmp_path / "other")
    beat = f'while :; do echo "$HOLDFAST_ATTEMPT" >> {ledger}; sleep 0.1; done'
    with one.serving() as client:
        job = client.submit({"name": "beats", "shell": beat, "grace": "60s"}).id
        wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) > 5)
        line.freeze()
        wait_until(lambda: is_free(postgres_url), within_s=10 * LEASE_S)
        assert one.programs() == []
        with other.serving() as elsewhere:
            wait_until(lambda: "2" in ledger.read_text().splitlines())
            assert "not renewed" in readiness(one)
            with pytest.raises(Unavailable):
                client.submit(manifests(1)[0])
            line.thaw()
            wait_until(lambda: "led by" in readiness(one))
            elsewhere.cancel(job)
    lines = ledger.read_text().splitlines()
    assert lines == sorted(lines), "the first attempt went on when the second had begun"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_programs_of_a_server_that_is_gone_end_before_another_machine_runs_their_jobs(
    postgres_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    ledger = tmp_path / "ledger"
    one, other = on(postgres_url, tmp_path / "one"), on(postgres_url, tmp_path / "other")
    beat = f'while :; do echo "$HOLDFAST_ATTEMPT" >> {ledger}; sleep 0.1; done'
    with one.serving() as client:
        job = client.submit({"name": "beats", "shell": beat, "grace": "60s"}).id
        wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) > 5)
        server = one.server_pid()
        os.kill(server, end)
        wait_until(lambda: is_free(postgres_url), within_s=10 * LEASE_S)
        assert one.programs() == []
        with other.serving() as elsewhere:
            wait_until(lambda: "2" in ledger.read_text().splitlines())
            elsewhere.cancel(job)
        if end is signal.SIGSTOP:
            os.kill(server, signal.SIGCONT)
    lines = ledger.read_text().splitlines()
    assert lines == sorted(lines), "the first attempt went on when the second had begun"


def is_free(url: str) -> bool:
    """Whether the lease has run out, by the database's time."""
    with psycopg.connect(url) as connection:
        left = connection.execute(
            "SELECT expires_at - extract(epoch FROM clock_timestamp()) FROM leadership"
        ).fetchone()
        return left is not None and left[0] < 0
