"""Calls through ``holdfast.Executor`` beside plain jobs, in one run and in turn, by a real server.

Plain jobs are those of ``/bin/true``, and of a Python that does nothing: a call needs a Python, too. Submitting and
waiting for the last count. Twice each, in turn; the better one counts, as a busy machine only makes things slower.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from bench.server import serving

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 1000
CHUNK = 10
_ROUNDS = 2


def measure(count: int = COUNT) -> dict[str, float]:
    """Return rates per second: ``true``, ``python``, ``calls``, ``chunks`` and ``packed``, submitted one by one."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "data"):
        server = json.loads((Path(folder) / "data" / "server.json").read_text())
        with holdfast.Client(server["url"], server["token"], directory=Path(folder) / "calls") as client:
            kinds: dict[str, Callable[[], None]] = {
                "true": lambda: _plain(client, ["/bin/true"], count),
                "python": lambda: _plain(client, [sys.executable, "-c", "pass"], count),
                "calls": lambda: _calls(client, count, 1),
                "chunks": lambda: _calls(client, count, CHUNK),
                "packed": lambda: _packed(client, count),
            }
            found = dict.fromkeys(kinds, 0.0)
            for name, run in [*kinds.items()] * _ROUNDS:
                began = time.perf_counter()
                run()
                found[name] = max(found[name], count / (time.perf_counter() - began))
            return found


def _plain(client: holdfast.Client, command: list[str], count: int) -> None:
    found = client.api.submit_bulk([{"name": "plain", "command": command}] * count)
    holdfast.wait(holdfast.Job[None](client.api, item.id or "", "plain") for item in found.items)


def _calls(client: holdfast.Client, count: int, chunk: int) -> None:
    with holdfast.Executor(client) as executor:
        list(executor.map(math.sqrt, range(count), chunksize=chunk))


def _packed(client: holdfast.Client, count: int) -> None:
    with holdfast.PackedExecutor(client) as executor:
        for future in [executor.submit(math.sqrt, number) for number in range(count)]:
            future.result()


if __name__ == "__main__":
    for name, rate in measure(int(sys.argv[1]) if sys.argv[1:] else COUNT).items():
        print(f"{name:8} {rate:8.1f} /s")
