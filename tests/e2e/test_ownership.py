"""One process for one data directory and one database, whatever is deleted, copied or replaced under it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.errors import Unavailable
from tests.e2e.test_databases import Machine, all_succeeded, manifests, wait_until
from tests.e2e.test_disk_full import CHUNK, mounted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # servers that are killed, copied and denied their locks

SOON_S = 5.0
"""What is promised within a second, on a machine that is busy with other tests."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "data")
    yield made
    for process in made.programs():
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def readiness(machine: Machine, address: dict[str, str]) -> str:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{address['url']}/readyz", timeout=20).text
    return str(machine)


@pytest.mark.parametrize("deleted", [["lock"], ["lock", "identity"], ["lock", "identity", "holdfast.db.lock"]])
def test_deleting_locks_lets_no_second_server_write(machine: Machine, deleted: list[str], tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with machine.serving() as client:
        address = machine.address()
        job = client.submit({"name": "one", "shell": f"echo start >> {ledger}; sleep 60"}).id
        wait_until(ledger.exists)
        for name in deleted:
            (machine.data / name).unlink()
        wait_until(lambda: "was removed or replaced" in readiness(machine, address), within_s=SOON_S)
        with pytest.raises(Unavailable, match="was removed or replaced"):
            client.submit({"name": "lost", "shell": "true"})
        if len(deleted) < 3:
            refused = machine.run("up", "--port", "0")
            assert (refused.code, "is held by" in refused.err) == (5, True)
        else:
            with machine.serving() as second:
                second.submit({"name": "two", "shell": "true"})
                wait_until(lambda: second.job("two").state == "Succeeded")
                assert ledger.read_text().splitlines() == ["start"]
                second.cancel(job)
    if len(deleted) < 3:
        with machine.serving() as again:
            again.cancel(job)
            again.submit({"name": "two", "shell": "true"})
            wait_until(lambda: again.job("two").state == "Succeeded")


def test_a_database_file_has_one_server_whatever_directory_it_comes_from(machine: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path / "other", {"HOLDFAST_DATABASE": f"sqlite:///{machine.data}/holdfast.db"})
    with machine.serving() as client:
        client.submit_bulk(manifests(3))
        wait_until(lambda: all_succeeded(client, 3))
        assert machine.run("db", "backup", str(tmp_path / "copy")).code == 0
        for words in (["up", "--port", "0"], ["db", "restore", str(tmp_path / "copy")]):
            refused = other.run(*words)
            assert (refused.code, "holdfast.db is held by holdfast up" in refused.err) == (5, True)
        assert all_succeeded(client, 3)


def test_a_copy_of_a_directory_in_use_is_refused_and_works_once_the_original_is_idle(
    machine: Machine, tmp_path: Path
) -> None:
    copy = Machine(tmp_path / "copy")
    with machine.serving() as client:
        job = client.submit({"name": "stays", "shell": "sleep 60"}).id
        wait_until(lambda: client.job(job).state == "Running" and bool(machine.programs()))
        subprocess.run(["cp", "-a", machine.data, copy.data], check=True)
        running = [process.pid for process in machine.programs()]
        writing = [
            ["cancel", job],
            ["retry", job],
            ["run", "--detach", "--", "true"],
            ["db", "prune", "--older-than", "0s"],
        ]
        for words in (["run", "--", "true"], ["up", "--port", "0"], *writing):
            refused = copy.run(*words)
            assert (refused.code, f"is a copy of {machine.data}, which is in use" in refused.err) == (4, True)
        assert [process.pid for process in machine.programs()] == running
        assert "stays" in copy.run("get", "jobs").out
    held_by_its_programs = copy.run("run", "--", "true")
    assert (held_by_its_programs.code, "is a copy of" in held_by_its_programs.err) == (4, True)
    shutil.rmtree(copy.data)
    with machine.serving() as client:
        client.cancel(job)
        wait_until(lambda: client.job(job).state == "Cancelled")
    shutil.copytree(machine.data, copy.data, ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(machine.data)
    assert copy.run("run", "--", "true").code == 0
    word = json.loads((copy.data / "identity").read_text())["word"]
    assert copy.run("run", "--", "true").code == 0
    assert json.loads((copy.data / "identity").read_text())["word"] == word


def test_a_server_whose_directory_is_removed_takes_nothing_in_and_says_so(machine: Machine) -> None:
    with machine.serving() as client:
        address = machine.address()
        # At once, as no removal of one file after the other is while SQLite makes some of them again.
        shutil.rmtree(machine.data.rename(machine.data.with_name("removed")))
        wait_until(lambda: "was removed or replaced" in readiness(machine, address), within_s=SOON_S)
        with pytest.raises(Unavailable, match="was removed or replaced"):
            client.submit({"name": "lost", "shell": "true"})


def test_a_server_whose_database_is_replaced_takes_nothing_in_and_says_so(machine: Machine) -> None:
    with machine.serving() as client:
        client.submit_bulk(manifests(1))
        wait_until(lambda: all_succeeded(client, 1))
        database = machine.data / "holdfast.db"
        shutil.copy(database, machine.data / "other.db")
        (machine.data / "other.db").replace(database)
        with pytest.raises(Unavailable, match=r"holdfast\.db was removed or replaced"):
            client.submit({"name": "lost", "shell": "true"})


@pytest.mark.parametrize("loss", ["emptied", "removed", "its last writes removed"])
def test_a_database_that_lost_what_it_had_is_refused_until_a_backup_is_back(
    machine: Machine, tmp_path: Path, loss: str
) -> None:
    database, copy = machine.data / "holdfast.db", tmp_path / "copy"
    assert machine.run("run", "--", "true").code == 0
    assert machine.run("db", "backup", str(copy)).code == 0
    with machine.serving(end=signal.SIGKILL) as client:
        client.submit({"name": "late", "shell": "true"})
    for name in ("holdfast.db-wal", "holdfast.db-shm"):
        (machine.data / name).unlink()
    if loss == "emptied":
        database.write_bytes(b"")
    elif loss == "removed":
        database.unlink()
    for words in (["up", "--port", "0"], ["run", "--", "true"]):
        refused = machine.run(*words)
        assert refused.code in {1, 4}, refused
        assert "holdfast db restore" in refused.err
    assert machine.run("db", "restore", "--resume", str(copy)).code == 0
    assert machine.run("run", "--", "true").code == 0
    assert machine.run("get", "jobs", "-o", "name").out.count("\n") == 2


def test_run_on_a_damaged_database_ends_and_says_so(machine: Machine) -> None:
    assert machine.run("run", "--", "true").code == 0
    database = machine.data / "holdfast.db"
    pages = bytearray(database.read_bytes())
    for page in range(10, len(pages) // 4096):
        pages[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096
    database.write_bytes(pages)
    said = machine.run("run", "--", "true")
    assert (said.code, "is damaged" in said.err, "Traceback" in said.err) == (1, True, False)


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_up_where_nothing_can_be_written_is_an_error_in_words(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder) as is_small:
        if not is_small:
            pytest.skip("needs the right to mount a file system")
        (folder / "data").mkdir()
        if fault == "full":
            with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
                while ballast.write(CHUNK):
                    pass
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        said = Machine(folder / "data").run("up", "--port", "0")
    assert (said.code in {1, 5}, "Traceback" in said.err, "error: " in said.err) == (True, False, True), said.err


def test_files_of_the_data_directory_are_private_in_one_that_others_may_enter(machine: Machine) -> None:
    machine.data.mkdir(mode=0o755)
    assert machine.run("run", "--", "true").code == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in machine.data.iterdir() if path.is_file()}
    assert {modes[name] for name in ("lock", "identity", "holdfast.db", "holdfast.db.lock")} == {0o600}
