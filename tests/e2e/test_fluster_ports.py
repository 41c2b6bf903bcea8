"""The ports of jobs by Fluster's door, as others than their programs learn of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.fluster_stage import Connected, FlusterServer, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fluster"]


def test_the_ports_of_a_job_are_told_while_it_runs_also_by_a_server_after_a_killed_one(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door, gate, said = fluster.open(), tmp_path / "gate", tmp_path / "said"
    waits = f"until test -e {gate}; do sleep 0.05; done\n"
    writes = f"echo $FLUSTER_PORT_HTTP $FLUSTER_PORT_A_B > {said}.new\nmv {said}.new {said}\n"
    sent = launch("serves", f"#!/bin/sh\n{writes}{waits}", cpu=0)
    sent.ports.extend(("http", "a-b"))
    door("LaunchJob", sent)
    door("LaunchJob", launch("has none", f"#!/bin/sh\n{waits}", cpu=0))
    wait_until(lambda: said.exists() and door.status("serves").ports, "ports that are told")
    fluster.end()
    fluster.start().close()
    door = Connected(fluster)
    http, other = map(int, said.read_text().split())
    ports = {"http": http, "a-b": other}
    assert door.status("serves").ports == ports
    assert {one.job_id: dict(one.ports) for one in door("ListJobs").jobs} == {"serves": ports, "has none": {}}
    with fluster.client() as admin:
        [job] = admin.jobs(name="serves")
        assert admin.job(job.id).attempts[-1].runs[0].ports == ports
    gate.touch()
    assert not door.ended("serves").ports, "they may be another's by now"
