"""How long a failure takes to become a decision, and the next attempt to begin, told by the programs themselves.

One part has its failures one after another, the other all at the same moment; both on the embedded server with
SQLite fully synchronised and programs that note the time as their last and first act.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app import wiring
from holdfast.app.datadir import DataDir
from holdfast.app.driver import start_embedded
from holdfast.app.settings import Settings
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy
from holdfast.domain.spec import JobSpec, Resources
from holdfast.engines.process.engine import ProcessEngine
from holdfast.service.submit import Submitter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.engine import Observation
    from holdfast.ports.store import Changes, Store

    Observe = Callable[[ProcessEngine], Mapping[str, Observation]]

PROGRAM = """
test "$HOLDFAST_ATTEMPT" = 1 || { exec date "+$HOLDFAST_JOB_NAME began %s%N" >> "$1"; }
now=$(date +%s%N); sleep "$(( ($2 - now) / 1000000000 )).$(printf %09d $(( ($2 - now) % 1000000000 )))"
date "+$HOLDFAST_JOB_NAME ended %s%N" >> "$1"
exit 1
"""
AT_ONCE = RetryPolicy("again", retry_limit=1, default_action=Action.RETRY, backoff=Backoff(initial_s=0.0))
LEAD_S = 3.0
"""From submission to the first failure: by then every program waits for its time."""
PATIENCE_S = 120.0


class Watch:
    """When each run's end was first observed, and when the decision about it was safe."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.observed: dict[str, float] = {}
        self.decided: dict[str, float] = {}

    def on(self, stack: ExitStack, store: Store) -> None:
        """Watch every engine and store of this process until the stack ends."""
        _replace(stack, ProcessEngine, "observe", self._observing)
        _replace(stack, type(store), "commit", self._committing)

    def _observing(self, observe: Observe) -> Observe:
        @wraps(observe)
        def watched(engine: ProcessEngine) -> Mapping[str, Observation]:
            seen, now = observe(engine), time.perf_counter()
            for uid, one in seen.items():
                if one.outcome is not None:
                    self.observed.setdefault(uid, now)
            return seen

        return watched

    def _committing(self, commit: Callable[..., object]) -> Callable[..., object]:
        @wraps(commit)
        def watched(store: Store, changes: Changes) -> object:
            done = commit(store, changes)
            now = time.perf_counter()
            judged = {key for key, attempt in changes.attempts.items() if attempt.decision is not None}
            for uid, run in changes.runs.items():
                if (run.job_id, run.attempt) in judged:
                    self.decided.setdefault(uid, now)
            return done

        return watched

    def spans(self) -> list[float]:
        """Return seconds from observation to commit, for each decision."""
        return [at - self.observed[uid] for uid, at in self.decided.items() if uid in self.observed]


def _replace(stack: ExitStack, owner: type, name: str, wrap: Callable[..., object]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, wrap(original))
    stack.callback(setattr, owner, name, original)


def measure(count: int = 100, *, every_s: float = 0.03) -> dict[str, float]:
    """Let ``count`` jobs fail once, ``every_s`` apart (0: all at once), with no delay before their retry.

    Returns:
        ``next_p50_ms`` and ``next_p99_ms`` from a program's last act to its successor's first, and
        ``decided_p99_ms`` from the executor seeing an end to the decision being safe.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, ExitStack() as stack:
        watch, ledger = Watch(), Path(folder) / "ledger"
        _run(stack, watch, ledger, count, every_s)
        gaps = _gaps(ledger)
    if len(gaps) != count:
        msg = f"{len(gaps)} of {count} jobs began again"
        raise RuntimeError(msg)
    return {
        "next_p50_ms": _percentile(gaps, 0.5) * 1000,
        "next_p99_ms": _percentile(gaps, 0.99) * 1000,
        "decided_p99_ms": _percentile(watch.spans(), 0.99) * 1000,
    }


def _run(stack: ExitStack, watch: Watch, ledger: Path, count: int, every_s: float) -> None:
    settings = Settings(data=ledger.parent / "data", cpus=1.0)
    directory = DataDir(settings.data)
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    watch.on(stack, store)
    start_embedded(stack, settings, directory)
    first = SystemClock().now() + LEAD_S
    specs = [_spec(number, ledger, first + number * every_s) for number in range(count)]
    Submitter(store, SystemClock(), SortableIds()).submit_many(specs)
    deadline = time.monotonic() + PATIENCE_S
    while sum(store.count_by_state().get(state, 0) for state in JOB_TERMINAL) < count:
        if time.monotonic() > deadline:
            msg = f"not every job ended: {dict(store.count_by_state())}"
            raise RuntimeError(msg)
        time.sleep(0.05)
    if store.count_by_state().get(JobState.SUCCEEDED, 0) != count:
        msg = f"not every job succeeded: {dict(store.count_by_state())}"
        raise RuntimeError(msg)


def _spec(number: int, ledger: Path, fails_at: float) -> JobSpec:
    command = ("/bin/sh", "-c", PROGRAM, "sh", str(ledger), str(int(fails_at * 1e9)))
    return JobSpec(name=f"job-{number}", command=command, resources=Resources(1), inline_policies=(AT_ONCE,))


def _gaps(ledger: Path) -> list[float]:
    """Return seconds between each job's failure and its next attempt's start."""
    acts: dict[str, dict[str, int]] = {}
    for line in ledger.read_text().splitlines():
        name, what, at = line.split()
        acts.setdefault(name, {})[what] = int(at)
    return [(act["began"] - act["ended"]) / 1e9 for act in acts.values() if len(act) == len(("began", "ended"))]


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    for apart in (0.03, 0.0):
        for name, value in measure(every_s=apart).items():
            print(f"{apart:5} s apart: {name:16} {value:8.2f}")
