"""What sets count: restarts by hand and in place, and of which jobs it is forgotten that they failed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec, ReplicatedJob, RestartStrategy
from holdfast.domain.workloads.jobset.reconcile import InPlace, ReconcileInput, converge
from holdfast.domain.workloads.jobset.state import JobSetState, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.workloads.jobset.state import Transition

SPEC = JobSetSpec(name="js", replicated_jobs=(ReplicatedJob(name="a"), ReplicatedJob(name="b", replicas=2)))
LEFT = dict.fromkeys(("js-a-0", "js-b-0", "js-b-1"), (1, 1))
BEFORE = JobSetState(
    restarts=3, job_restarts={"b": {0: 4, 1: 5}}, group_restarts={"a": 6, "b": 7}, left_failed=LEFT, healthy_since=1.0
)
FRESH = JobSetState(left_failed=LEFT)


@pytest.mark.parametrize(
    ("restart", "counts", "counts_at_first", "left"),
    [
        (lambda state: restart_set(SPEC, state, 9.0), (4, 5, 7), (1, 0, 0), ()),
        (lambda state: restart_group(SPEC, state, "b"), (3, 5, 8), (0, 0, 1), ("js-a-0",)),
        (lambda state: restart_job(SPEC, state, "b", 1), (3, 6, 7), (0, 1, 0), ("js-a-0", "js-b-0")),
    ],
)
def test_a_restart_by_hand_counts_once_where_it_belongs_and_forgets_what_failed_there(
    restart: Callable[[JobSetState], Transition],
    counts: tuple[int, int, int],
    counts_at_first: tuple[int, int, int],
    left: tuple[str, ...],
) -> None:
    for before, expected in ((BEFORE, counts), (FRESH, counts_at_first)):
        after = restart(before).state
        of_job = after.job_restarts.get("b", {}).get(1, 0)
        assert (after.restarts, of_job, after.group_restarts.get("b", 0)) == expected
        assert after.left_failed == dict.fromkeys(left, (1, 1))
        assert after.healthy_since is None
        assert (after.job_restarts.get("b", {}).get(0), after.group_restarts.get("a")) == (
            before.job_restarts.get("b", {}).get(0),
            before.group_restarts.get("a"),
        )


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 12), st.integers(0, 6), st.integers(0, 5))
def test_restarts_in_place_are_counted_without_those_that_count_nowhere(
    counted: int, uncounted: int, latest: int, of_a_container: int, most: int
) -> None:
    policy = FailurePolicy(max_restarts=most, strategy=RestartStrategy.IN_PLACE)
    spec = JobSetSpec(name="js", replicated_jobs=SPEC.replicated_jobs, failure=policy)
    state = JobSetState(restarts=counted + uncounted, restarts_counted=counted)
    seen = InPlace((latest, latest, None), of_a_container)
    ended = converge(spec, state, [], ReconcileInput(1.0, in_place=seen)).state.terminal
    too_often = of_a_container > most or latest > most + uncounted
    assert ended == (Terminal.FAILED if too_often else Terminal.NONE)
