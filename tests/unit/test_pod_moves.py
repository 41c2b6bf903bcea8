"""The table of moves of attempts whose runs are pods."""

from __future__ import annotations

import pytest

from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, AttemptStatus
from holdfast.domain.workloads.kubejob.standing import POD_MOVES, PodsAre, moves

A = AttemptStatus
RUNNING, GOING = PodsAre.RUNNING, PodsAre.GOING


@pytest.mark.parametrize(
    ("status", "pods", "to"),
    [
        (A.PENDING, set(), []),
        (A.PENDING, {RUNNING}, [A.RUNNING]),
        (A.PENDING, {GOING}, [A.TERMINATING]),
        (A.PENDING, {RUNNING, GOING}, [A.RUNNING, A.TERMINATING]),
        (A.RUNNING, {RUNNING}, []),
        (A.RUNNING, {RUNNING, GOING}, [A.TERMINATING]),
        (A.TERMINATING, {RUNNING, GOING}, []),
    ],
)
def test_an_attempt_moves_with_its_pods(status: AttemptStatus, pods: set[PodsAre], to: list[AttemptStatus]) -> None:
    assert [move.to for move in moves(status, frozenset(pods))] == to


def test_no_move_leads_out_of_an_attempt_that_is_over() -> None:
    assert not {status for move in POD_MOVES for status in move.targets} & ATTEMPT_TERMINAL


def test_every_move_is_reached() -> None:
    made = {move.name for status in A for move in moves(status, frozenset(PodsAre))}
    assert made == {move.name for move in POD_MOVES}
