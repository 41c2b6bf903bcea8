"""Prints what this machine does, each figure beside the machine's own baseline measured in the same run.

The baseline is a bare loop that starts ``/bin/true`` and waits for it, eight in flight. No time makes it fail.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench import decisions, engine, jobs, storage
from bench.baseline import IN_FLIGHT, spawn_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Figure = tuple[str, float, str, float | None]
"""What was measured, how much, in which unit, and its ratio to the baseline."""


def _decisions(baseline: float) -> Iterator[Figure]:
    for name, rate in decisions.measure().items():
        yield f"decisions with 20 rules, {name}", rate, "/s of a core", rate / baseline


def _jobs(_: float) -> Iterator[Figure]:
    found = jobs.measure()
    yield "3,000 durable jobs of /bin/true, end to end", found["jobs_per_s"], "/s", found["ratio"]
    yield "their submission", found["submitted_per_s"], "/s", found["submitted_per_s"] / found["spawn_per_s"]


def _engine(_: float) -> Iterator[Figure]:
    found = engine.measure()
    yield "runs of /bin/true through the engine alone", found["engine_per_s"], "/s", found["ratio"]


def _storage(_: float) -> Iterator[Figure]:
    for name, value in storage.measure().items():
        what, unit = name.replace("_", " ").rsplit(" ", 1)
        per_second = what.endswith(" per")
        yield f"storage: {what.removesuffix(' per')}", value, f"/{unit}" if per_second else unit, None


PARTS: dict[str, Callable[[float], Iterator[Figure]]] = {
    "decisions": _decisions,
    "jobs": _jobs,
    "engine": _engine,
    "storage": _storage,
}


def main(names: list[str]) -> int:
    """Measure the named parts, or all."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"unknown: {', '.join(unknown)}; allowed: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    baseline = spawn_rate()
    _print((f"baseline: posix_spawn and wait of /bin/true, {IN_FLIGHT} in flight", baseline, "/s", 1.0))
    for name in names or PARTS:
        for figure in PARTS[name](baseline):
            _print(figure)
    return 0


def _print(figure: Figure) -> None:
    what, value, unit, ratio = figure
    beside = "" if ratio is None else f"{ratio:8.2f} x baseline"
    print(f"{what:<64} {value:>12,.0f} {unit:<12} {beside}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
