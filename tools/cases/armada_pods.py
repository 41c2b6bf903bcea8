"""What Armada does with pods and their runs, and Holdfast has no use for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.dialects.armada.jobs import POD_NAMES
from holdfast.domain.workloads import spec as names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def pod_name(job_id: str, run_index: int) -> str:
    """Name the pod of a run."""
    return names.pod_name(POD_NAMES, job_id, run_index + 1)


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended, as far as a budget is concerned."""

    failed: bool = False
    preempted: bool = False
    """It was preempted, even if something else ended it later."""
    returned: bool = False
    """Its lease was given back before it ran."""


def count_failures(endings: Iterable[RunEnding]) -> int:
    """Count the runs that failed by themselves, neither preempted nor given back."""
    return sum(ending.failed and not ending.preempted and not ending.returned for ending in endings)


def grow_containers(
    main: Mapping[str, int | None],
    init: Mapping[str, int | None],
    *,
    factor: float | None = None,
    static: int | None = None,
) -> dict[str, int]:
    """Divide a growth among the containers of a pod.

    The factor applies to each container. The static amount is shared among the main containers in proportion to
    their memory; each init container gets all of it, because init containers run one at a time, before the others.

    Args:
        main: Memory of the main containers by name, in bytes; ``None`` asks for none and is left alone.
        init: Memory of the init containers, likewise.
        factor: What to multiply by.
        static: Bytes to add, after multiplying.

    Returns:
        The new memory of every container that has any, rounded down, so that the pod never outgrows its grant.
    """
    numerator, denominator = Fraction(repr(1.0 if factor is None else factor)).as_integer_ratio()
    total = sum(size for size in main.values() if size)
    amount = static or 0
    shares = {name: (size, amount * size // total) for name, size in main.items() if size}
    shares |= {name: (size, amount) for name, size in init.items() if size}
    return {name: size * numerator // denominator + share for name, (size, share) in shares.items()}
