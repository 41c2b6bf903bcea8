"""Deliberate breaks of the code, each with the promises that it violates and the seed of a world that notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools.simulate.run import simulate

Break = tuple[Callable[[pytest.MonkeyPatch], None], set[str], int]
_WORLDS = 100


def assert_noticed(named: Break, patch: pytest.MonkeyPatch, *, every: int = 1) -> None:
    """Break the code and run the world that notices, or the worlds after it if it has changed since.

    ``every`` is the distance between seeds of worlds that have what the break needs. A break that takes long to be
    noticed wants another seed: that of a short world that notices it.
    """
    break_code, promises, first = named
    break_code(patch)
    for seed in range(first, first + _WORLDS * every, every):
        report = simulate(seed)
        if report.broken:
            assert report.broken in promises, report.message
            return
    pytest.fail(f"{_WORLDS} worlds from seed {first} on saw nothing wrong")
