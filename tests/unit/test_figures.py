"""Summaries of many jobs: what the figures mean, and how they read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from holdfast.api.http.endpoints.figures import get_summary
from holdfast.cli.render.figures import print_summary, rounded
from holdfast.cli.render.output import Output
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.failure import Cause
from holdfast.domain.job import Queue
from holdfast.ports.overview import AttemptFigures, FailureFigures, FigureScope, Recoveries
from holdfast.service.operations.backend import Backend
from holdfast.service.overview import Figures, summed_up
from tests.unit.conftest import exits, job_named, retrying
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.wire.figures import SummaryView
    from tests.unit.conftest import Lab

DAY_S = 86_400


class Given(MemoryStore):
    """A store whose figures are given."""

    def __init__(self, failures: Sequence[FailureFigures], wall_s: float = 100.0) -> None:
        super().__init__()
        self._given, self._wall_s = failures, wall_s

    def failure_figures(self, scope: FigureScope) -> Sequence[FailureFigures]:
        del scope
        return self._given

    def wall_time(self, scope: FigureScope) -> float:
        del scope
        return self._wall_s

    def attempt_figures(self, scope: FigureScope) -> dict[str | None, AttemptFigures]:
        del scope
        return {
            None: AttemptFigures(1, 0, 30.0),
            "Succeeded": AttemptFigures(2, 1, 50.0),
            "Failed": AttemptFigures(3, 1, 9.0),
        }

    def recoveries(self, scope: FigureScope) -> Recoveries:
        del scope
        return Recoveries(2, 4.0)


def failed(cause: Cause, count: int, node: str = "n1", category: str = "", subcategory: str = "") -> FailureFigures:
    return FailureFigures(cause, category, subcategory, node, count, 10.0 * count)


def figures(*failures: FailureFigures, wall_s: float = 100.0) -> Figures:
    return summed_up(Given(failures, wall_s), FigureScope(0.0, 100.0))


def test_failures_are_added_up_by_category_or_cause_and_by_node() -> None:
    found = figures(
        failed(Cause.OOM_KILLED, 3, "n1", "memory", "limit"),
        failed(Cause.OOM_KILLED, 2, "n2", "memory", "limit"),
        failed(Cause.KERNEL_NONZERO_EXIT, 4, "n2"),
        failed(Cause.SCHEDULER_TIMEOUT, 1, ""),
    )
    assert [(one.name, one.count) for one in found.by_kind] == [
        ("memory/limit", 5),
        ("kernel_nonzero_exit", 4),
        ("scheduler_timeout", 1),
    ]
    assert [(one.name, one.count, one.lost_s) for one in found.by_node] == [("n2", 6, 60.0), ("n1", 3, 30.0)]
    assert found.lost_s == pytest.approx(100.0)


def test_the_ratio_is_what_ran_to_success_or_still_runs_by_the_time_it_took() -> None:
    assert figures(wall_s=100.0).ettr == pytest.approx(0.8)
    assert figures(wall_s=0.0).ettr is None
    assert figures(wall_s=79.0).ettr == 1.0


def test_jobs_that_were_run_are_summed_up(lab: Lab) -> None:
    lab.store.put_entry(Queue("gpu"))
    lab.submit(job_named("good"), exits(0, after_s=60.0))
    lab.submit(job_named("bad", retrying(1, delay_s=10.0)), exits(1, after_s=20.0))
    lab.submit(job_named("other", queue="gpu"), exits(0, after_s=3.0))
    lab.pass_s(120.0)
    found = summary(lab)
    assert (found.jobs, found.attempts, found.retries, found.failed) == ({"Succeeded": 2, "Failed": 1}, 4, 1, 2)
    assert found.failures[0].kind == "kernel_nonzero_exit"
    assert found.lost_s == pytest.approx(40.0, abs=4.0)
    assert found.productive_s == pytest.approx(63.0, abs=4.0)
    assert found.wall_s == pytest.approx(113.0, abs=6.0)
    assert found.recoveries == 1
    assert found.mean_recovery_s == pytest.approx(10.0, abs=2.0)
    assert summary(lab, queue="gpu").jobs == {"Succeeded": 1}
    assert summary(lab, label=["team=nlp"]).jobs == {}
    assert summary(lab, within_s=1).jobs == {}


def summary(lab: Lab, **wanted: object) -> SummaryView:
    by = Caller(Principal("me", roles=(Role.VIEWER,)), 0.0)
    backend = Backend(lab.store, lab.clock, None, None, by.principal)  # type: ignore[arg-type] # no ids or logs
    found: SummaryView = get_summary(backend, by, **wanted)
    return found


def test_a_summary_is_read_in_a_few_lines(lab: Lab) -> None:
    lab.submit(job_named("bad", retrying(1, delay_s=10.0)), exits(1, after_s=20.0))
    lab.pass_s(120.0)
    stream = io.StringIO()
    print_summary(summary(lab), "24h", Output(stream))
    assert stream.getvalue().splitlines() == [
        "Last 24h",
        "Jobs:     1 Failed",
        "Attempts: 2, 1 of them retries",
        "Failures: 2, 40s lost to them",
        "ETTR:     0.0% (0s of lasting work in 50s)",
        "Recovery: once, 10s on average from a failure to the next start",
        "",
        "FAILURE              COUNT  LOST",
        "kernel_nonzero_exit  2      40s",
        "",
        "NODE  FAILURES  LOST",
        "n0    2         40s",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0s"), (0.0504, "50ms"), (59.6, "1m"), (3725.2, "1h2m5s")])
def test_durations_have_no_more_digits_than_mean_something(seconds: float, text: str) -> None:
    assert rounded(seconds) == text
