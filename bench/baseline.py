"""What the machine itself can do: posix_spawn and wait of /bin/true, eight in flight; and make directories."""

from __future__ import annotations

import os
import tempfile
import time

TRUE = "/bin/true"
IN_FLIGHT = 8


def spawn_rate(count: int = 2000) -> float:
    """Return how many ``/bin/true`` a bare loop starts and reaps per second."""
    began = time.perf_counter()
    started = ended = 0
    while ended < count:
        while started < count and started - ended < IN_FLIGHT:
            os.posix_spawn(TRUE, [TRUE], {})
            started += 1
        os.wait()
        ended += 1
    return count / (time.perf_counter() - began)


def directory_s(count: int = 500) -> float:
    """Return the processor time of making a directory where the benchmarks keep their data.

    An ext4 file system without a journal takes many times as long for minutes after files were deleted from it, so
    that each run of a benchmark slows the next.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        began = time.thread_time()
        for number in range(count):
            os.mkdir(f"{folder}/{number}")  # noqa: PTH102 - a Path costs as much as the call
        return (time.thread_time() - began) / count
