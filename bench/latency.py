"""How long a failure takes to become a decision, and the next attempt to begin, told by the programs themselves.

One part has its failures one after another, the other all at the same moment; both on the embedded server with
SQLite fully synchronised. Each program is one shell: it waits at a gate and empties a file as its last act; its
successor empties another as its first, and runs on until all have begun. The files' times of change are the moments,
exact to the kernel's tick (4 ms or less), so that telling the time costs no process of its own.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app import running, wiring
from holdfast.app.data.datadir import DataDir
from holdfast.app.embedded import start_embedded
from holdfast.app.settings import Settings
from holdfast.app.time import SortableIds, SystemClock
from holdfast.domain.job import JOB_TERMINAL, JobState, Resources
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.process.engine import ProcessEngine
from holdfast.service.submit import Submitter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.engine import Observation
    from holdfast.ports.store import Changes, Store

    Observe = Callable[[ProcessEngine], Mapping[str, Observation]]

PROGRAM = """
test "$HOLDFAST_ATTEMPT" = 1 || : > "$1/began"
read -r line < "$1/gate"
test "$HOLDFAST_ATTEMPT" = 1 || exit 0
: > "$1/ended"
exit 1
"""
AT_ONCE = RetryPolicy("again", retry_limit=1, default_action=Action.RETRY, backoff=Backoff(initial_s=0.0))
QUIET_S = 0.6
"""From the last program waiting at its gate to the first failure."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
"""Where noting the time does not wait for a disk, on systems that have it."""
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
    with ExitStack() as stack:
        data, notes = (
            Path(stack.enter_context(_folder(where))) for where in (None, MEMORY if MEMORY.is_dir() else None)
        )
        watch, jobs = Watch(), [_notes(notes, number) for number in range(count)]
        store = _serve(stack, watch, data)
        Submitter(store, SystemClock(), SortableIds()).submit_many([_spec(job) for job in jobs])
        _open_gates(jobs, every_s)  # the first attempts fail
        _open_gates(jobs, 0.0, second=True)  # these succeed
        _await_success(store, count)
        gaps = [gap for job in jobs if (gap := _gap(job)) is not None]
    if len(gaps) != count:
        msg = f"{len(gaps)} of {count} jobs began again"
        raise RuntimeError(msg)
    return {
        "next_p50_ms": _percentile(gaps, 0.5) * 1000,
        "next_p99_ms": _percentile(gaps, 0.99) * 1000,
        "decided_p99_ms": _percentile(watch.spans(), 0.99) * 1000,
    }


def bare(count: int = 100) -> dict[str, float]:
    """Measure the same programs under a bare loop: it starts each one's successor as soon as it has ended.

    Nothing is decided, written down or contained, so that no scheduler on this machine can be faster.
    """
    with _folder(MEMORY if MEMORY.is_dir() else None) as folder:
        jobs = [_notes(Path(folder), number) for number in range(count)]
        first = {_start(job, 1): job for job in jobs}
        _open_gates(jobs, 0.0)
        second = [_start(first[os.wait()[0]], 2) for _ in jobs]
        _open_gates(jobs, 0.0, second=True)
        for process in second:
            os.waitpid(process, 0)
        gaps = [gap for job in jobs if (gap := _gap(job)) is not None]
    return {"next_p50_ms": _percentile(gaps, 0.5) * 1000, "next_p99_ms": _percentile(gaps, 0.99) * 1000}


def _start(job: Path, attempt: int) -> int:
    environment = {"PATH": os.defpath, "HOLDFAST_ATTEMPT": str(attempt)}
    return os.posix_spawn("/bin/sh", ["sh", "-c", PROGRAM, "sh", str(job)], environment)


def _folder(where: Path | None) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=where)


def _notes(folder: Path, number: int) -> Path:
    """Make what one job's programs need to wait and to note the time: there before, so that no name is made then."""
    job = folder / f"job-{number}"
    job.mkdir()
    os.mkfifo(job / "gate")
    for act in ("ended", "began"):
        (job / act).touch()
        os.utime(job / act, (0.0, 0.0))
    return job


def _spec(job: Path) -> JobSpec:
    command = ("/bin/sh", "-c", PROGRAM, "sh", str(job))
    return JobSpec(name=job.name, command=command, resources=Resources(1), inline_policies=(AT_ONCE,))


def _serve(stack: ExitStack, watch: Watch, data: Path) -> Store:
    settings = Settings(data=data, cpus=1.0)
    directory = DataDir(settings.data)
    store = wiring.store(settings, directory)
    stack.callback(store.close)
    watch.on(stack, store)
    start_embedded(stack, settings, directory, running.own(settings, directory, "bench"))
    return store


def _open_gates(jobs: Sequence[Path], every_s: float, *, second: bool = False) -> None:
    """Once every program waits, let them go ``every_s`` apart: a reader of a pipe sees its end when the writer goes."""
    gates = [_gate(job, second=second) for job in jobs]
    time.sleep(QUIET_S)
    for gate in gates:
        os.close(gate)
        if every_s:
            time.sleep(every_s)


def _gate(job: Path, *, second: bool) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while second and not (job / "began").stat().st_mtime_ns and time.monotonic() < deadline:
        time.sleep(0.01)  # the first program may still be about to leave the gate
    while True:
        try:
            return os.open(job / "gate", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > deadline:  # that one says: nobody reads yet
                raise
        time.sleep(0.01)


def _await_success(store: Store, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while sum(store.count_by_state().get(state, 0) for state in JOB_TERMINAL) < count:
        if time.monotonic() > deadline:
            msg = f"not every job ended: {dict(store.count_by_state())}"
            raise RuntimeError(msg)
        time.sleep(0.05)
    if store.count_by_state().get(JobState.SUCCEEDED, 0) != count:
        msg = f"not every job succeeded: {dict(store.count_by_state())}"
        raise RuntimeError(msg)


def _gap(job: Path) -> float | None:
    """Return seconds between a job's failure and its next attempt's start."""
    ended, began = ((job / act).stat().st_mtime_ns for act in ("ended", "began"))
    return (began - ended) / 1e9 if ended and began else None


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    for apart in (0.03, 0.0):
        for name, value in measure(every_s=apart).items():
            print(f"{apart:5} s apart: {name:16} {value:8.2f}")
