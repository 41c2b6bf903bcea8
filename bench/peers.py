"""Trivial jobs through a real server by its command line, beside others that run many programs, in one run.

Measured in turn: the bare spawn rate; HyperQueue, by its Python interface, as its wheel has no command, with files
of what each task prints; GNU parallel with a job log; Holdfast with and without memory limits. What cannot be
had is said. At most eight are in flight. Submitting and waiting for the last count, starting servers does not.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.baseline import IN_FLIGHT, TRUE, spawn_rate
from bench.server import HOLDFAST, serving, spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COUNT = 5000
_HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

count, folder = int(sys.argv[1]), sys.argv[2]
with LocalCluster(folder + "/server", WorkerConfig(cores=int(sys.argv[3]))) as cluster:
    client, job = cluster.client(), Job(default_workdir=folder)
    began = time.perf_counter()
    for _ in range(count):
        job.program(["/bin/true"])
    assert client.wait_for_jobs([client.submit(job)])
    print(count / (time.perf_counter() - began))
"""


class Absent(Exception):
    """A peer cannot be had here."""


class Ours(NamedTuple):
    """What Holdfast took."""

    per_s: float
    cpu_ms: float
    """Processor time for each job of the server, the shim and what it forks, without the program's own."""
    server_ms: float
    """The server's part of it."""


def hyperqueue(folder: Path, count: int = COUNT) -> float:
    """Return tasks per second.

    Raises:
        Absent: Its wheel cannot be installed.
    """
    place = folder / "hyperqueue"
    venv.create(place / "venv", with_pip=True)
    python = str(place / "venv/bin/python")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "hyperqueue")
    if subprocess.run(pip, check=False, capture_output=True).returncode:
        message = "pip install hyperqueue failed"
        raise Absent(message)
    words = (python, "-c", _HYPERQUEUE, str(count), str(place), str(IN_FLIGHT))
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=place)
    return float(done.stdout.split()[-1])


def gnu_parallel(folder: Path, count: int = COUNT) -> float:
    """Return jobs per second; without the command, its Debian package is unpacked for the occasion.

    Raises:
        Absent: It cannot be had.
    """
    place = folder / "parallel"
    place.mkdir()
    command = shutil.which("parallel") or _unpacked(place)
    numbers = "".join(f"{number}\n" for number in range(count))
    words = (command, f"-j{IN_FLIGHT}", "-N0", "--will-cite", "--joblog", str(place / "log"), TRUE)
    began = time.perf_counter()
    subprocess.run(words, input=numbers, text=True, check=True, capture_output=True)
    return count / (time.perf_counter() - began)


def _unpacked(place: Path) -> str:
    try:
        subprocess.run(("apt-get", "download", "parallel"), cwd=place, check=True, capture_output=True)
        subprocess.run(("dpkg", "-x", *place.glob("*.deb"), place), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"there is no command parallel, and its package cannot be had: {error}"
        raise Absent(message) from error
    return str(place / "usr/bin/parallel")


def holdfast(folder: Path, *, count: int = COUNT, memory: str | None = None) -> Ours:
    """Measure jobs submitted and waited for by the command line."""
    jobs = folder / "jobs.jsonl"
    resources = {"cpu": 1, **({"memory": memory} if memory else {})}
    one = json.dumps({"name": "true", "command": [TRUE], "resources": resources})
    jobs.write_text(f"{one}\n" * count)
    programs_ms = program_ms()
    with serving(folder / f"data-{memory}") as (environment, server):
        _submitted(environment, jobs, 100)  # the first supervisors and statements are made
        earlier = spent(server, environment)
        began = time.perf_counter()
        _submitted(environment, jobs, count)
        took = time.perf_counter() - began
        now = spent(server, environment)
    server_s, others_s = now[0] - earlier[0], now[1] - earlier[1]
    return Ours(count / took, (server_s + others_s) / count * 1000 - programs_ms, server_s / count * 1000)


class Kind(NamedTuple):
    """How Holdfast is to run them, and what is expected of it."""

    name: str
    memory: str | None
    bars: Mapping[str, float]
    of_spawn: float
    cpu: str


_HQ, _GNU = "HyperQueue with logs", "GNU parallel with a job log"
PEERS: Mapping[str, Callable[[Path, int], float]] = {_HQ: hyperqueue, _GNU: gnu_parallel}
KINDS = (
    Kind("Holdfast, durable, with logs", None, {_HQ: 1.5, _GNU: 3.0}, 0.35, "<= 0.9 ms"),
    Kind("Holdfast, and a memory limit for each", "64Mi", {_HQ: 1.0}, 0.25, ""),
)


def _submitted(environment: dict[str, str], jobs: Path, count: int) -> None:
    lines = "".join(jobs.read_text().splitlines(keepends=True)[:count])
    words = (*HOLDFAST, "submit", "-f", "-", "--wait", "-o", "id")
    subprocess.run(words, env=environment, input=lines, text=True, check=True, stdout=subprocess.DEVNULL)


def program_ms(count: int = 2000) -> float:
    """Return the processor time of the program alone, as its parent is charged for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    spawn_rate(count)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count * 1000


def measure(count: int = COUNT) -> Iterator[tuple[str, float | str, str, str]]:
    """Yield what was measured, its value or why there is none, its unit, and what it should be."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        folder, spawn = Path(name), spawn_rate(count)
        yield f"baseline: posix_spawn and wait, {IN_FLIGHT} in flight", spawn, "/s", ""
        rates = {}
        for peer, run in PEERS.items():
            try:
                rates[peer] = run(folder, count)
                yield f"{peer}: jobs of /bin/true", rates[peer], "/s", ""
            except Absent as error:
                yield peer, str(error), "", ""
        for kind in KINDS:
            ours, after = holdfast(folder, count=count, memory=kind.memory), spawn_rate(count)
            yield from _compared(kind, ours, rates, (spawn + after) / 2)
            spawn = after


def _compared(
    kind: Kind, ours: Ours, rates: Mapping[str, float], spawn: float
) -> Iterator[tuple[str, float | str, str, str]]:
    yield f"{kind.name}: jobs of /bin/true", ours.per_s, "/s", ""
    for peer in kind.bars.keys() & rates.keys():
        yield f"the same, beside {peer}", ours.per_s / rates[peer], "x", f">= {kind.bars[peer]:g} x"
    yield "the same, beside the spawn rate", ours.per_s / spawn, "x", f">= {kind.of_spawn} x"
    yield "processor time of server and shim for each", ours.cpu_ms, "ms", kind.cpu
    yield "of that the server's", ours.server_ms, "ms", ""


if __name__ == "__main__":
    for what, value, unit, bar in measure():
        print(f"{what:<62} {value if isinstance(value, str) else format(value, '10,.2f')} {unit:<4} {bar}".rstrip())
