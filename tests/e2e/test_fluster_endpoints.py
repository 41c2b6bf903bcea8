"""Endpoints by Fluster's door: bound to the attempt that registered them, bounded in size and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.service.endpoints import BOUNDS
from tests.e2e.fluster_stage import Connected, FlusterServer, RefusedError, cluster, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["fluster"]

Register = cluster.Controller.RegisterEndpointRequest


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    yield server.open()
    server.clean_up()


def runs(door: Connected, name: str, attempt: int = 0) -> None:
    def there() -> bool:
        status = door.status(name)
        return (status.state, status.current_attempt_id) == (cluster.JOB_STATE_RUNNING, attempt)

    wait_until(there, f"attempt {attempt} of {name}")


def listed(door: Connected, prefix: str) -> list[tuple[str, str, str]]:
    found = door("ListEndpoints", cluster.Controller.ListEndpointsRequest(prefix=prefix)).endpoints
    return [(one.name, one.address, one.job_id) for one in found]


def test_an_endpoint_is_there_while_its_attempt_runs_and_never_after(
    door: Connected, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gate = tmp_path_factory.mktemp("gate") / "g"
    script = f"#!/bin/sh\nuntil test -e {gate}.$HOLDFAST_ATTEMPT; do sleep 0.05; done; exit 1\n"
    retry = cluster.RetryConfig(max_retries_failure=1, initial_retry_delay_ms=10)
    door("LaunchJob", launch("exp/worker", script, retry=retry, cpu=0))
    runs(door, "exp/worker")
    sent = Register(name="exp/actor", address="here:1", job_id="exp/worker", metadata={"kind": "actor"})
    first = door("RegisterEndpoint", sent).endpoint_id
    assert door("RegisterEndpoint", sent).endpoint_id == first, "the same again"
    found = door("LookupEndpoint", cluster.Controller.LookupEndpointRequest(name="exp/actor")).endpoint
    assert (found.endpoint_id, found.address, found.job_id) == (first, "here:1", "exp/worker")
    assert dict(found.metadata) == {"kind": "actor"}
    assert listed(door, "exp/") == [("exp/actor", "here:1", "exp/worker")]
    gate.with_name("g.1").touch()
    runs(door, "exp/worker", 1)
    assert listed(door, "exp/") == []
    assert (
        door.refused("LookupEndpoint", cluster.Controller.LookupEndpointRequest(name="exp/actor")).code == "not_found"
    )
    sent.address = "there:2"
    second = door("RegisterEndpoint", sent).endpoint_id
    assert listed(door, "exp/") == [("exp/actor", "there:2", "exp/worker")]
    for key in (first, second, second, "nobody's"):
        door("UnregisterEndpoint", cluster.Controller.UnregisterEndpointRequest(endpoint_id=key))
    assert listed(door, "exp/") == []
    door("RegisterEndpoint", sent)
    gate.with_name("g.2").touch()
    door.ended("exp/worker")
    assert listed(door, "") == []
    assert door.refused("RegisterEndpoint", sent).code == "failed_precondition"


@pytest.mark.slow
def test_endpoints_outlive_their_server_and_not_what_ended_meanwhile(fluster: FlusterServer, tmp_path: Path) -> None:
    door, gate = fluster.open(), tmp_path / "gate"
    door("LaunchJob", launch("stays", "#!/bin/sh\nsleep 1000\n", cpu=0))
    door("LaunchJob", launch("goes", f"#!/bin/sh\nuntil test -e {gate}; do sleep 0.05; done\n", cpu=0))
    for name in ("stays", "goes"):
        runs(door, name)
        door("RegisterEndpoint", Register(name=f"x/{name}", address="here:1", job_id=name))
    fluster.end()
    fluster.start()
    door = Connected(fluster)
    there = [(f"x/{name}", "here:1", name) for name in ("stays", "goes")]
    assert listed(door, "x") == there
    fluster.end()
    gate.touch()
    fluster.start()
    door = Connected(fluster)
    door.ended("goes")
    assert listed(door, "x/") == there[:1]


def test_endpoints_are_found_by_whole_segments_of_their_names(door: Connected) -> None:
    door("LaunchJob", launch("seg", "#!/bin/sh\nsleep 1000\n", cpu=0))
    runs(door, "seg")
    for name in ("seg/a", "seg/a/b", "seg/ab"):
        door("RegisterEndpoint", Register(name=name, address="b", job_id="seg"))
    assert [name for name, _, _ in listed(door, "seg/a")] == ["seg/a", "seg/a/b"]
    assert [name for name, _, _ in listed(door, "seg/a/")] == ["seg/a/b"]
    assert listed(door, "seg/\0") == []
    wrong = door.refused("RegisterEndpoint", Register(name="a\0b", address="b", job_id="seg", metadata={"\0": "\0"}))
    assert (wrong.code, wrong.paths) == ("invalid_argument", ["name"])
    door("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="seg"))


@pytest.mark.slow
def test_endpoints_are_bounded_and_what_is_wrong_with_one_is_said_at_once(door: Connected) -> None:
    door("LaunchJob", launch("many", "#!/bin/sh\nsleep 1000\n", cpu=0))
    runs(door, "many")
    refused = door.refused("RegisterEndpoint", Register(job_id="many", metadata={"x": "y" * 5000}, name="n" * 1024))
    assert (refused.code, refused.paths) == ("invalid_argument", ["name", "address", "metadata"])
    assert door.refused("RegisterEndpoint", Register(job_id="nobody", name="a", address="b")).code == "not_found"
    for at in range(BOUNDS.of_a_run):
        door("RegisterEndpoint", Register(job_id="many", name=f"many/{at}", address="b"))
    with pytest.raises(RefusedError, match="too many endpoints"):
        door("RegisterEndpoint", Register(job_id="many", name="one more", address="b"))
    assert len(listed(door, "many/")) == BOUNDS.of_a_run
