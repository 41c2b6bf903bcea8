"""Server, shim, supervisors and programs killed, stopped and resumed at random, and a ledger that the programs keep."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.errors import HoldfastError
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView
    from tests.e2e.server import Server

SCRIPT = """
me="$HOLDFAST_JOB_NAME $HOLDFAST_ATTEMPT $$"
echo "begins $me $(date +%s.%N)" >> {ledger}
sleep 0.{length}
echo "ends $me $(date +%s.%N)" >> {ledger}
"""
IN_FLIGHT = 16
MOST_SUSPENDED_S = 2.0


class Chaos:
    """One server, and what is done to it."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.client: Client = server.start()
        self.dice = random.Random(seed)  # noqa: S311 - so that a story can be told again
        self.done: Counter[str] = Counter()
        self.kinds: tuple[Callable[[], None], ...] = (
            self.kill_server,
            self.kill_shim,
            self.kill_supervisor,
            self.kill_program,
            self.suspend_server,
            self.suspend_shim,
            self.suspend_supervisor,
            self.kill_server_and_shim,
            self.kill_fork,
        )

    def round(self) -> None:
        """Do one thing, drawn at random, and let a little time pass."""
        kind = self.dice.choice(self.kinds)
        self.done[kind.__name__] += 1
        with suppress(psutil.Error, ProcessLookupError, IndexError):
            kind()
        self.pause(self.dice.uniform(0.0, 0.3))

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def one_of(self, name: str) -> psutil.Process:
        return self.dice.choice(self.server.holders(name))

    def restart(self) -> None:
        self.client.close()
        self.server.end()
        self.client = self.server.start()

    def kill_server(self) -> None:
        self.restart()

    def kill_shim(self) -> None:
        self.one_of("holdfast-shim").kill()

    def kill_supervisor(self) -> None:
        self.one_of("holdfast-run").kill()

    def kill_fork(self) -> None:
        self.one_of("holdfast-fork").kill()

    def kill_program(self) -> None:
        self.dice.choice([one for one in self.server.programs() if os.getsid(one.pid) == one.pid]).kill()

    def kill_server_and_shim(self) -> None:
        shim = self.one_of("holdfast-shim")
        self.client.close()
        self.server.end()
        shim.kill()
        self.client = self.server.start()

    def suspended(self, process: psutil.Process) -> None:
        process.suspend()
        self.pause(self.dice.uniform(0.1, MOST_SUSPENDED_S))
        process.resume()

    def suspend_server(self) -> None:
        assert self.server.process is not None
        self.suspended(psutil.Process(self.server.process.pid))

    def suspend_shim(self) -> None:
        self.suspended(self.one_of("holdfast-shim"))

    def suspend_supervisor(self) -> None:
        self.one_of("holdfast-run").suspend()  # nobody resumes it but the shim


def read(ledger: Path) -> dict[str, list[tuple[str, int, int, float]]]:
    """Read what the programs wrote, by job: word, attempt, process and time."""
    told: dict[str, list[tuple[str, int, int, float]]] = {}
    for line in ledger.read_text().splitlines():
        word, name, attempt, pid, at = line.split()
        told.setdefault(name, []).append((word, int(attempt), int(pid), float(at)))
    return told


def check(name: str, entries: list[tuple[str, int, int, float]], failures: int) -> None:
    """See that no two programs of a job overlapped, none ran twice, and none ran again after one had ended well."""
    begins = [(attempt, pid) for word, attempt, pid, _ in entries if word == "begins"]
    assert len({attempt for attempt, _ in begins}) == len(begins), f"{name} ran an attempt twice: {entries}"
    ends = [attempt for word, attempt, _, _ in entries if word == "ends"]
    assert len(ends) <= 1 + failures, f"{name} ended more than once: {entries}"
    assert not ends or ends[-1] == max(attempt for attempt, _ in begins), f"{name} went on after its end: {entries}"


def was_cut_off(attempt: AttemptView) -> bool:
    """Whether a program may have written its end and not be known to have ended well.

    It was killed just then, or nobody knows how it ended: what watches it was stopped, and killed before it saw that.
    """
    return attempt.signal == signal.SIGKILL or "EndUnknown" in attempt.conditions


def submit_all(chaos: Chaos, ledger: Path, jobs: int) -> None:
    manifests = [
        {
            "name": f"n{number}",
            "shell": SCRIPT.format(ledger=ledger, length=number % 9 + 1),
            "resources": {"cpu": 0.1},
            "retry": {"rules": [{"name": "killed", "action": "Retry", "onSignals": ["SIGKILL"]}]},
        }
        for number in range(jobs)
    ]
    for first in range(0, jobs, 500):
        chaos.client.submit_bulk(manifests[first : first + 500])


def live_through(server: Server, tmp_path: Path, *, rounds: int, jobs: int, seed: int) -> Counter[str]:
    ledger = tmp_path / "ledger"
    ledger.touch()
    server.environ = {**server.environ, "HOLDFAST_CPUS": str(IN_FLIGHT / 10)}
    chaos = Chaos(server, seed)
    try:
        submit_all(chaos, ledger, jobs)
        for _ in range(rounds):
            chaos.round()

        def over() -> bool:
            with suppress(HoldfastError):
                return sum(1 for view in chaos.client.jobs() if view.state == "Succeeded") == jobs
            return False

        wait_until(over, "every job has succeeded", within_s=600)
        jobs_seen = chaos.client.full_jobs()
        killed = {job.name: sum(map(was_cut_off, job.attempts)) for job in jobs_seen}
    finally:
        chaos.client.close()
    told = read(ledger)
    assert len(told) == jobs
    for name, entries in told.items():
        check(name, entries, failures=killed[name])
    assert not server.programs()
    return chaos.done


@pytest.mark.timeout(300)
def test_random_deaths_and_pauses_lose_no_job_and_double_no_program(server: Server, tmp_path: Path) -> None:
    live_through(server, tmp_path, rounds=12, jobs=80, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_random_deaths_and_pauses_under_two_thousand_jobs(server: Server, tmp_path: Path) -> None:
    done = live_through(server, tmp_path, rounds=200, jobs=2000, seed=int(os.environ.get("CHAOS_SEED", "7")))
    print(sorted(done.items()))  # noqa: T201 - shown with -s
    assert len(done) == 9
