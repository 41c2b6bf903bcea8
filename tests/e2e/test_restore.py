"""A backup that is restored elsewhere while the original runs on: nothing of it starts before somebody says so."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.test_databases import Machine, all_succeeded, manifests, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # two servers with running programs

WAITS = "nothing is started until `holdfast db resume`: the database was restored from friday.db"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    pair = Machine(tmp_path / "original"), Machine(tmp_path / "copy")
    yield pair
    for machine in pair:
        for process in machine.programs():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def submit_one_of_each(client: Client, ledger: Path, gate: Path) -> None:
    """Start programs that write down where they run, and end once there is a gate; one job more waits."""
    program = f'echo "$HOLDFAST_JOB_NAME $PWD" >> {ledger}; while [ ! -e {gate} ]; do sleep 0.05; done'
    client.submit({"name": "job", "shell": program, "resources": {"cpu": 0.1}})
    client.submit_array({"name": "array", "shell": program, "resources": {"cpu": 0.1}, "array": {"indices": "0-1"}})
    container = {"name": "main", "image": "none", "command": ["sh", "-c", program]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {"backoffLimit": 3, "template": {"spec": pod}}
    meta: dict[str, Any] = {"metadata": {"name": "set"}}
    replicated = {"name": "r", "replicas": 1, "template": {"spec": job}}
    client.create_job_set(
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **meta, "spec": {"replicatedJobs": [replicated]}}
    )


def began(ledger: Path, machine: Machine) -> int:
    """Count the programs that began on a machine."""
    return sum(f" {machine.data}/" in line for line in ledger.read_text().splitlines()) if ledger.exists() else 0


def test_a_copy_restored_elsewhere_starts_nothing_until_it_is_resumed_and_then_goes_on(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    original, copy = machines
    ledger, gate, backup = tmp_path / "ledger", tmp_path / "gate", tmp_path / "friday.db"
    with original.serving() as first:
        submit_one_of_each(first, ledger, gate)
        wait_until(lambda: began(ledger, original) == 4)
        assert original.run("db", "backup", str(backup)).code == 0
        restored = copy.run("db", "restore", str(backup))
        assert (restored.code, restored.out.splitlines()[-1]) == (0, "nothing starts until you run: holdfast db resume")
        with copy.serving() as second:
            wait_until(lambda: second.job("job").state == "Queued" and second.job("job").reason == WAITS)
            second.submit({"name": "later", "shell": f"echo later $PWD >> {ledger}"})
            wait_until(lambda: second.job("later").reason == WAITS)
            assert "it may run elsewhere" in copy.run("why", "job").out
            assert WAITS in copy.run("get", "job", "job").out + copy.run("describe", "job", "job").out
            for name in ("jobset/set", "array/array"):
                assert WAITS in copy.run("why", name).out
            assert WAITS in copy.run("doctor").out
            assert (began(ledger, original), began(ledger, copy)) == (4, 0)
        assert [first.job("job").state, first.job("job").attempt] == ["Running", 1]
        assert WAITS in copy.run("db", "check").out
        with copy.serving() as second:
            assert began(ledger, copy) == 0
            assert copy.run("db", "resume").out == "resumed: waiting jobs start again\n"
            wait_until(lambda: began(ledger, copy) == 5)
            gate.touch()
            wait_until(lambda: second.job("job").state == "Succeeded" and second.job_set("set").state == "Completed")
            acts = [(each.action, each.kind, each.detail) for each in second.audit()]
            assert ("pause", "scheduling", "the database was restored from friday.db") in acts
            assert ("resume", "scheduling", "") in acts
        wait_until(lambda: first.job("job").state == "Succeeded" and first.job_set("set").state == "Completed")
        assert [first.job("job").attempt, began(ledger, original)] == [1, 4]


def test_a_restore_in_place_keeps_what_runs_and_starts_nothing_else(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    machine, _ = machines
    ledger, gate, backup = tmp_path / "ledger", tmp_path / "gate", tmp_path / "friday.db"
    program = f"echo $HOLDFAST_JOB_NAME $PWD >> {ledger}; while [ ! -e {gate} ]; do sleep 0.05; done"
    with machine.serving() as client:
        client.submit({"name": "runs", "shell": program, "resources": {"cpu": 8}})
        client.submit({"name": "waits", "shell": program, "resources": {"cpu": 8}})
        wait_until(lambda: began(ledger, machine) == 1)
        assert machine.run("db", "backup", str(backup)).code == 0
    assert machine.run("db", "restore", str(backup)).code == 0
    with machine.serving() as client:
        gate.touch()
        wait_until(lambda: client.job("runs").state == "Succeeded")
        wait_until(lambda: client.job("waits").reason == WAITS)
        assert machine.run("db", "resume").code == 0
        wait_until(lambda: client.job("waits").state == "Succeeded")
    assert [line.split()[0] for line in ledger.read_text().splitlines()] == ["runs", "waits"]


def test_resume_with_the_restore_starts_at_once(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    machine, copy = machines
    backup = tmp_path / "friday.db"
    assert machine.run("run", "--", "true").code == 0
    assert machine.run("db", "backup", str(backup)).code == 0
    assert "nothing is started" not in copy.run("db", "restore", "--resume", str(backup)).out
    assert copy.run("run", "--", "true").code == 0


def test_a_database_that_other_tools_restored_is_paused_before_its_server_begins(
    tmp_path: Path, postgres_url: str
) -> None:
    machine = Machine(tmp_path / "data", {"HOLDFAST_DATABASE": postgres_url})
    assert machine.run("db", "pause").code == 0
    with machine.serving() as client:
        client.submit(manifests(1)[0])
        wait_until(lambda: "nothing is started" in client.job("n0").reason)
        assert machine.run("db", "resume").code == 0
        wait_until(lambda: all_succeeded(client, 1))
