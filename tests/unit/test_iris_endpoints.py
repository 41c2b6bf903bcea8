"""Endpoints by Iris' door: of attempts of tasks that run, each for a time within which it is renewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.iris._generated import time as times
from holdfast.api.iris.calls import ENDPOINTS
from tests.unit.conftest import exits
from tests.unit.iris_lab import FOREVER, C, IrisLab

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVE, AGAIN, OVER, WAITS = "/ann/serve", "/ann/again", "/ann/over", "/ann/waits"


@pytest.fixture
def iris() -> Iterator[IrisLab]:
    """One of two tasks that runs, one at its second attempt, one that has ended and one that has no place."""
    iris = IrisLab()
    iris.launch(SERVE, replicas=2)
    once = {"max_task_failures": 1, "max_retries_failure": 1}
    iris.launch(AGAIN, lambda order: exits(1) if order.attempt == 1 else FOREVER, **once)
    iris.launch(OVER, exits(0))
    iris.pass_s(5.0)
    iris.launch(WAITS)
    yield iris
    iris.close()


def asked(**more: Any) -> C.RegisterEndpointRequest:  # noqa: ANN401 - fields by name
    return C.RegisterEndpointRequest(
        **{"name": "/x/y", "address": "h:1", "task_id": f"{SERVE}/0", "endpoint_id": "e1", **more}
    )


def register(iris: IrisLab, **more: Any) -> C.RegisterEndpointResponse:  # noqa: ANN401 - fields by name
    found: C.RegisterEndpointResponse = iris.endpoints("RegisterEndpoint", asked(**more))
    return found


def listed(iris: IrisLab, **where: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - fields by name
    found = iris.endpoints("ListEndpoints", C.ListEndpointsRequest(**where)).endpoints
    return [(one.name, one.task_id) for one in found]


def test_an_endpoint_is_told_as_it_was_registered(iris: IrisLab) -> None:
    assert register(iris, metadata={"a": "b"}).endpoint_id == "e1"
    [one] = iris.endpoints("ListEndpoints", C.ListEndpointsRequest()).endpoints
    assert (one.endpoint_id, one.name, one.address, one.task_id) == ("e1", "/x/y", "h:1", f"{SERVE}/0")
    assert dict(one.metadata) == {"a": "b"}
    assert register(iris, endpoint_id="", task_id=f"{SERVE}/1").endpoint_id not in {"", "e1"}


@pytest.mark.parametrize(
    ("lease_ms", "granted_ms"),
    [(None, 600_000), (0, 180_000), (179_999, 180_000), (300_500, 300_500), (600_001, 600_000)],
)
def test_a_lease_is_as_long_as_is_asked_for_within_bounds_and_over_at_its_end(
    iris: IrisLab, lease_ms: int | None, granted_ms: int
) -> None:
    lease = {} if lease_ms is None else {"lease_duration": times.Duration(milliseconds=lease_ms)}
    assert register(iris, **lease).lease_duration.milliseconds == granted_ms
    iris.clock.time += granted_ms / 1000 - 1
    assert listed(iris)
    iris.clock.time += 2
    assert not listed(iris)


def test_an_endpoint_that_is_renewed_is_there_for_as_long_again(iris: IrisLab) -> None:
    register(iris)
    iris.clock.time += 500
    register(iris, address="h:2")
    iris.clock.time += 500
    [one] = iris.endpoints("ListEndpoints", C.ListEndpointsRequest()).endpoints
    assert one.address == "h:2"


def test_endpoints_are_found_by_names_or_beginnings_of_names_and_by_tasks(iris: IrisLab) -> None:
    first, second, third = f"{SERVE}/0", f"{SERVE}/1", f"{AGAIN}/0"
    for number, (name, task) in enumerate((("/x/y", first), ("/x/yz", second), ("/x", third))):
        register(iris, name=name, task_id=task, endpoint_id=f"e{number}", attempt_id=int(task == third))
    every = [("/x/y", first), ("/x/yz", second), ("/x", third)]
    assert listed(iris) == listed(iris, prefix="/x") == every
    assert listed(iris, prefix="/x/y") == every[:2]
    assert listed(iris, prefix="/x/y", exact=True) == every[:1]
    assert listed(iris, prefix="/x/", exact=True) == []
    assert listed(iris, task_ids=[second]) == every[1:2]
    assert listed(iris, task_ids=[first, third]) == [every[0], every[2]]
    assert listed(iris, prefix="/x/y", task_ids=[third]) == []
    assert listed(iris, task_ids=[f"{AGAIN}/1"]) == []


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"task_id": f"{AGAIN}/0"}, "FAILED_PRECONDITION"),
        ({"task_id": f"{AGAIN}/0", "attempt_id": 1}, "OK"),
        ({"task_id": f"{AGAIN}/0", "attempt_id": 2}, "FAILED_PRECONDITION"),
        ({"task_id": f"{AGAIN}/0:1"}, "OK"),
        ({"task_id": f"{AGAIN}/0:0", "attempt_id": 1}, "FAILED_PRECONDITION"),
        ({"task_id": f"{SERVE}/1"}, "OK"),
        ({"task_id": f"{SERVE}/2"}, "NOT_FOUND"),
        ({"task_id": "/ann/nobody/0"}, "NOT_FOUND"),
        ({"task_id": f"{OVER}/0"}, "FAILED_PRECONDITION"),
        ({"task_id": f"{WAITS}/0"}, "FAILED_PRECONDITION"),
        ({"task_id": SERVE}, "INVALID_ARGUMENT"),
        ({"name": ""}, "INVALID_ARGUMENT"),
        ({"name": "a" * 1023}, "OK"),
        ({"name": "é" * 512}, "INVALID_ARGUMENT"),
        ({"name": "a\0b"}, "INVALID_ARGUMENT"),
        ({"address": ""}, "INVALID_ARGUMENT"),
        ({"endpoint_id": "e" * 255}, "OK"),
        ({"endpoint_id": "e" * 256}, "INVALID_ARGUMENT"),
        ({"metadata": {"ab": "c" * 4094}}, "OK"),
        ({"metadata": {"ab": "c" * 4095}}, "INVALID_ARGUMENT"),
        ({"metadata": {"ab": "c" * 2047, "cd": "e" * 2047}}, "INVALID_ARGUMENT"),
    ],
)
def test_endpoints_are_those_of_the_current_attempts_of_tasks_that_run(
    iris: IrisLab, given: dict[str, Any], code: str
) -> None:
    assert iris.refused("RegisterEndpoint", asked(**given), ENDPOINTS) == code


def test_an_endpoint_ends_with_its_attempt_and_when_it_is_forgotten(iris: IrisLab) -> None:
    register(iris)
    register(iris, endpoint_id="e2", task_id=f"{AGAIN}/0:1")
    for key in ("e1", "nobody's"):
        iris.endpoints("UnregisterEndpoint", C.UnregisterEndpointRequest(endpoint_id=key))
    assert listed(iris) == [("/x/y", f"{AGAIN}/0")]
    iris("TerminateJob", C.TerminateJobRequest(job_id=AGAIN))
    iris.pass_s(5.0)
    assert listed(iris) == []


@pytest.mark.parametrize("tasks", [["bad"], [f"{SERVE}/0"] * 1_001])
def test_tasks_that_are_none_and_very_many_are_refused(iris: IrisLab, tasks: list[str]) -> None:
    assert iris.refused("ListEndpoints", C.ListEndpointsRequest(task_ids=tasks), ENDPOINTS) == "INVALID_ARGUMENT"
    assert listed(iris, task_ids=[f"{SERVE}/0"] * 1_000) == []
