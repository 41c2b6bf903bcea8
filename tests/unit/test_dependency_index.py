"""Who waits for what, in the controller's memory."""

from __future__ import annotations

from holdfast.controller.dependencies import Waits
from holdfast.controller.work_queue import WorkQueue
from holdfast.domain.job import Job, JobState
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.dependencies import Dependency, state_of
from holdfast.ports.store import Changes
from tools.memory_store import MemoryStore


def test_what_ended_and_was_deleted_before_those_who_wait_are_looked_at_has_ended_all_the_same() -> None:
    waits, after = Waits(WorkQueue()), (Dependency("prepare", id="other"),)
    waits.watch("train", GANG, after, ())
    ended = Job("other", "prepare", "default", 0, 1.0, "{}", state=JobState.SUCCEEDED)
    waits.heed("other", ended)
    waits.heed("other", None)
    waits.look_up(MemoryStore(), Changes())
    assert waits.standings(after, ()) == [state_of(ended)]
