"""Records are read by many threads, from the first one on."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import sys
from dataclasses import field, make_dataclass
from enum import StrEnum
from threading import Barrier, Thread

from holdfast.compiled.records import decoder_of

sys.setswitchinterval(1e-6)


def read(kind, together):
    together.wait()
    decoder_of(kind).decode('{"shared": {"f0": "1", "f4": "2"}}')


for _ in range(15):
    words = [StrEnum(f"Word{n}", {f"W{m}": str(m) for m in range(4)}) for n in range(5)]
    shared = make_dataclass("Shared", [(f"f{n}", word | None, None) for n, word in enumerate(words)])
    outer = [make_dataclass(f"Outer{n}", [("shared", shared, field(default_factory=shared))]) for n in range(6)]
    together = Barrier(len(outer))
    threads = [Thread(target=read, args=(kind, together)) for kind in outer]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_read_kinds_of_records_for_the_first_time_do_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], check=False, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
