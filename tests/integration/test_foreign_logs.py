"""A SQLite file that was replaced by hand while the log of the former one lies beside it: nothing is mixed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.audit import Caller
from holdfast.domain.job import Queue
from holdfast.errors import Internal
from holdfast.storage.sql import open_store, upkeep
from tests import databases

if TYPE_CHECKING:
    from collections.abc import Callable

BY = Caller(Principal("tester"), 0.0, "", "")


def fill(path: Path, names: range, *, checkpoint: bool = False) -> None:
    with closing(open_store(path)) as store:
        for number in names:
            store.put_entry(Queue(f"q{number}" * 20))
    if checkpoint:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def queues(path: Path) -> int:
    with closing(open_store(path)) as store:
        return len(store.catalogue().queues)


def crash(path: Path, folder: Path, names: range) -> Path:
    """Leave a database as a process does that was killed after some more changes: with its log."""
    with closing(open_store(path)) as store:
        for number in names:
            store.put_entry(Queue(f"q{number}" * 20))
        shutil.copytree(path.parent, folder)
    left = folder / path.name
    assert Path(f"{left}-wal").stat().st_size > 0
    return left


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = databases.migrated(tmp_path / "data" / "holdfast.db")
    fill(path, range(10))
    return path


def in_place(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def moved(source: Path, target: Path) -> None:
    shutil.copyfile(source, target.with_name("fresh")).replace(target)


def backed_up(source: Path, target: Path) -> None:
    upkeep.back_up(source, target.with_name("backup"))
    target.with_name("backup").replace(target)


@pytest.mark.parametrize("replace", [in_place, moved, backed_up])
def test_the_log_of_another_file_is_refused_with_both_ways_out(
    made: Path, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    saved = Path(shutil.copyfile(made, tmp_path / "saved.db"))
    kept = queues(saved)
    fill(made, range(10, 40))
    left = crash(made, tmp_path / "crashed", range(40, 50))
    replace(saved, left)
    for _ in range(2):
        with pytest.raises(Internal, match="is not the log of") as refused:
            open_store(left)
        assert f"{left}-wal" in refused.value.message
        assert "holdfast db restore FILE" in str(refused.value.hint)
    other = tmp_path / "other"
    shutil.copytree(left.parent, other)
    upkeep.restore(other / left.name, saved, pause=None, caller=BY)
    assert queues(other / left.name) == kept
    Path(f"{left}-wal").rename(f"{left}-wal.old")
    assert queues(left) == kept


def test_a_file_that_is_newer_than_the_log_beside_it_is_refused(made: Path, tmp_path: Path) -> None:
    left = crash(made, tmp_path / "crashed", range(10, 20))
    fill(made, range(20, 60), checkpoint=True)
    shutil.copyfile(made, left)
    with pytest.raises(Internal, match="is not the log of"):
        open_store(left)


def test_what_belongs_together_is_opened_after_a_crash_and_wherever_it_was_copied(made: Path, tmp_path: Path) -> None:
    left = crash(made, tmp_path / "crashed", range(10, 20))
    shutil.copytree(left.parent, tmp_path / "elsewhere")
    assert queues(tmp_path / "elsewhere" / left.name) == queues(left) == 20 + 1
    with closing(open_store(made)) as store:
        for number in range(20, 300):  # over checkpoints, while others look
            store.put_entry(Queue(f"q{number}" * 400))
            if number % 20 == 0:
                upkeep.examine(made)
        again = tmp_path / "again"
        shutil.copytree(made.parent, again)
    assert queues(again / made.name) == 301
