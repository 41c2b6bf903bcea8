"""`./dev mutate`: breaks the code in every listed way, or in ways drawn at random, and prints who noticed.

Fails if nobody did.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from tools.mutate.drawn.command import mutate
from tools.mutate.drawn.project import Project
from tools.mutate.mutations import MUTATIONS
from tools.mutate.order import ordered
from tools.mutate.running import Outcome, Verdict, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.mutate.mutation import Mutation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code, 1 when a mutation survived or cannot be tried."""
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Break the code and see which test notices.")
    parser.add_argument("words", nargs="*", help="only mutations whose name or file has one of these in it")
    parser.add_argument("--random", type=int, metavar="N", help="draw N mutants instead; a later run goes on with them")
    parser.add_argument("--seed", type=int, default=1, help="which N (default 1)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="M",
        help="begin none after that long; those of files that changed last come first, others as their lot falls",
    )
    cores = multiprocessing.cpu_count()
    parser.add_argument("--processes", type=int, default=cores, help=f"how many at a time (default {cores})")
    options = parser.parse_args(arguments)
    if options.random is not None:
        return mutate(Project(), options.random, options.seed, words=options.words, processes=options.processes)
    chosen = [
        each
        for each in MUTATIONS
        if not options.words or any(word in f"{each.name} {each.file}" for word in options.words)
    ]
    rotten = [f"{each.name}: {each.problem()}" for each in chosen if each.problem()]
    if rotten or not chosen:
        print("\n".join(rotten) or "there is no such mutation", file=sys.stderr)
        return 1
    return _tried(ordered(chosen), options.processes, options.minutes * 60)


def _tried(mutations: Sequence[Mutation], processes: int, within_s: float) -> int:
    began = time.monotonic()
    width = max(len(each.name) for each in mutations)
    counts: Counter[Verdict] = Counter()
    missed = []
    for outcome in run(mutations, processes, within_s):
        counts[outcome.verdict] += 1
        if outcome.verdict is Verdict.UNTRIED:
            continue
        line = _line(outcome, width)
        print(line, flush=True)
        if outcome.verdict is not Verdict.NOTICED:
            missed.append(line)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    # Again at the end, where somebody who has only the last lines of a log finds them.
    print(*missed, f"{len(mutations)} mutations in {time.monotonic() - began:.0f} s: {told}", sep="\n")
    return 1 if missed else 0


def _line(outcome: Outcome, width: int) -> str:
    said = outcome.said.removeprefix("tests/")
    return f"{outcome.mutation.name:{width}}  {outcome.verdict:8}  {outcome.took_s:5.1f} s  {said}"


if __name__ == "__main__":
    sys.exit(main())
