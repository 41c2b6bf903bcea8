"""A server killed at random instants loses no job and runs none twice; the programs themselves keep the books."""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import Conflict, Unavailable
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.wire.jobs import JobView

pytestmark = pytest.mark.slow  # twenty deaths of a server

SEED = 20
JOBS = 120
KILLS = 20
BATCH = 20
LIFE_S = 0.6
"""The longest life of a server from when it serves."""
YOUNG = 0.25
YOUNG_S = 1.2
"""Share of servers that are killed earlier: at most so long after their start as a process."""
PROGRAM = """
import os, signal, sys, time
ledger, span, plan = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(",")
rank, attempt = int(os.environ["HOLDFAST_RANK"]), int(os.environ["HOLDFAST_ATTEMPT"])
book = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def note(what, code):
    who = (os.environ["HOLDFAST_JOB_NAME"], attempt, rank, os.environ["HOLDFAST_ATTEMPT_UID"], os.getpid())
    os.write(book, " ".join(map(str, (what, *who, time.monotonic_ns(), code))).encode() + b"\\n")
def leave(code):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # who is ending by itself is not stopped as well
    note("end", code)
    os._exit(code)
signal.signal(signal.SIGTERM, lambda *_: leave(143))
note("start", 0)
time.sleep(span)
size, member = int(os.environ["HOLDFAST_SIZE"]), "start %s %d " % (os.environ["HOLDFAST_JOB_NAME"], attempt)
while size > 1 and sum(line.startswith(member) for line in open(ledger)) < size:
    time.sleep(0.02)  # as the members of a gang wait for each other; who is stopped before it can write is not seen
failing = size == 1 or rank == 1
leave(int(plan[min(attempt, len(plan)) - 1]) if failing else 0)
"""
NOW = {"initialDelay": "0s"}
SOON = {"initialDelay": "60ms", "multiplier": 1.5}

Line = dict[str, Any]


def kinds() -> tuple[Mapping[str, Any], ...]:
    """Return the kinds of jobs: what their attempts end with, what is asked for, and how the job should end."""
    retry = {"retryLimit": 4, "defaultAction": "Retry"}
    ask = {
        "rules": [
            {"name": "ask", "action": "Hold", "reason": "look", "onExitCodes": {"operator": "In", "values": [33]}}
        ]
    }
    return (
        {"plan": [0], "state": "Succeeded"},
        {"plan": [11, 12, 0], "state": "Succeeded", "spec": {"retry": {**retry, "backoff": SOON}}},
        {"plan": [41, 42], "state": "Failed", "spec": {"retry": {**retry, "retryLimit": 1, "backoff": NOW}}},
        {"plan": [21, 0], "state": "Succeeded", "spec": {"gang": 3, "retry": {**retry, "backoff": SOON}}},
        {"plan": [33, 0], "state": "Succeeded", "spec": {"retry": ask}},
        {"plan": [0], "state": "Succeeded", "spec": {"resources": {"cpu": 0.25, "memory": "256Mi"}}},
    )


def manifest(number: int, span: float, ledger: Path) -> dict[str, Any]:
    kind = kinds()[number % len(kinds())]
    plan = ",".join(map(str, kind["plan"]))
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(ledger), f"{span:.3f}", plan]
    usual = {"name": f"job-{number}", "command": command, "grace": "20s", "resources": {"cpu": 0.25}}
    return {**usual, **kind.get("spec", {})}


def read_ledger(path: Path) -> list[Line]:
    lines = []
    for text in path.read_text().splitlines():
        what, name, attempt, rank, uid, _, at, code = text.split(" ")
        lines.append(
            {"what": what, "job": name, "attempt": int(attempt), "rank": int(rank), "uid": uid}
            | {"at": int(at), "code": int(code)}
        )
    return lines


def spans(lines: Iterable[Line]) -> dict[tuple[str, int, int], tuple[Line, Line]]:
    """Pair each start with its end; nothing may be missing or there twice."""
    sides: dict[str, dict[tuple[str, int, int], Line]] = {"start": {}, "end": {}}
    for line in lines:
        key = (line["job"], line["attempt"], line["rank"])
        assert key not in sides[line["what"]], f"{line['what']} of {key} twice"
        sides[line["what"]][key] = line
    assert sides["start"].keys() == sides["end"].keys(), "a program that began did not end, or the other way round"
    assert all(sides["start"][key]["uid"] == sides["end"][key]["uid"] for key in sides["start"])
    return {key: (sides["start"][key], sides["end"][key]) for key in sides["start"]}


