"""Children of jobs by Fluster's door end when their parent does, whoever is killed meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fluster_stage import FINISHED, Connected, FlusterServer, RefusedError, cluster, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fluster"]
FOREVER = "#!/bin/sh\nsleep 1000\n"
KILLED, SUCCEEDED = cluster.JOB_STATE_KILLED, cluster.JOB_STATE_SUCCEEDED


def until(gate: Path) -> str:
    """Return a program that ends when a file is there."""
    return f"#!/bin/sh\nuntil test -e {gate}; do sleep 0.05; done\n"


def all_run(door: Connected, *names: str) -> None:
    running = cluster.JOB_STATE_RUNNING
    wait_until(lambda: all(door.status(name).state == running for name in names), f"{names} run")


def test_children_end_with_their_parent_and_say_so_and_no_more_are_launched(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door, gate = fluster.open(), tmp_path / "gate"
    programs = {"a": until(gate), "a/b": FOREVER, "a/b/c": FOREVER, "ab": FOREVER}
    for name, program in programs.items():
        door("LaunchJob", launch(name, program, cpu=0))
    all_run(door, *programs)
    sent = launch("a/late", FOREVER, cpu=0)
    door("LaunchJob", sent)
    gate.touch()
    assert door.ended("a").state == SUCCEEDED
    for name in ("a/b", "a/b/c", "a/late"):
        one = door.ended(name)
        assert (one.state, one.error) == (KILLED, "its parent, job a, has ended: Succeeded")
    assert door.status("ab").state == cluster.JOB_STATE_RUNNING
    with fluster.client() as admin:
        [child] = [job for job in admin.jobs() if job.group == "a/b"]
        [alone] = [job for job in admin.jobs() if job.name == "ab"]
        parent = admin.job(admin.job(child.id).parent or "")
        assert (parent.group, alone.parent, child.parent) == ("a", None, parent.id)
    assert ["Parent:", parent.id] in [line.split() for line in fluster.run("describe", child.id).stdout.splitlines()]
    assert "its parent, job a, has ended: Succeeded" in fluster.run("why", child.id).stdout
    refused = door.refused("LaunchJob", launch("a/later", FOREVER, cpu=0))
    assert (refused.code, refused.message) == (
        "failed_precondition",
        "its parent, job 'a', has ended (Succeeded), and can have no more children",
    )
    assert door("LaunchJob", sent).job_id == "a/late", "sent again, it is answered as the first time"


def test_children_end_also_when_their_parent_ended_while_no_server_was_there(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door, gate = fluster.open(), tmp_path / "gate"
    for name, program in {"a": until(gate), "a/b": FOREVER}.items():
        door("LaunchJob", launch(name, program, cpu=0))
    all_run(door, "a", "a/b")
    fluster.end()
    gate.touch()
    fluster.start()
    door = Connected(fluster)
    assert [door.ended(name).state for name in ("a", "a/b")] == [SUCCEEDED, KILLED]


@pytest.mark.slow
def test_of_children_that_are_launched_while_their_parent_ends_none_is_left(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door, gate = fluster.open(), tmp_path / "gate"
    door("LaunchJob", launch("a", until(gate), cpu=0))
    all_run(door, "a")

    def child(at: int) -> str:
        if at == 20:
            gate.touch()
        try:
            door("LaunchJob", launch(f"a/{at}", FOREVER, cpu=0))
        except RefusedError as refused:
            return refused.code
        return "launched"

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(child, range(200)))
    assert {*answers} <= {"launched", "failed_precondition"}
    assert door.ended("a").state == SUCCEEDED
    wait_until(lambda: all(one.state in FINISHED for one in door("ListJobs").jobs), "the end of all")
    assert len(door("ListJobs").jobs) == answers.count("launched") + 1


def test_what_others_launched_below_a_job_keeps_its_owner_from_nothing(fluster: FlusterServer) -> None:
    with fluster.start() as admin:
        admin.put_settings({"access": {"user": ["user:ann", "user:bob"]}})
        tokens = [admin.create_token(name, role="user", user=name).token for name in ("ann", "bob")]
    ann, bob = (Connected(fluster, token) for token in tokens)
    ann("LaunchJob", launch("a", FOREVER, cpu=0))
    bob("LaunchJob", launch("a/his", FOREVER, cpu=0))
    bob("LaunchJob", launch("a/b/alone", FOREVER, cpu=0))
    all_run(bob, "a/his", "a/b/alone")
    asked = cluster.Controller.TerminateJobRequest(job_id="a")
    assert bob.refused("TerminateJob", asked).code in {"permission_denied", "not_found"}
    ann("TerminateJob", asked)
    assert ann.ended("a").state == KILLED
    his = bob.ended("a/his")
    assert (his.state, his.error) == (KILLED, "its parent, job a, has ended: Cancelled")
    assert bob.status("a/b/alone").state == cluster.JOB_STATE_RUNNING, "there is no job a/b that it is a child of"
