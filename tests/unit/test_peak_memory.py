"""Which of two readings of a program's peak of memory is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.shim.records import Exit, SupervisedRun
from holdfast.engines.process.shim.supervisor import outcomes

if TYPE_CHECKING:
    from pathlib import Path

OWN = 10


@pytest.mark.parametrize(
    ("seen", "kernel", "reported"),
    [
        (9, 50, 50),  # looked before it had grown
        (80, 50, 80),  # its children had the rest
        (0, 50, 50),
        (0, OWN, None),  # no more than it was born with
        (0, 0, None),
        (9, OWN, 9),
    ],
)
def test_the_larger_reading_counts_unless_it_is_the_supervisors(
    tmp_path: Path, seen: int, kernel: int, reported: int | None
) -> None:
    program = SupervisedRun({"uid": "u", "directory": str(tmp_path)})
    program.peak_memory = seen
    facts = outcomes.ended(program, Exit(0, None, kernel), ended_at=1.0, oom=False, own_rss=OWN)
    assert facts["peak_memory"] == reported
