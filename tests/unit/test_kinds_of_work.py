"""What people meet of a kind is described once, and everything that can be seen of one is in that description."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.api.http.endpoints.endpoint import groups
from holdfast.cli.nouns import OF_WORK, SINGULAR, find_noun
from holdfast.domain.audit import Act
from holdfast.domain.events.operators import OperatorActed
from holdfast.domain.events.registry import StoredEvent
from holdfast.domain.rights import WORK
from holdfast.domain.terms.kinds import ARRAY, JOB, JOB_SET, KINDS, KindInfo
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes
from holdfast.domain.workloads.dependencies import Dependency
from holdfast.domain.workloads.jobset.model import CONTROLLER, JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, SetCondition, Terminal
from holdfast.domain.workloads.spec import JobSpec
from holdfast.wire.base import API
from holdfast.wire.render_events import event_view

AFTER = (Dependency("first"),)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_said_of_the_states_of_a_kind_is_about_states_it_has(kind: KindInfo) -> None:
    named = {
        *kind.ended,
        *kind.paused,
        *kind.aside,
        kind.success,
        *(one for each in kind.steered.values() for one in each),
    }
    assert named <= {*kind.states}
    assert {*kind.steered} <= {*kind.acts} <= {*Act}
    assert kind.success in kind.ended
    assert {*kind.moving, *kind.paused, *kind.ended} == {*kind.states}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_is_called_the_same_everywhere(kind: KindInfo) -> None:
    noun = find_noun(kind.plural)
    assert noun is not None
    assert (OF_WORK[noun], SINGULAR[noun]) == (kind, kind.spellings[0])
    assert kind.subject in WORK
    asked = StoredEvent(1, None, None, 0.0, OperatorActed("ann", "hold", kind.subject, "train"))
    assert event_view(asked).subject == f"{kind.plural}/train"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_there_is_an_address_for_everything_that_can_be_asked_of_one_of_a_kind(kind: KindInfo) -> None:
    paths = {endpoint.path for group in groups() for endpoint in group if endpoint.method == "POST"}
    named = f"{API}/{kind.plural}/{{ref}}/"
    assert {act for act in Act if f"{named}{act}" in paths} == {*kind.acts}


def test_an_array_is_in_every_state_of_its_kind_at_some_time_and_in_no_other() -> None:
    found = {
        Array(
            id="a",
            name="a",
            deleting=deleting,
            state=ArrayState(made=made, stopping=stopping, status=status, held=held),
        ).phase(ArraySpec(JobSpec("a", command=("true",), after=after), indexes=(Indexes(0, 1),)))
        for deleting, made, stopping, status, held, after in product(
            (False, True), (0, 1), ("", "Failed"), ("", "Succeeded", "Failed", "Cancelled"), ("", "hot"), ((), AFTER)
        )
    }
    assert found == {*ARRAY.states}


def test_a_job_set_is_in_every_state_of_its_kind_at_some_time_and_in_no_other() -> None:
    conditions = [(), *((SetCondition(one, status=True, reason="r", message="m", since=0.0),) for one in _CONDITIONS)]
    found = {
        JobSet(
            id="s",
            name="s",
            deleting=deleting,
            state=JobSetState(terminal=terminal, conditions=told, started_at=started_at),
        ).phase(JobSetSpec(name="s", suspend=suspend, managed_by=managed_by, after=after))
        for deleting, terminal, told, started_at, suspend, managed_by, after in product(
            (False, True), Terminal, conditions, (None, 1.0), (False, True), (None, CONTROLLER, "other"), ((), AFTER)
        )
    }
    assert found == {*JOB_SET.states}


_CONDITIONS = ("Completed", "Failed", "Suspended", "RestartingJobSet")


def test_what_is_waited_for_is_what_one_can_come_to() -> None:
    assert JOB.awaited == JOB.states
    assert "Deleting" not in {*ARRAY.awaited, *JOB_SET.awaited}
    assert {"Held", "Waiting"} <= {*ARRAY.awaited}
