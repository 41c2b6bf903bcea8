"""Checks what the controller carries out, on its real memory and engine: due retries, raising handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.controller import Controller
from holdfast.domain.job import Job, JobState
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.store import Submission
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def _job(job_id: str, state: JobState, retry_at: float | None = None) -> Job:
    spec = dump_spec(JobSpec(job_id, ("true",)))
    return Job(job_id, job_id, "default", 0, NOW, spec, state=state, retry_at=retry_at, attempt=1)
