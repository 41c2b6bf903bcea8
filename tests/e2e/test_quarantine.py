"""A damaged row in a real database: the server starts, everything else runs, and the row is found and disposed of."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.sql import open_store
from tests.damage import LEFT_ALONE, check, damage, submit_each_kind, submit_job, submit_victims
from tests.e2e.server import Server, until, wait_until
from tests.e2e.test_databases import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # several servers on damaged databases

DAMAGE = '[1, {"name": 5}]'


def queue(*, paused: bool) -> dict[str, object]:
    spec = {"paused": paused}
    return {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "later"}, "spec": spec}


@pytest.mark.parametrize("begun", [False, True])
def test_a_damaged_row_keeps_no_server_from_starting_and_nothing_else_from_running(
    server: Server, *, begun: bool
) -> None:
    client = server.start()
    client.queues.create(queue(paused=not begun))
    bad = client.submit({"name": "bad", "shell": "sleep 300", "queue": "later"}).id
    good = client.submit({"name": "good", "shell": "sleep 3; exit 5", "queue": "later"}).id
    if begun:
        for job in (bad, good):
            until(client, job, lambda seen: seen.attempts and seen.attempts[-1].runs[0].started_at)
    client.close()
    server.end()
    with closing(sqlite3.connect(server.data / "holdfast.db")) as database:
        digest = database.execute("SELECT spec FROM jobs WHERE id = ?", (bad,)).fetchone()[0]
        database.execute("UPDATE specs SET body = ? WHERE digest = ?", (DAMAGE, digest))
        database.commit()
    for _ in range(2):
        client = server.start()
        wait_until(lambda: [job.id for job in client.jobs(quarantined=True)] == [bad], "the quarantine")  # noqa: B023
        client.close()
        server.end()
    client = server.start()
    client.queues.put("later", queue(paused=False))
    assert until(client, good, lambda job: job.ended_at).attempts[-1].exit_code == 5
    machine = Machine(server.data)
    assert machine.run("get", "jobs", "--quarantined", "-o", "name").out == f"job/{bad}\n"
    assert "is quarantined: Holdfast failed while taking it in" in machine.run("why", bad).out
    assert "holdfast_quarantined_workloads 1.0" in client.metrics()
    assert machine.run("cancel", bad).code == 0
    wait_until(lambda: client.job(bad).state == "Cancelled", "the end of what nobody could read")
    assert not list(client.jobs(quarantined=True))
    wait_until(lambda: not server.programs(), "the end of its program")
    client.close()


def test_commands_tell_of_a_damaged_array_and_job_set_that_lists_leave_out(server: Server) -> None:
    with server.start() as client:
        _, array, job_set = submit_each_kind(client, "bad", "sleep 300")
    server.end()
    with closing(sqlite3.connect(server.data / "holdfast.db")) as database:
        database.execute("UPDATE workloads SET state = ? WHERE id IN (?, ?)", (DAMAGE, array, job_set))
        database.commit()
    with server.start():
        told = {f"array bad-array ({array})": ("arrays", "jobs"), f"jobset bad-set ({job_set})": ("jobsets",)}
        for named, kinds in told.items():
            for kind in kinds:
                said = server.run("get", kind)
                assert said.returncode == 0
                assert f"{named} is damaged and not in the list: the stored " in said.stderr
        assert "holdfast delete array bad-array\n" in server.run("get", "arrays").stderr
        for words in (("array", "bad-array"), ("jobset", "bad-set")):
            assert server.run("delete", *words).returncode == 0
        wait_until(lambda: "damaged" not in server.run("get", "arrays").stderr, "the end of what nobody could read")


FAILS_ONCE = """\
case $HOLDFAST_JOB_NAME in bad-workloads*) ;; *) [ $HOLDFAST_ATTEMPT != 1 ] || exit 3 ;; esac
sleep 600
"""


def test_damage_to_a_row_of_any_table_leaves_every_other_program_running(tmp_path: Path) -> None:
    """Every text of every table is damaged, each in the row of something of its own that runs."""
    server, ledger, word = Server(tmp_path, HOLDFAST_CPUS="64"), tmp_path / "ledger", tmp_path / "word"
    program = f'echo "$HOLDFAST_JOB_NAME" >> {ledger}; until [ -e {word} ]; do sleep 0.1; done'
    try:
        client = server.start()
        good, (kube, array, job_set) = submit_job(client, "good", program), submit_each_kind(client, "good", program)
        victims = submit_victims(client, FAILS_ONCE)
        wait_until(lambda: is_running(client), "all programs")
        client.cordon(next(iter(client.nodes())).name)
        client.close()
        server.end()
        damage(f"sqlite:///{server.data}/holdfast.db", victims)
        with closing(open_store(server.data / "holdfast.db")) as store:
            client = server.start()
            damaged = sum(map(len, LEFT_ALONE.values()))
            wait_until(lambda: len(store.quarantined()) >= damaged, "the quarantine")
            check(client, victims, store.quarantined().keys())
            word.touch()
            client.uncordon(next(iter(client.nodes())).name)
            late = submit_job(client, "late", program)
            for one in (good, kube, late):
                until(client, one, lambda job: job.state == "Succeeded")
            wait_until(lambda: client.array(array).state == "Succeeded", "the end of the array")
            wait_until(lambda: client.job_set(job_set).state == "Completed", "the end of the set")
            assert sorted(ledger.read_text().split()) == [
                "good", "good-array-0", "good-array-1", "good-kube", "good-set-w-0", "late",
            ]  # fmt: skip
            client.close()
    finally:
        server.clean_up()


def is_running(client: Client) -> bool:
    """Whether everything runs that is to run on, after its failure if it has one."""
    jobs = [job for job in client.jobs() if job.name != "told"]
    return all(
        job.state == "Running" and (job.attempt > 1 or not re.match(r"bad-(?!workloads)", job.name)) for job in jobs
    )


OF_JOBS = ("get job", "describe job", "attempts", "logs", "events", "hold", "release", "retry", "cancel")
OF_OWNERS = ("get", "describe", "why", "logs", "events", "hold", "release", "cancel", "delete")


@pytest.mark.parametrize("served", [False, True])
def test_every_command_says_what_is_damaged_and_what_to_do(server: Server, *, served: bool) -> None:
    client = server.start()
    good = submit_job(client, "good", "sleep 600")
    spec, counters = (submit_job(client, name, "echo seen; sleep 600") for name in ("bad-spec", "bad-counters"))
    kube, array, job_set = submit_each_kind(client, "bad", "sleep 600")
    wait_until(lambda: all(job.state == "Running" for job in client.jobs(tasks=True)), "all programs")
    client.close()
    server.end()
    with closing(sqlite3.connect(server.data / "holdfast.db")) as database:
        of_spec = "UPDATE specs SET body = '{' WHERE digest = (SELECT spec FROM jobs WHERE id = ?)"
        assert database.execute(of_spec, (spec,)).rowcount == 1
        assert database.execute("UPDATE jobs SET counters = '{' WHERE id = ?", (counters,)).rowcount == 1
        state = "UPDATE workloads SET state = '{' WHERE id IN (?, ?, ?)"
        assert database.execute(state, (kube, array, job_set)).rowcount == 3
        database.commit()
    if served:
        server.start().close()
    said = {}
    for verb in OF_JOBS:
        for key in (spec, counters, kube):
            said[verb, key] = server.run(*verb.split(), key)
    for verb in OF_OWNERS:
        for noun, key in (("array", array), ("jobset", job_set)):
            said[verb, noun] = server.run(verb, noun, key)
    wrong = {
        words: ended.stderr
        for words, ended in said.items()
        if "unexpected error" in ended.stderr
        or ("Traceback" in ended.stderr and "was quarantined" not in ended.stderr)  # which is logged, with the reason
    }
    assert wrong == {}
    told = said["why", "array"].stderr
    assert "cannot be read" in told
    assert "restore it from a backup, or cancel or delete what cannot be read" in told
    assert said["delete", "array"].returncode == said["delete", "jobset"].returncode == 0
    assert f"job/{good}\n" in server.run("get", "jobs", "-o", "name").stdout
    client = server.client() if served else server.start()
    ends = {good: "Running", spec: "Cancelled", counters: "Cancelled", kube: "Cancelled"}
    wait_until(lambda: {key: client.job(key).state for key in ends} == ends, "the end of what is damaged")
    wait_until(lambda: not list(client.arrays()) and not list(client.job_sets()), "what is deleted to be gone")
    client.close()
