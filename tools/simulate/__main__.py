"""`python -m tools.simulate`: runs seeds on every core, and says how to replay one that failed."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.domain.units import format_duration
from tools.simulate.faults.reached import table
from tools.simulate.promises import INVARIANTS
from tools.simulate.run import Report, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PROGRESS_EVERY_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code, 1 when an invariant was broken."""
    options = _parser().parse_args(arguments)
    _quiet()
    if options.seed is not None:
        return _replay(options.seed)
    seeds = range(options.start, options.start + options.seeds)
    total = Totals()
    began = told = time.monotonic()
    for report in _reports(seeds, options.processes):
        total.add(report)
        if report.broken:
            _say(_failure(report))
        if time.monotonic() - told >= _PROGRESS_EVERY_S:
            told = time.monotonic()
            _say(f"{total.seeds} of {len(seeds)} seeds, {len(total.broken)} broken, {told - began:.0f} s")
    _say(total.summary(time.monotonic() - began))
    return 1 if total.broken else 0


class Totals:
    """The totals of many seeds."""

    def __init__(self) -> None:
        """Begin with none."""
        self.seeds = self.steps = self.lives = self.jobs = self.attempts = self.programs = self.decisions = 0
        self.sets = self.set_decisions = 0
        self.simulated_s = 0.0
        self.faults: Counter[str] = Counter()
        self.reached: Counter[tuple[str, str, str]] = Counter()
        self.broken: list[Report] = []

    def add(self, report: Report) -> None:
        """Add one seed."""
        self.seeds += 1
        for name in ("steps", "lives", "jobs", "attempts", "programs", "decisions", "sets", "set_decisions"):
            setattr(self, name, getattr(self, name) + getattr(report, name))
        self.simulated_s += report.simulated_s
        self.faults.update(report.faults)
        self.reached.update(report.reached)
        if report.broken:
            self.broken.append(report)

    def summary(self, took_s: float) -> str:
        """Summarise in a few lines."""
        lived = f"{format_duration(round(self.simulated_s))} of virtual time, {self.lives:,} lives of the controller"
        lines = [
            f"{self.seeds:,} seeds in {took_s:.1f} s: {self.steps:,} steps, {lived}",
            f"{self.jobs:,} jobs, {self.attempts:,} attempts, {self.programs:,} programs, {self.decisions:,} decisions",
            f"{self.sets:,} job sets, {self.set_decisions:,} decisions about their jobs",
            f"{self.faults.total():,} faults, and how often something was in which state when they struck:",
            *table(self.reached),
            f"{len(INVARIANTS)} invariants after every step: {self._verdict()}",
        ]
        return "\n".join([*lines, *(f"  {report.broken}: {report.replay}" for report in self.broken)])

    def _verdict(self) -> str:
        return f"broken by {len(self.broken)} seeds" if self.broken else "all held"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev simulate", description="Run simulated worlds and check invariants.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run (default 200)")
    parser.add_argument("--start", type=int, default=1, help="the first of them (default 1)")
    parser.add_argument("--seed", type=int, help="run this seed alone and print its last steps")
    cores = multiprocessing.cpu_count()
    parser.add_argument("--processes", type=int, default=cores, help=f"how many at a time (default {cores})")
    return parser


def _quiet() -> None:
    """Keep the loops' warnings about injected faults out of the output, in every process."""
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)


def _reports(seeds: Iterable[int], processes: int) -> Iterator[Report]:
    if processes <= 1:
        yield from map(simulate, seeds)
        return
    with multiprocessing.Pool(processes, initializer=_quiet) as pool:
        yield from pool.imap_unordered(simulate, seeds, chunksize=4)


def _replay(seed: int) -> int:
    report = simulate(seed)
    total = Totals()
    total.add(report)
    _say("\n".join(report.last))
    _say(f"checksum of all steps: {report.checksum:08x}")
    if report.broken:
        _say(f"seed {seed} BROKE {report.message}")
    _say(f"{report.steps:,} steps, {report.simulated_s:.0f} s of virtual time, faults: {dict(report.faults)}")
    return 1 if report.broken else 0


def _failure(report: Report) -> str:
    """Describe a seed that broke an invariant."""
    steps = "\n".join(report.last[-25:])
    return f"{steps}\nseed {report.seed} BROKE {report.message}\nreplay: {report.replay}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
