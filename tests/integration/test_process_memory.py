"""Memory that processes of a run have in common, where no control group counts it; with real programs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import EndedBy
from holdfast.domain.job import Resources

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

MEBI = 1 << 20
FORKS = """
import os, sys
held = bytearray(60 << 20)
held[::4096] = b"1" * len(held[::4096])
above, below = os.pipe(), os.pipe()
for _ in range(4):
    if not os.fork():
        os.close(above[1])
        if sys.argv[2] == "write": held[::4096] = b"2" * len(held[::4096])
        os.write(below[1], b".")
        os.read(above[0], 1)
        os._exit(0)
"""
"""Four children that have what their parent holds, and end when it does; the parent goes on below."""
READY = "for _ in range(4): os.read(below[0], 1)\nprint('forked', flush=True)\nopen(sys.argv[1]).read()\n"
HOG = "x = []\nwhile True: x.append(bytearray(8 << 20))"


@pytest.fixture
def watched(new_machine: NewMachine, tmp_path: Path) -> Machine:
    return new_machine(tmp_path, memory_limits="rss")


def test_pages_that_forked_processes_share_until_they_write_to_them_count_once(
    watched: Machine, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    forks = watched.start(sys.executable, "-c", FORKS + READY, str(gate), "", resources=Resources(memory=150 * MEBI))
    watched.until_logged(forks, "forked")
    for _ in range(2):  # what exceeds its limit is found by a look that has seen the others, too
        hog = watched.run(sys.executable, "-c", HOG, resources=Resources(memory=96 * MEBI))
        assert hog.ended_by is EndedBy.MEMORY
    gate.write_text("go on")
    outcome = watched.finish(forks)
    assert (outcome.ended_by, outcome.message) == (EndedBy.ITSELF, "")
    assert outcome.peak_memory is not None
    assert 60 * MEBI < outcome.peak_memory < 150 * MEBI


def test_pages_that_forked_processes_have_written_to_count_for_each(watched: Machine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    resources = Resources(memory=150 * MEBI)
    outcome = watched.run(sys.executable, "-c", FORKS + READY, str(gate), "write", resources=resources)
    assert outcome.ended_by is EndedBy.MEMORY
    assert outcome.peak_memory is not None
    assert outcome.peak_memory > 150 * MEBI
