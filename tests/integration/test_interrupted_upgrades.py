"""A database whose making or upgrade is killed at each change on the way, and several that make one at one moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.ports.store import JobFilter
from holdfast.storage.sql import migrations, open_store
from tests.integration.dying_upgrade import STEPS, contents
from tests.schemas import fill

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300.0
NEVER = "1000"
"""More changes than there are: nobody dies."""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Makes databases with nothing in them; returns the URL of each."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgresql" else None
    return lambda name: f"sqlite:///{tmp_path / name}.db" if server is None else server.empty()


def upgrading(url: str, number: str = "", *folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.integration.dying_upgrade", url, number, *folder]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.slow  # some hundred deaths
@pytest.mark.parametrize("there", [False, True])
def test_what_is_killed_at_any_change_leaves_nothing_and_the_next_makes_it(
    empty: Callable[[str], str], tmp_path: Path, *, there: bool
) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    urls = killed, whole = empty("killed"), empty("whole")
    for url in urls if there else ():
        fill(url)
    more = (str(folder),) if there else ()
    assert upgrading(whole, NEVER, *more).communicate(timeout=TIMEOUT_S) == ("", "")
    said, complaints = upgrading(killed, "", *more).communicate(timeout=TIMEOUT_S)
    assert said.isdecimal(), said + complaints
    assert int(said) >= 2 * (STEPS if there else len(contents(whole))), "each is died before and after"
    assert contents(killed) == contents(whole)


def test_of_several_that_make_one_at_one_moment_some_may_die_and_the_others_make_it_once(
    empty: Callable[[str], str],
) -> None:
    url, whole = empty("shared"), empty("whole")
    migrations.upgrade(whole)
    dying = [upgrading(url, str(number)) for number in (4, 21)]
    living = [upgrading(url, NEVER) for _ in range(2)]
    for each in living:
        assert each.communicate(timeout=TIMEOUT_S)[1] == ""
        assert each.returncode == 0
    for each in dying:
        each.communicate(timeout=TIMEOUT_S)
        assert each.returncode in {0, -signal.SIGKILL}, "whoever comes last finds it done"
    assert contents(url) == contents(whole)
    with closing(open_store(url)) as store:
        assert store.jobs(JobFilter()) == []