class Story:
    """Many jobs, and servers that come and go meanwhile."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.server = Server(folder, HOLDFAST_CPUS="2")
        self.ledger = folder / "ledger"
        self.dice = random.Random(seed)  # noqa: S311 - to be repeatable
        self.pause = threading.Event()

    def submit(self, client: Client, numbers: range, key: str) -> bool:
        """Submit a batch; may be called again with the same key after a server died over it."""
        items = [manifest(number, 0.05 + number * 37 % 80 / 100, self.ledger) for number in numbers]
        with suppress(Unavailable):
            client.submit_bulk(items, key=key)
            return True
        return False

    def live(self, waiting: list[tuple[range, str]]) -> None:
        """Let one server live for a random while, then kill it; it is handed one of the batches to be submitted."""
        process = self.server.spawn()
        dies_young = self.dice.random() < YOUNG
        if not dies_young:
            wait_until(self.server.serves, "a server that serves")
        killer = threading.Timer(self.dice.uniform(0.0, YOUNG_S if dies_young else LIFE_S), process.kill)
        killer.start()
        if not dies_young:
            with self.server.client() as client:
                if waiting and self.submit(client, *waiting[0]):
                    waiting.pop(0)
                self.release(client)
        killer.join()
        process.wait()

    def release(self, client: Client) -> None:
        with suppress(Unavailable):
            for job in client.jobs(states=["Held"]):
                with suppress(Conflict):  # released a moment ago, and taken in since the list was made
                    client.release(job.id)

    def finish(self) -> list[JobView]:
        """Let a last server live until everything has ended."""
        with self.server.start() as client:

            def is_over() -> bool:
                self.release(client)
                return Counter(job.state for job in client.jobs(states=["Succeeded", "Failed"])).total() == JOBS

            wait_until(is_over, "the end of all jobs", within_s=90)
            return list(client.full_jobs())


@pytest.mark.parametrize("seed", [SEED])
def test_twenty_kills_lose_no_job_and_run_none_twice(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path, seed)
    waiting = [(range(first, first + BATCH), f"batch {first}") for first in range(0, JOBS, BATCH)]
    try:
        kills = 0
        while kills < KILLS or waiting:  # on a busy machine a server may be killed before it takes a batch
            story.live(waiting)
            kills += 1
        jobs = story.finish()
    finally:
        story.server.clean_up()
    check(jobs, spans(read_ledger(story.ledger)))


def check(jobs: list[JobView], ran: Mapping[tuple[str, int, int], tuple[Line, Line]]) -> None:
    assert sorted(job.name for job in jobs) == sorted(f"job-{number}" for number in range(JOBS))
    by_job: dict[str, dict[int, list[tuple[Line, Line]]]] = defaultdict(lambda: defaultdict(list))
    for (name, attempt, _), span in ran.items():
        by_job[name][attempt].append(span)
    for job in jobs:
        kind = kinds()[int(job.name.removeprefix("job-")) % len(kinds())]
        attempts = by_job[job.name]
        assert job.state == kind["state"], f"{job.name}: {job.reason}"
        assert sorted(attempts) == list(range(1, len(kind["plan"]) + 1)), job.name
        assert all(len(spans) == job.gang for spans in attempts.values()), job.name
        assert [attempt.exit_code for attempt in job.attempts] == kind["plan"], job.name
        assert job.retries == (0 if 33 in kind["plan"] else len(kind["plan"]) - 1), job.name  # a hold is no retry
        check_programs(job, ran)
        for earlier, later in itertools.pairwise(sorted(attempts)):
            ended = max(end["at"] for _, end in attempts[earlier])
            began = min(start["at"] for start, _ in attempts[later])
            assert ended <= began, f"{job.name}: attempts {earlier} and {later} overlap"


def check_programs(job: JobView, ran: Mapping[tuple[str, int, int], tuple[Line, Line]]) -> None:
    """Compare what the server knows of each run with what its program wrote."""
    for attempt in job.attempts:
        for run in attempt.runs:
            start, end = ran[job.name, attempt.number, run.rank]
            assert (run.uid, run.exit_code) == (start["uid"], end["code"]), json.dumps([start, end])
