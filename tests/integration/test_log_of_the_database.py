"""The write-ahead log of a SQLite file: a process that uses it keeps its locks, and notices when the log is gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.domain.job import Queue
from holdfast.errors import Unavailable
from holdfast.storage.sql import open_store, upkeep
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.sqlite_file import BESIDE
from tests import databases

READS = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM entries').fetchone()[0])"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return databases.migrated(tmp_path / "holdfast.db")


def is_locked(path: Path) -> bool:
    """Whether this process holds a POSIX lock on a file."""
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    inodes = [line[5].rpartition(":")[2] for line in lines if line[1] == "POSIX" and line[4] == str(os.getpid())]
    return str(path.stat().st_ino) in inodes


def read_by_another_process(path: Path) -> int:
    return int(subprocess.run([sys.executable, "-c", READS, path], capture_output=True, check=True).stdout)


def interrupt(database: Database) -> None:
    with database.writing() as connection:
        connection.invalidate()  # as SQLAlchemy does when a person interrupts a statement
        raise KeyboardInterrupt


def test_whatever_a_process_does_with_its_database_it_keeps_its_locks_on_the_file(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(open_store(path)) as store:
        for number, place in enumerate((path, link)):
            store.put_entry(Queue(f"before-{number}"))
            upkeep.examine(place)
            upkeep.leader(place, 0.0)
            upkeep.refuse_damage(place)
            upkeep.refuse_loss(place, epoch=0)
            upkeep.back_up(place, tmp_path / f"copy-{number}")
            open_store(place).close()
            assert is_locked(path)
            known = read_by_another_process(path)
            store.put_entry(Queue(f"after-{number}"))
            assert read_by_another_process(path) == known + 1
    assert not is_locked(path)


def test_connections_that_are_opened_at_once_keep_the_locks_on_the_file(path: Path) -> None:
    count = read_by_another_process(path)
    crashed = path.with_name("crashed.db")
    with closing(open_store(path)) as store:
        store.put_entry(Queue("in-the-log"))
        for name in ("", *BESIDE):  # as a process leaves them that was killed
            shutil.copyfile(f"{path}{name}", f"{crashed}{name}")
    start, opened = threading.Barrier(8), []

    def open_one() -> None:
        start.wait()
        opened.append(open_store(crashed))

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened[1:]:
        store.close()
    assert is_locked(crashed)
    opened[0].put_entry(Queue("later"))
    assert read_by_another_process(crashed) == count + 2
    opened[0].close()


@pytest.mark.parametrize("names", [["-wal"], ["-shm"], ["-wal", "-shm"]])
@pytest.mark.parametrize("replaced", [False, True])
def test_who_writes_notices_that_the_log_is_not_the_one_any_more_and_saves_what_was_in_it(
    path: Path, names: list[str], *, replaced: bool
) -> None:
    store = open_store(path)
    store.put_entry(Queue("before"))
    for name in names:
        beside = Path(f"{path}{name}")
        content = beside.read_bytes()
        beside.unlink()
        if replaced:
            beside.write_bytes(content)
    for write in (lambda: store.put_entry(Queue("after")), store.mark):
        with pytest.raises(Unavailable, match="was removed or replaced while it is in use") as refused:
            write()
        assert f"{path}{names[0]}" in refused.value.message
        assert "holdfast down" in str(refused.value.hint)
    store.close()
    with closing(open_store(path)) as again:
        known = [str(queue) for queue in again.catalogue().queues]
    assert ("before" in known, "after" in known) == (True, False)


def test_a_log_that_the_last_connection_took_along_is_not_missed(path: Path) -> None:
    with closing(Database(path)) as database:
        with database.writing() as connection:
            connection.exec_driver_sql("CREATE TABLE word (letters)")
        with pytest.raises(KeyboardInterrupt):
            interrupt(database)
        assert not Path(f"{path}-wal").exists()
        for _ in range(2):
            with database.writing() as connection:
                connection.exec_driver_sql("INSERT INTO word VALUES ('a')")
