"""A job's tasks as Iris tells them, where only the runs of the first ones were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.iris.status import job_status, task_status
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.overview import MOST_RANKS
from tests.unit.conftest import job_named

if TYPE_CHECKING:
    from tests.unit.conftest import Lab

TASKS = MOST_RANKS + 3


def counts(lab: Lab, job_id: str) -> dict[str, int]:
    """Count the tasks by state, as a job's status does."""
    last = next(reversed(lab.attempts(job_id)), None)
    runs = [run for run in lab.runs(job_id) if run.rank < MOST_RANKS]
    told: dict[str, int] = job_status(lab.job(job_id), last, runs)["task_state_counts"]
    return told


def test_tasks_whose_runs_were_not_read_are_where_their_attempt_is(lab: Lab) -> None:
    spec = job_named("many", gang=TASKS, resources=Resources(100, 0, 0))
    job = lab.submit(spec, SimulatedRun(duration_s=None))
    assert counts(lab, job) == {"pending": TASKS}
    lab.pass_s(1.0)
    assert counts(lab, job) == {"running": TASKS}


def test_a_task_has_the_ports_of_its_own_run_while_that_runs(lab: Lab) -> None:
    job = lab.submit(job_named("serves", gang=2, ports=("http",)), SimulatedRun(duration_s=None))
    lab.pass_s(1.0)
    last, runs = lab.attempts(job), [evolve(run, ports={"http": 20_000 + run.rank}) for run in lab.runs(job)]
    told = [task_status(lab.job(job), rank, last, runs)["ports"] for rank in (0, 1)]
    assert told == [{"http": 20_000}, {"http": 20_001}]
