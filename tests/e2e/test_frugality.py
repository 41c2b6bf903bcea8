"""What costs next to nothing: a server that has nothing to do, and a command that asks a server."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import databases
from tests.e2e.server import Server, wait_until
from tests.unit.test_cli_lines import HEAVY

if TYPE_CHECKING:
    from holdfast.client import Client

pytestmark = pytest.mark.slow  # a server is watched while nothing happens

WEB = frozenset({"fastapi", "starlette", "uvicorn", "prometheus_client", "anyio", "h11"})
_TURNS = 10
_MOST_PER_S = 6.0
_MOST_WAKES_PER_S = 35
_MOST_MODULES = 391
"""A few more than was measured, 381."""
UNNEEDED = frozenset(
    {"re2", "holdfast.domain.job", "holdfast.domain.policy.model", "holdfast.dialects.reading", "holdfast.app.settings"}
)
"""What judges and reads work, which is the server's to do."""
_MOST_MODULES_ALONE = {"get": 837, "run": 915}
"""A few more than was measured, 817 and 902, on a database that is there."""
_ASKING = """
import sys
from holdfast.cli.context import Cli
from holdfast.cli.main import run_line

assert run_line(sys.argv[1:], Cli()) == 0
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def test_an_idle_server_takes_a_turn_once_in_a_while(server: Server) -> None:
    with server.start() as client:
        client.submit({"command": ["true"]})
        wait_until(lambda: list(client.jobs(states=["Succeeded"])), "the job's end")
        before, began = _turns(client), time.monotonic()
        wait_until(lambda: _turns(client) >= before + _TURNS, "a few turns")
        assert time.monotonic() - began > _TURNS / _MOST_PER_S


def test_a_server_that_was_idle_for_a_while_wakes_up_seldom(server: Server) -> None:
    with server.start():
        assert server.process is not None
        tasks = Path(f"/proc/{server.process.pid}/task")
        wait_until(lambda: _wakes_in_a_second(tasks) < _MOST_WAKES_PER_S, "a second with few wake-ups")


def _wakes_in_a_second(tasks: Path) -> int:
    before = _wakes(tasks)
    threading.Event().wait(1.0)
    return _wakes(tasks) - before


def _wakes(tasks: Path) -> int:
    """Count how often the threads of a process have waited for something."""
    told = [(task / "status").read_text() for task in tasks.iterdir()]
    return sum(
        int(one) for text in told for one in re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)
    )


def _turns(client: Client) -> int:
    found = re.search(r"^holdfast_tick_seconds_count (\S+)", client.metrics(), re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def test_a_command_that_asks_a_server_imports_little(server: Server) -> None:
    """Imports take most of a command's time."""
    with server.start():
        loaded = _imported(server, "get", "jobs")
    assert HEAVY & {name.split(".")[0] for name in loaded} == {"pydantic"}
    assert UNNEEDED & {*loaded} == set()
    assert len(loaded) < _MOST_MODULES


@pytest.mark.parametrize("words", [("get", "jobs"), ("run", "--", "true")])
def test_a_command_without_a_server_imports_no_web_framework(server: Server, words: tuple[str, ...]) -> None:
    databases.begin(server.data)
    loaded = _imported(server, *words)
    assert WEB & {name.split(".")[0] for name in loaded} == set()
    assert len(loaded) < _MOST_MODULES_ALONE[words[0]]


def _imported(server: Server, *words: str) -> list[str]:
    """Run a command line, and return what its process has imported by its end."""
    command = [sys.executable, "-c", _ASKING, *words]
    return subprocess.run(command, env=server.environ, capture_output=True, text=True, check=True).stderr.split()
