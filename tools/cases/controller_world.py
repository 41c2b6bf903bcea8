"""Checks what the controller carries out, on its real memory and engine: due retries, raising handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.controller import Controller
from holdfast.controller.state import ControllerState
from holdfast.domain.job import Attempt, Job, JobState, Run
from holdfast.domain.lifecycle import AttemptHandler, AttemptStatus, HistoryRow, RunStatus
from holdfast.domain.workloads.gang.flight import AttemptContext, Flight
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.store import Submission
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.active import Active
    from holdfast.domain.lifecycle.engine import Report

NOW = 1_000_000.0


def ready_at(retry_at: float, moments: Sequence[float]) -> list[bool]:
    """Say at which moments a job whose retry is due at a time is in the queue of pending jobs."""
    return [_stands_in_line(retry_at, moment) for moment in moments]


def _stands_in_line(retry_at: float, now: float) -> bool:
    store = MemoryStore()
    store.submit(Submission([_job("job", JobState.BACKOFF, retry_at)]))
    controller = Controller(store, clock=_At(now), dice=_At(0.0), load_spec=load_spec, controller_epoch="cases")
    controller.tick()
    return "job" in controller.state.pending


class _At:
    """A clock, and dice, that always say the same."""

    def __init__(self, value: float) -> None:
        self._value = value

    def now(self) -> float:
        return self._value

    def steady(self) -> float:
        return self._value

    def draw(self) -> float:
        return self._value


def history_after_raising(count: int) -> list[HistoryRow]:
    """Let a handler raise while it works on attempts; return what their histories say."""
    state = ControllerState(load_spec)
    for number in range(count):
        active = _prepared(state, f"job{number}")
        flight = _Raising(active.spec, active.job, active.attempt, active.runs, _AROUND)
        flight.advance(NOW)
        state.steps(active, flight.orders.steps)
    return list(state.changes.history.values())


def _no_judgement(*about: object) -> Never:
    raise AssertionError(about)


_AROUND = AttemptContext(alive=bool, engines={}, judging=_no_judgement)


class _Raising(Flight):
    """An attempt whose phases have a defect."""

    def work(self, row: AttemptHandler, now: float) -> Report:
        msg = f"cannot {row.name} at {now}"
        raise RuntimeError(msg)


def _job(job_id: str, state: JobState, retry_at: float | None = None) -> Job:
    spec = dump_spec(JobSpec(job_id, ("true",)))
    return Job(job_id, job_id, "default", 0, NOW, spec, state=state, retry_at=retry_at, attempt=1)


def _prepared(state: ControllerState, job_id: str) -> Active:
    job = _job(job_id, JobState.RUNNING)
    attempt = Attempt(job_id, 1, AttemptStatus.PREPARED, status_since=NOW)
    run = Run(f"{job_id}-1-0-1", job_id, 1, 0, RunStatus.PREPARED, executor="e", node="n")
    return state.open(job, attempt, [run])
