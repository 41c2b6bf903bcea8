"""`./dev mutate`: breaks lines that changed lately, one at a time, and prints what no test noticed."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from tools.mutate.changes import changes, head
from tools.mutate.copies import Copies, scratch
from tools.mutate.covering import Covering
from tools.mutate.drawing import draw_all, draw_changed, draw_places, mixed
from tools.mutate.project import Project
from tools.mutate.trials import Outcome, Trials, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.mutate.mutants import Mutant

_MINUTES = 10.0
_MOST = 200
"""Mutants that are drawn where only time is a limit: more than ten minutes are enough for."""
_BATCH = 4
"""Mutants for each process between two looks for the tests of their modules."""
_SURVIVORS = frozenset({Verdict.SURVIVED, Verdict.UNTESTED, Verdict.UNUSABLE})


def main(arguments: Sequence[str] | None = None, project: Project | None = None) -> int:
    """Run the command; returns its exit code, which is 1 only with `--strict` and a survivor."""
    options, project = _options(arguments), project or Project()
    began = time.monotonic()
    until = began + 60 * (options.minutes or (math.inf if options.random else _MINUTES))
    mutants = _draw(project, options)
    outcomes = []
    for outcome in _try(project, mutants, options.processes, until):
        outcomes.append(outcome)
        if outcome.verdict is not Verdict.UNTRIED:
            print(_line(outcome), flush=True)
    survivors = [outcome for outcome in outcomes if outcome.verdict in _SURVIVORS]
    # Again at the end, where somebody who has only the last lines of a log finds them.
    print(*map(_details, survivors), _summary(outcomes, len(mutants), time.monotonic() - began), sep="\n")
    return 1 if survivors and options.strict else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    cores = multiprocessing.cpu_count()
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Break the code and see which test notices.")
    parser.add_argument("words", nargs="*", help="only mutants whose file or function contains one of these")
    parser.add_argument("--since", metavar="COMMIT", help="draw from what changed since then (default: 20 commits ago)")
    parser.add_argument("--random", type=int, metavar="N", help="draw N mutants of all lines instead")
    parser.add_argument("--seed", help="another one, another draw (default: the commit)")
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="stop after that long (default 10, none for --random)"
    )
    parser.add_argument("--processes", type=int, default=cores, metavar="P", help=f"tried at a time (default {cores})")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a mutant survives")
    return parser.parse_args(arguments)


def _draw(project: Project, options: argparse.Namespace) -> list[Mutant]:
    """Draw mutants, and say from what."""
    seed, words = options.seed or head(project) or "1", options.words
    if options.random is not None:
        drawn, source = draw_all(project, seed, words), "all lines"
    elif (changed := changes(project, options.since)) is None:
        drawn = mixed(draw_all(project, seed, words), draw_places(project, seed, words))
        source = "all lines, as git has no earlier commit,"
    else:
        drawn = draw_changed(project, changed.lines, seed, words)
        source = f"lines that changed since {changed.since} and {len(project.places)} places"
    mutants = list(islice(drawn, _MOST if options.random is None else options.random))
    print(f"{len(mutants)} mutants drawn from {source} with seed {seed}", flush=True)
    return mutants


def _try(project: Project, mutants: Sequence[Mutant], processes: int, until: float) -> Iterator[Outcome]:
    with scratch() as folder:
        copies = Copies(folder, processes, project.root)
        covering = Covering(project, sorted({mutant.place.file for mutant in mutants}), copies.paths)
        trials = Trials(covering, copies, until)
        for start in range(0, len(mutants), processes * _BATCH):
            batch = mutants[start : start + processes * _BATCH]
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            # Finding the tests must leave time to run them.
            covering.learn([mutant.place.file for mutant in batch], left_s / 3)
            yield from trials.run(batch)


def _line(outcome: Outcome) -> str:
    mutant, message = outcome.mutant, outcome.message.removeprefix("tests/")
    place = f"{mutant.place.file}:{mutant.line}"
    return f"{outcome.verdict:10}  {outcome.took_s:5.1f} s  {place}  {mutant.kind}  {message}"


def _details(outcome: Outcome) -> str:
    mutant = outcome.mutant
    where = f" in {mutant.place.where}" if mutant.place.where else ""
    return (
        f"{mutant.place.file}:{mutant.line}{where}: {outcome.verdict} ({outcome.message})\n"
        f"    {mutant.kind}: {mutant.before}\n"
        f"    {'->':>{len(mutant.kind) + 1}} {mutant.after}"
    )


def _summary(outcomes: Sequence[Outcome], drawn: int, took_s: float) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    counts[Verdict.UNTRIED] += drawn - len(outcomes)
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    return f"{drawn} mutants in {took_s:.0f} s: {numbers or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
