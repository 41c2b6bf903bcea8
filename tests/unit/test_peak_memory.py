"""Which of two readings of a program's peak of memory is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.keeper import verdict
from holdfast.engines.process.keeper.records import Exit, Run

if TYPE_CHECKING:
    from pathlib import Path

KEEPER = 10


@pytest.mark.parametrize(
    ("seen", "kernel", "reported"),
    [
        (9, 50, 50),  # looked before it had grown
        (80, 50, 80),  # its children had the rest
        (0, 50, 50),
        (0, KEEPER, None),  # no more than it was born with
        (0, 0, None),
        (9, KEEPER, 9),
    ],
)
def test_the_larger_reading_counts_unless_it_is_the_keepers(
    tmp_path: Path, seen: int, kernel: int, reported: int | None
) -> None:
    run = Run("u", "n", str(tmp_path))
    run.peak_memory = seen
    facts = verdict.ended(run, Exit(0, None, kernel), ended_at=1.0, oom=False, keeper_rss=KEEPER)
    assert facts["peak_memory"] == reported
