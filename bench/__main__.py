"""Prints what this machine does, each figure beside the machine's own baseline measured in the same run.

The baseline is a bare loop that starts ``/bin/true`` and waits for it, eight in flight. No time makes it fail.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from bench import (
    armada,
    backendai,
    decisions,
    engine,
    floor,
    fluster,
    jobs,
    jobset,
    latency,
    memory,
    peers,
    scale,
    standing,
    storage,
)
from bench.baseline import IN_FLIGHT, directory_s, spawn_rate
from holdfast.domain.policy.model import SetAction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_SMALL = 10
"""Below this, what is after the point counts."""


class Figure(NamedTuple):
    """One thing measured."""

    what: str
    value: float | str
    """Words where there is no value."""
    unit: str
    ratio: float | None = None
    """To the baseline, where that says something."""
    bar: str = ""
    """What it should be, where something was promised (bench/README.md)."""


def _decisions(baseline: float) -> Iterator[Figure]:
    for name, rate in decisions.measure().items():
        bar = ">= 100,000 /s"
        yield Figure(f"decisions with 20 rules, {name}", rate, "/s of a core", rate / baseline, bar)


def _jobs(_: float) -> Iterator[Figure]:
    found = jobs.measure(5000)
    what = "5,000 durable jobs of /bin/true, end to end"
    yield Figure(what, found["jobs_per_s"], "/s", found["ratio"], ">= 500 /s, >= 0.2 x")
    ratio = found["submitted_per_s"] / found["spawn_per_s"]
    yield Figure("their submission in bulk", found["submitted_per_s"], "/s", ratio, ">= 5,000 /s")


def _armada(_: float) -> Iterator[Figure]:
    found = armada.measure()
    if found is None:
        yield Figure("jobs by Armada's door", "its client is not installed: ./dev clients", "")
        return
    rest, door = found
    yield Figure("10,000 jobs by REST in bulk, until their client is told of the last end", rest.ended, "/s")
    yield Figure("the same by Armada's door and client", door.ended, "/s", door.ended / rest.ended, ">= 0.7 x REST")
    what = "processor time of the server for them by the door"
    yield Figure(what, door.cpu_s, "s", door.cpu_s / rest.cpu_s)
    yield Figure("their submission by REST", rest.submitted, "/s")
    yield Figure("their submission by SubmitJobs", door.submitted, "/s", door.submitted / rest.submitted)


def _fluster(_: float) -> Iterator[Figure]:
    rest, connect, grpc = fluster.measure()
    yield Figure("4,000 jobs by REST in bulk, into a queue that is paused", rest, "/s")
    what = f"the same launched one by one by {fluster.CONNECTIONS} connections of"
    yield Figure(f"{what} Connect", connect, "/s", None, ">= 800 /s")
    yield Figure(f"{what} gRPC", grpc, "/s", None, ">= 800 /s")


def _peers(_: float) -> Iterator[Figure]:
    for what, value, unit, bar in peers.measure():
        yield Figure(what, value, unit, None, bar)


def _floor(baseline: float) -> Iterator[Figure]:
    found = floor.measure()
    what = "the least that passes them on and commits them: jobs of /bin/true"
    yield Figure(what, found.per_s, "/s", found.per_s / baseline)
    yield Figure("its processor time for each", found.cpu_ms, "ms")


def _standing(_: float) -> Iterator[Figure]:
    found = standing.measure()
    yield Figure("an idle server", found["idle_share"] * 100, "% of a core", None, "< 1 %")
    bars = {"help_s": ("holdfast --help", "< 200 ms"), "asking_s": ("a command that asks a server", "<= 250 ms")}
    bars["alone_s"] = ("a command that opens the data directory itself", "<= 600 ms")
    for name, (what, bar) in bars.items():
        yield Figure(f"processor time of {what}", found[name] * 1000, "ms", None, bar)


def _engine(_: float) -> Iterator[Figure]:
    found = engine.measure()
    yield Figure("runs of /bin/true through the engine alone", found["engine_per_s"], "/s", found["ratio"])


def _latency(_: float) -> Iterator[Figure]:
    found = latency.measure(100)
    yield Figure("100 jobs fail in turn: next program started, p50", found["next_p50_ms"], "ms", None, "< 50 ms")
    yield Figure("the same, p99", found["next_p99_ms"], "ms", None, "< 250 ms")
    yield Figure("failure observed, decision committed, p99", found["decided_p99_ms"], "ms", None, "< 50 ms")
    floor, found = latency.bare(100), latency.measure(100, every_s=0.0)
    what = "100 jobs fail at the same moment: next program started"
    yield Figure(f"{what} by a bare loop, p50", floor["next_p50_ms"], "ms")
    yield Figure("the same, p99", floor["next_p99_ms"], "ms")
    yield Figure(
        f"{what}, p50", found["next_p50_ms"], "ms", found["next_p50_ms"] / floor["next_p50_ms"], "<= 2 x the bare loop"
    )
    yield Figure("the same, p99", found["next_p99_ms"], "ms", None, "< 250 ms")
    yield Figure("failure observed, decision committed, p99", found["decided_p99_ms"], "ms", None, "< 50 ms")


def _jobset(_: float) -> Iterator[Figure]:
    bars = {15_000: "< 1,000 ms"}
    for name, seconds in jobset.measure().items():
        bar = next((bar for size, bar in bars.items() if f"{size:,}" in name), "")
        yield Figure(f"one of a set's jobs fails: passes for {name}", seconds * 1000, "ms", None, bar)
    largest = jobset.SIZES[-1]
    restarts = {size: jobset.restart(size, SetAction.RESTART_JOB_SET) for size in jobset.SIZES}
    for size, found in restarts.items():
        bar = "<= 4,000 ms, linear" if size == largest else ""
        what = f"one of a set's {size:,} jobs fails: all of them handed out again, simulated engine"
        yield Figure(what, found["restart_s"] * 1000, "ms", None, bar)
    yield Figure("memory of the last of these", restarts[largest]["memory_mb"], "MB", None, "< 1,000 MB")
    found = jobset.restart(largest, SetAction.RESTART_JOB)
    what = f"one of a set's {largest:,} jobs fails: that one handed out again"
    yield Figure(what, found["restart_s"] * 1000, "ms", None, "< 50 ms")


def _storage(_: float) -> Iterator[Figure]:
    for name, value in storage.measure().items():
        what, unit = name.replace("_", " ").rsplit(" ", 1)
        per_second = what.endswith(" per")
        yield Figure(f"storage: {what.removesuffix(' per')}", value, f"/{unit}" if per_second else unit)


def _backendai(_: float) -> Iterator[Figure]:
    for search in backendai.measure():
        what = f"{search.database}: 100,000 sessions searched {search.what}, 99 of 100"
        yield Figure(what, search.p99_ms, "ms", None, "< 50 ms")


def _scale(_: float) -> Iterator[Figure]:
    few, many = scale.queued(1_000), scale.queued(1_000_000)
    yield Figure("tick with 1,000 queued jobs", few["tick_ms"] * 1000, "us")
    yield Figure("tick with 1,000,000", many["tick_ms"] * 1000, "us", None, "within 2 x of that")
    yield Figure("start-up with 1,000,000", many["start_up_s"], "s", None, "< 30 s")
    yield Figure("memory of their records", many["memory_mb"], "MB", None, "< 2,000 MB")
    yield Figure("embedded server with 100,000 queued", memory.measure() / 1e6, "MB", None, "< 400 MB")
    for ranks in (1_000, 5_000, 15_000):
        found = scale.gang(ranks)
        bar = "< 5,000 ms, linear" if ranks == 15_000 else ""
        yield Figure(f"gang of {ranks:,} restarts, simulated engine", found["restart_s"] * 1000, "ms", None, bar)
    storm = scale.storm(20_000)
    yield Figure("storm: 20,000 failures at once, all decided", storm["decided_s"] * 1000, "ms")
    yield Figure("reads meanwhile, p99", storm["read_p99_ms"], "ms", None, "< 200 ms")


PARTS: dict[str, Callable[[float], Iterator[Figure]]] = {
    "decisions": _decisions,
    "jobs": _jobs,
    "peers": _peers,
    "floor": _floor,
    "standing": _standing,
    "engine": _engine,
    "jobset": _jobset,
    "latency": _latency,
    "storage": _storage,
    "scale": _scale,
    "armada": _armada,
    "fluster": _fluster,
    "backendai": _backendai,
}


def main(names: list[str]) -> int:
    """Measure the named parts, or all."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"unknown: {', '.join(unknown)}; allowed: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    baseline = spawn_rate()
    _print(Figure(f"baseline: posix_spawn and wait of /bin/true, {IN_FLIGHT} in flight", baseline, "/s", 1.0))
    what = "baseline: making a directory beside the data"
    _print(Figure(what, directory_s() * 1e6, "us", None, "< 60 us, or else set TMPDIR (bench/README.md)"))
    for name in names or PARTS:
        for figure in PARTS[name](baseline):
            _print(figure)
    return 0


def _written(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < _SMALL else f"{value:,.0f}"


def _print(figure: Figure) -> None:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} x"
    value = figure.value if isinstance(figure.value, str) else _written(figure.value)
    row = f"{figure.what:<62} {value:>10} {figure.unit:<13} {ratio:>9}  {figure.bar}"
    print(row.rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
