"""`./dev mutate`: breaks the code in ways drawn at random, one at a time, and prints what no test noticed."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from typing import TYPE_CHECKING

from tools.mutate.drawn.command import mutate
from tools.mutate.drawn.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code, 1 when a mutant survived."""
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Break the code and see which test notices.")
    parser.add_argument("words", nargs="*", help="only mutants whose file or function has one of these in it")
    parser.add_argument("--random", type=int, metavar="N", default=50, help="how many to draw (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="which of them; a later run goes on with them (default 1)")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="M", help="begin none after that long")
    cores = multiprocessing.cpu_count()
    parser.add_argument("--processes", type=int, default=cores, help=f"how many at a time (default {cores})")
    options = parser.parse_args(arguments)
    return mutate(
        Project(),
        options.random,
        options.seed,
        words=options.words,
        processes=options.processes,
        within_s=options.minutes * 60,
    )


if __name__ == "__main__":
    sys.exit(main())
