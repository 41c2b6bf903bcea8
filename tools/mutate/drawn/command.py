"""`./dev mutate --random N --seed S`: draws mutants, tries those nobody tried yet, and prints the survivors."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from tools.mutate.drawn.argued import ARGUED
from tools.mutate.drawn.covering import covering
from tools.mutate.drawn.drawing import draw
from tools.mutate.drawn.trials import Trials
from tools.mutate.drawn.verdicts import FINE, Known, Verdict, Verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.mutate.drawn.mutants import Mutant
    from tools.mutate.drawn.project import Project


def mutate(
    project: Project,
    number: int,
    seed: int,
    *,
    words: Sequence[str] = (),
    processes: int = 1,
    within_s: float = math.inf,
) -> int:
    """Run the command; returns its exit code, 1 when a mutant survived that nobody argued for.

    Args:
        project: What to break.
        number: How many to draw.
        seed: Another one, other mutants.
        words: Only those whose file or function has one of these in it.
        processes: How many to try at a time.
        within_s: After how long none is begun any more.
    """
    began, drawn = time.monotonic(), draw(project, number, seed, words)
    verdicts = Verdicts(project.kept / f"seed-{seed}.jsonl")
    known: dict[str, Known] = {}
    for mutant in drawn.mutants:
        why = argued_for(mutant)
        before = Known(Verdict.ARGUED, why, 0.0, "") if why else verdicts.of(mutant.name, project.content)
        if before is not None:
            known[mutant.name] = before
    left = [mutant for mutant in drawn.mutants if mutant.name not in known]
    print(f"{len(drawn.mutants)} of {drawn.of} mutants drawn with seed {seed}, {len(left)} of them to try", flush=True)
    if left:
        for mutant, outcome in Trials(project, covering(project)).run(left, processes, began + within_s):
            if outcome is None:
                continue
            verdicts.add(mutant.name, outcome)
            known[mutant.name] = outcome
            print(_line(mutant, outcome), flush=True)
    print(_summary(drawn.mutants, known, time.monotonic() - began))
    return 0 if all(outcome.verdict in FINE for outcome in known.values()) else 1


def argued_for(mutant: Mutant) -> str:
    """Return why a mutant need not be noticed; empty where nobody said so."""
    return next((each.why for each in ARGUED if each.about == mutant.about), "")


def _line(mutant: Mutant, outcome: Known) -> str:
    said = outcome.said.removeprefix("tests/")
    return f"{outcome.verdict:10}  {outcome.took_s:5.1f} s  {mutant.place.file}:{mutant.line}  {mutant.kind}  {said}"


def _summary(drawn: Sequence[Mutant], known: Mapping[str, Known], took_s: float) -> str:
    counts = Counter(outcome.verdict for outcome in known.values())
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    untried = f", {len(drawn) - len(known)} untried" if len(known) < len(drawn) else ""
    tried = [mutant for mutant in drawn if mutant.name in known]
    bad = [line for mutant in tried if known[mutant.name].verdict not in FINE for line in _shown(mutant, known)]
    return "\n".join([*bad, f"{len(drawn)} mutants in {took_s:.0f} s: {told or 'none'}{untried}"])


def _shown(mutant: Mutant, known: Mapping[str, Known]) -> list[str]:
    outcome = known[mutant.name]
    place = f"{mutant.place.file}:{mutant.line}"
    where = f" in {mutant.place.where}" if mutant.place.where else ""
    return [
        f"{place}{where}: {outcome.verdict} ({outcome.said})",
        f"    {mutant.kind}: {mutant.before}",
        f"    {'->':>{len(mutant.kind) + 1}} {mutant.after}",
    ]
