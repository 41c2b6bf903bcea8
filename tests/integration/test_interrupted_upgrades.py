"""An upgrade whose process is killed at each version on the way, and several that upgrade at one moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.ports.store import JobFilter
from holdfast.storage.sql import migrations, open_store
from holdfast.storage.sql.engine import Database
from tests.integration.dying_upgrade import contents
from tests.integration.test_migrations import fill_as_of_0011

if TYPE_CHECKING:
    from collections.abc import Callable

UPGRADE = Path(__file__).with_name("dying_upgrade.py")
TIMEOUT_S = 300.0
NEVER = 2 * int(migrations.HEAD)
"""More versions than there are: nobody dies."""


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Makes databases as a version before left them; returns the URL of each."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgresql" else None

    def made(name: str) -> str:
        url = f"sqlite:///{tmp_path}/{name}.db" if server is None else server.empty()
        with closing(Database(url)) as database, database.writing() as connection:
            fill_as_of_0011(connection)
        return url

    return made


def upgrading(url: str, *number: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(UPGRADE), url, *number]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow  # some thirty deaths
def test_an_upgrade_that_is_killed_at_any_version_leaves_nothing_and_the_next_makes_it(
    old: Callable[[str], str],
) -> None:
    killed, whole = old("killed"), old("whole")
    migrations.upgrade(whole)
    said, complaints = upgrading(killed).communicate(timeout=TIMEOUT_S)
    assert said == str(2 * (int(migrations.HEAD) - 11)), said + complaints
    assert contents(killed) == contents(whole)


def test_of_several_that_upgrade_at_one_moment_some_may_die_and_the_others_make_it_once(
    old: Callable[[str], str],
) -> None:
    url, whole = old("shared"), old("whole")
    migrations.upgrade(whole)
    dying = [upgrading(url, str(number)) for number in (4, 21)]
    living = [upgrading(url, str(NEVER)) for _ in range(2)]
    for each in living:
        assert each.communicate(timeout=TIMEOUT_S)[1] == ""
        assert each.returncode == 0
    for each in dying:
        each.communicate(timeout=TIMEOUT_S)
        assert each.returncode in {0, -signal.SIGKILL}, "whoever comes last finds it done"
    assert contents(url) == contents(whole)
    with closing(open_store(url)) as store:
        assert [row.name for row in store.workloads(JobSet)] == ["s1"]
        assert [job.id for job in store.jobs(JobFilter())] == ["s1-0", "s1-1", "s2-0"]
