"""Where a trivial job's time goes: processor microseconds per job, by step, in the server's two loops.

Each step's own clock is the thread's processor time, so that a busy machine does not distort the shares.
"""

from __future__ import annotations

import sys
import time
from functools import wraps
from typing import TYPE_CHECKING

from bench import jobs
from holdfast.app.embedded import Embedded
from holdfast.controller.controller import Controller
from holdfast.controller.observations import Observations
from holdfast.controller.placement import Placer
from holdfast.controller.publisher import Publisher
from holdfast.controller.reconcile import Reconciler
from holdfast.engines.process.engine import ProcessEngine

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS: tuple[tuple[str, type, str], ...] = (
    ("controller: whole loop", Embedded, "_tick"),
    ("  read requests and catalogue", Controller, "_look"),
    ("  take observations in", Observations, "take"),
    ("  move attempts on, judge", Reconciler, "run"),
    ("  place waiting jobs", Placer, "run"),
    ("  commit", Controller, "_commit"),
    ("  publish desired sets", Publisher, "publish"),
    ("executor: whole loop", Embedded, "_step"),
    ("  observe", ProcessEngine, "observe"),
    ("  start: directories and orders", ProcessEngine, "start"),
    ("  forget", ProcessEngine, "forget"),
)


def measure(count: int = 3000) -> dict[str, float]:
    """Run ``count`` jobs and return microseconds of processor time per job, by step."""
    spent: dict[str, float] = {}
    for label, owner, name in STEPS:
        setattr(owner, name, _timed(getattr(owner, name), label, spent))
    found = jobs.measure(count)
    per_job = {label: spent.get(label, 0.0) / count * 1e6 for label, _, _ in STEPS}
    per_job["jobs_per_s"] = found["jobs_per_s"]
    per_job["spawn_per_s"] = found["spawn_per_s"]
    return per_job


def _timed(step: Callable[..., object], label: str, spent: dict[str, float]) -> Callable[..., object]:
    @wraps(step)
    def timed(*arguments: object, **options: object) -> object:
        began = time.thread_time()
        try:
            return step(*arguments, **options)
        finally:
            spent[label] = spent.get(label, 0.0) + time.thread_time() - began

    return timed


if __name__ == "__main__":
    for what, value in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3000).items():
        print(f"{what:<36} {value:>10,.0f}")
