"""Memory of a whole embedded server (API, controller, executor) with many jobs in line, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

SERVER = """
import sys, tempfile, time
from contextlib import ExitStack
from pathlib import Path

import psutil

from holdfast.app import running, wiring
from holdfast.app.data.datadir import DataDir
from holdfast.app.embedded import start_embedded
from holdfast.app.settings import Settings
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.job import Queue
from holdfast.domain.workloads.spec import JobSpec
from holdfast.service.submit import Submitter

count = int(sys.argv[1])
with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
    settings, directory = Settings(data=Path(folder)), DataDir(Path(folder))
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    wiring.application(directory, store, token="t")
    store.put_entry(Queue("default", paused=True))
    submitter = Submitter(store, SystemClock(), SortableIds())
    for start in range(0, count, 10_000):
        submitter.submit_many([JobSpec(name="queued", command=("true",))] * min(10_000, count - start))
    embedded = start_embedded(stack, settings, directory, running.own(settings, directory, "bench"))
    while len(store.requests(limit=1)) or not store.nodes():
        time.sleep(0.05)
    time.sleep(0.5)
    print(psutil.Process().memory_info().rss)
"""


def measure(count: int = 100_000) -> float:
    """Return the resident bytes of a server with ``count`` queued jobs."""
    done = subprocess.run([sys.executable, "-c", SERVER, str(count)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])
