"""What is known of an attempt's end: who did not start and where, whose place was taken, and what was lost."""

from __future__ import annotations

import pytest

from holdfast.compiled.codec import load_manifest
from holdfast.domain.classify import CompiledCategories
from holdfast.domain.failure import EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Attempt, Run
from holdfast.domain.lifecycle import Interruption, Outcome, Step
from holdfast.domain.workloads.gang.endings import never_started, taken
from holdfast.errors import UnreadableSpec

CONDITION = FailureCondition
ATTEMPT = Attempt("j", 1, status_since=90.0)


def run(rank: int, *, started_at: float | None = None) -> Run:
    return Run(f"j-1-{rank}-1", "j", 1, rank, node=f"n{rank}", executor="local", started_at=started_at)


def test_who_did_not_start_in_time_is_named_with_its_node_so_that_the_next_attempt_can_avoid_it() -> None:
    stopped = Step("TerminateAttempts", Outcome.SUCCESS, 100.0)
    failure = never_started(ATTEMPT, [run(0, started_at=80.0), run(2), run(1)], stopped)
    assert (failure.rank, failure.node, failure.executor) == (1, "n1", "local")
    assert failure.message == "rank 1 did not start in time on node n1"


@pytest.mark.parametrize(
    ("outcome", "conditions"),
    [
        (RunOutcome(ended_by=EndedBy.PREEMPTION), {CONDITION.PREEMPTED}),
        (
            RunOutcome(ended_by=EndedBy.PREEMPTION, conditions=frozenset({CONDITION.OOM_KILLED})),
            {CONDITION.PREEMPTED, CONDITION.OOM_KILLED},
        ),
        (
            RunOutcome(ended_by=EndedBy.LOST, conditions=frozenset({CONDITION.EXECUTOR_LOST})),
            {CONDITION.PREEMPTED, CONDITION.EXECUTOR_LOST},
        ),
    ],
)
def test_what_else_befell_whose_place_was_taken_stays_known(
    outcome: RunOutcome, conditions: set[FailureCondition]
) -> None:
    by_itself = RunOutcome(ended_at=-1.0)
    ended = [(0, by_itself), (1, outcome)]
    failure = taken(ATTEMPT, ended, Interruption.PREEMPT, "asked by ann", CompiledCategories())
    assert failure.conditions >= conditions
    assert (failure.rank, failure.ended_by, failure.failed_at) == (1, EndedBy.PREEMPTION, 90.0)


def test_what_was_lost_ended_when_that_was_noticed() -> None:
    assert run(0, started_at=80.0).lost(100.0).ended_at == 100.0


def test_a_stored_manifest_that_is_none_is_said_to_be_damaged() -> None:
    with pytest.raises(UnreadableSpec, match="manifest"):
        load_manifest("{")
