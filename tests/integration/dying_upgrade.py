"""Brings a database up in children that die, each a little later than the one before, until one gets through.

They die right before a statement that changes something, or right after. Prints how many died, or what one of them
left behind. With a number, only the child of that number; with a folder, there are some steps to run.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import MetaData, event, select

from holdfast.storage.sql import migrations
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.migrations import steps
from tests.schemas import go_on

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = 3
A_STRIDE = 7
"""Of what makes a database, which are many statements: odd, so that some die before and some after theirs."""
_CHANGES = ("CREATE", "INSERT", "ALTER", "UPDATE")


def contents(url: str) -> dict[str, Sequence[str]]:
    """Read everything that is in a database: the columns of each table, and its rows."""
    with closing(Database(url)) as database, database.reading() as connection:
        shape = MetaData()
        shape.reflect(connection)
        return {
            name: [f"{one.name} {one.type}" for one in table.columns]
            + sorted(map(repr, connection.execute(select(table))))
            for name, table in shape.tables.items()
        }


def die(number: int, url: str) -> None:
    """Bring a database up, and be killed before (even numbers) or after (odd ones) a change."""
    database, changes = Database(url), iter(range(number // 2))

    def count_down(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().startswith(_CHANGES) and next(changes, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    when = "after_cursor_execute" if number % 2 else "before_cursor_execute"
    event.listen(database._writers, when, count_down)  # noqa: SLF001 - where statements go
    migrations.bring_up(database)
    database.close()


def outcome(url: str, stride: int) -> str:
    """Let children die until one gets through; with a stride not at each change."""
    steps.configuration()  # loaded once, for all of them
    before = contents(url)
    for number in count(step=stride):
        child = os.fork()
        if not child:
            die(number, url)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended != -signal.SIGKILL:
            return str(number) if ended == 0 else f"it failed after {number} deaths"
        if contents(url) != before:
            return f"something is left of number {number}"
    raise AssertionError


if __name__ == "__main__":
    place, number, *folders = sys.argv[1:]
    for each in folders:
        go_on(Path(each), STEPS)
    if number:
        die(int(number), place)
    else:
        sys.stdout.write(outcome(place, 1 if folders else A_STRIDE))
