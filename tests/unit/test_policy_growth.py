"""How memory requests grow."""

from __future__ import annotations

import pytest

from holdfast.domain.policy.decide import grow_memory
from holdfast.domain.policy.model import MemoryGrowth
from tools.cases.armada_pods import grow_containers

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("memory", "growth", "expected"),
    [
        (2 * GIB, MemoryGrowth(factor=1.5), 3 * GIB),
        (1000, MemoryGrowth(factor=1.1), 1100),
        (1001, MemoryGrowth(factor=1.5), 1502),
        (GIB, MemoryGrowth(static=100 * MIB), GIB + 100 * MIB),
        (7 * GIB, MemoryGrowth(factor=1.5, max=8 * GIB), 8 * GIB),
        (9 * GIB, MemoryGrowth(factor=1.5, max=8 * GIB), 9 * GIB),
        (GIB, MemoryGrowth(factor=0.5), GIB),
        (0, MemoryGrowth(static=MIB), 0),
    ],
)
def test_a_request_grows_rounds_up_and_never_shrinks(memory: int, growth: MemoryGrowth, expected: int) -> None:
    assert grow_memory(memory, growth) == expected


def test_growth_compounds() -> None:
    growth = MemoryGrowth(factor=2.0, max=8 * GIB)
    sizes = [GIB]
    for _ in range(4):
        sizes.append(grow_memory(sizes[-1], growth))
    assert sizes == [GIB, 2 * GIB, 4 * GIB, 8 * GIB, 8 * GIB]


@pytest.mark.parametrize(
    ("main", "init", "factor", "static", "expected"),
    [
        ({"a": GIB, "b": 2 * GIB}, {}, 1.5, None, {"a": 1536 * MIB, "b": 3 * GIB}),
        ({"a": GIB}, {"init": 256 * MIB}, None, 100 * MIB, {"a": 1124 * MIB, "init": 356 * MIB}),
        ({"a": GIB, "sidecar": None}, {}, 2.0, None, {"a": 2 * GIB}),
        ({"a": GIB, "b": 3 * GIB}, {}, None, 400 * MIB, {"a": GIB + 100 * MIB, "b": 3 * GIB + 300 * MIB}),
        ({"a": 1, "b": 2}, {}, None, 10, {"a": 4, "b": 8}),
        ({"a": None}, {"init": None}, 2.0, None, {}),
        ({}, {}, None, 5, {}),
    ],
)
def test_a_pods_growth_is_shared_among_its_containers(
    main: dict[str, int | None],
    init: dict[str, int | None],
    factor: float | None,
    static: int | None,
    expected: dict[str, int],
) -> None:
    assert grow_containers(main, init, factor=factor, static=static) == expected
