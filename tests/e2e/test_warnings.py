"""Warnings ahead of the end though the server is killed: given once, kept in full, and never charged."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.e2e.server import HOLDFAST, until, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.server import Server

BEFORE_S = 2.0
NOTES = """
import json, os, pathlib, signal, sys, time
book = open(sys.argv[1], "a", buffering=1)
def note(number, frame):
    told = json.loads(pathlib.Path(os.environ["HOLDFAST_STOP_FILE"]).read_text())
    print(signal.Signals(number).name, told["reason"], time.time(), file=book)
    number == signal.SIGTERM and os._exit(0)
signal.signal(signal.SIGUSR2, note)
signal.signal(signal.SIGTERM, note)
print("begin", os.environ["HOLDFAST_ATTEMPT"], time.time(), file=book)
while os.environ["HOLDFAST_ATTEMPT"] == "1":
    time.sleep(0.02)
"""
SAVES = """
import holdfast
run = holdfast.current()
while run.attempt == 1:
    run.should_stop() and run.checkpointed()
    run.progress("ready")
"""


def test_a_held_job_is_warned_once_and_has_all_of_its_time_though_the_server_is_killed(
    server: Server, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    client = server.start()
    spec = {"signal": {"name": "USR2", "before": f"{BEFORE_S:g}s"}, "retry": {"retryLimit": 0}, "resources": {"cpu": 0}}
    job = client.submit({"name": "train", "command": [sys.executable, "-c", NOTES, str(book)], **spec}).id
    wait_until(lambda: book.exists() and "begin" in book.read_text(), "it began")
    until(client, job, lambda seen: seen.state == "Running")
    client.hold(job, reason="the machine is needed")
    wait_until(lambda: "SIGUSR2" in book.read_text(), "it was warned")
    client.close()
    server.end(signal.SIGKILL)
    client = server.start()
    held = until(client, job, lambda seen: seen.state == "Held")
    assert held.reason == "the machine is needed"
    client.release(job)
    until(client, job, lambda seen: seen.state == "Succeeded")
    lines = [line.split() for line in book.read_text().splitlines()]
    assert [line[:2] for line in lines] == [
        ["begin", "1"],
        ["SIGUSR2", "suspension"],
        ["SIGTERM", "suspension"],
        ["begin", "2"],
    ]
    assert BEFORE_S - 0.2 <= float(lines[2][2]) - float(lines[1][2]) < BEFORE_S + 5
    assert time.time() > float(lines[3][2])
    assert client.job(job).retries == 0
    client.close()


def test_a_drained_node_is_emptied_at_no_cost_and_takes_its_jobs_back_when_it_is_uncordoned(server: Server) -> None:
    client = server.start()
    spec = {"signal": {"before": "20s"}, "retry": {"retryLimit": 0}, "resources": {"cpu": 0}}
    job = client.submit({"name": "train", "command": [sys.executable, "-c", SAVES], **spec}).id
    until(client, job, lambda seen: seen.state == "Running" and seen.progress == "ready")
    (node,) = client.nodes()
    words = [*HOLDFAST, "drain", node.name, "--wait", "--reason", "a new kernel"]
    done = subprocess.run(words, env=server.environ, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.endswith(f"{node.name} drained\n")
    assert [one.state for one in client.nodes()] == ["Drained"]
    waits = until(client, job, lambda seen: seen.state == "Queued" and "drained" in seen.reason)
    assert (waits.reason, waits.retries) == (f"node {node.name} is being drained: a new kernel", 0)
    client.uncordon(node.name)
    until(client, job, lambda seen: seen.state == "Succeeded")
    client.close()
