"""Iris' own server beside ours: each answers the same calls of its client, and what differs is in a table."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.iris_calls import CALLS
from tests.e2e.iris_stage import Iris, door
from tests.e2e.iris_table import TABLE
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.iris_stage import IrisServer

__all__ = ["door"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fluster.md"
BEGINS = "Deviations from Iris' own server"
CLUSTER = """
import os, sys
from iris.cluster.local_cluster import LocalCluster, make_local_cluster_config
cluster = LocalCluster(make_local_cluster_config(2))  # whose files go with it
print(cluster.start(), flush=True)
sys.stdin.read()
os._exit(0)
"""


@contextmanager
def upstream(home: Path) -> Iterator[Iris]:
    """Run upstream's own server, of the wheel of the client."""
    home.mkdir()
    with (home / "log").open("wb") as log:
        running = subprocess.Popen(
            [python_of("iris"), "-c", CLUSTER],
            env={**os.environ, "HOME": str(home), "TMPDIR": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert running.stdout is not None
    try:
        url = running.stdout.readline().strip()
        assert url, (home / "log").read_text()
        yield Iris(url, home)
    finally:
        running.communicate(timeout=60)


def test_the_table_of_the_page_is_the_one_that_is_tested() -> None:
    after = PAGE.read_text().partition(BEGINS)[2]
    rows = [line.strip("| ").split(" | ") for line in after.splitlines() if line.startswith("| ")][2:]
    assert rows == [[row.of, row.theirs, row.here, row.why] for row in TABLE]
    assert [name for name, count in Counter(name for row in TABLE for name in row.shown).items() if count > 1] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_iris_own_server_answers_the_same_calls_alike_but_for_what_is_in_the_table(door: IrisServer) -> None:
    ours = door.iris()
    with upstream(door.folder / "upstream") as beside:
        asked = beside.begin(CALLS)
        here = ours(CALLS, within_s=500)
        said, errors = asked.communicate(timeout=500)
        assert asked.returncode == 0, errors
    there = beside.told(said)
    assert len(there) > 150
    assert there.keys() == here.keys()
    different = {name: (there[name], here[name]) for name in there if there[name] != here[name]}
    listed = {name: pair for row in TABLE for name, pair in row.shown.items()}
    assert different == listed
