"""Estimates pi in rounds, saves its state after each, and resumes from there when it is retried."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

SAMPLES = 40_000


def load(path: Path) -> dict[str, int]:
    """Read the last saved state, or begin anew."""
    if path.exists():
        state: dict[str, int] = json.loads(path.read_text())
        return state
    return {"round": 0, "inside": 0}


def save(path: Path, state: dict[str, int]) -> None:
    """Replace the saved state in one step, so that a crash never leaves half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state))
    fresh.replace(path)


def sample(number: int) -> int:
    """Count the points of one round that fall inside the circle; the same round gives the same points."""
    dice = random.Random(number)
    return sum(dice.random() ** 2 + dice.random() ** 2 <= 1 for _ in range(SAMPLES))


def main() -> int:
    """Work through the rounds; lose the machine once, in the first attempt, if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--crash-after", type=int, default=0, metavar="ROUND", help="in the first attempt only")
    options = parser.parse_args()
    path = Path(os.environ.get("HOLDFAST_CHECKPOINT_DIR", ".")) / "state.json"
    first = os.environ.get("HOLDFAST_ATTEMPT", "1") == "1"
    state = load(path)
    print(f"starting after round {state['round']}", flush=True)
    while state["round"] < options.rounds:
        state["inside"] += sample(state["round"])
        state["round"] += 1
        save(path, state)
        if progress := os.environ.get("HOLDFAST_PROGRESS_FILE"):
            Path(progress).write_text(f"{state['round']}/{options.rounds}")
        if first and state["round"] == options.crash_after:
            print(f"the disk went away in round {state['round']}", file=sys.stderr, flush=True)
            os.abort()
    print(f"pi is about {4 * state['inside'] / (SAMPLES * state['round']):.4f} after {state['round']} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
