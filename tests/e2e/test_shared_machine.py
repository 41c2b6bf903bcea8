"""One machine with two GPUs and two people, from the first job to the report; ``-s`` prints it as they see it."""

from __future__ import annotations

import csv
import io
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.e2e import people
from tests.e2e.server import until, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.e2e.people import Machine

pytestmark = pytest.mark.slow  # two people and all that they look at

HOLD = 'echo "$(id -un) has GPU $CUDA_VISIBLE_DEVICES of $(hostname)"; sleep 6; echo private words of $(id -un)'


def told(who: str, run: Callable[..., subprocess.CompletedProcess[str]], *words: str, ends: int = 0) -> str:
    """Run a command and print it as its transcript; returns what it wrote."""
    said = run(*words)
    print(f"{who}$ holdfast {shlex.join(words)}\n{said.stdout}{said.stderr}", end="\n", flush=True)  # noqa: T201 - for who wants to see it
    assert said.returncode == ends, said
    return said.stdout + said.stderr


def test_two_people_share_a_machine_and_neither_is_in_the_others_way() -> None:
    for lab in people.machine(HOLDFAST_GPUS="2"):
        story(lab)


def story(lab: Machine) -> None:
    ann, bob, root = lab.ann, lab.bob, lab.server.run
    print(f"\nroot# HOLDFAST_GPUS=2 holdfast up --run-as submitter --socket {ann.socket}\n")  # noqa: T201 - as above
    for person in (ann, bob):
        flags = ("--detach", "--gpus", "1", "--name", f"of-{person.name}")
        told(person.name, person.run, "run", *flags, "--", "sh", "-c", HOLD)
    with lab.server.client() as client:
        wait_until(lambda: {one.state for one in client.jobs()} == {"Running"}, "both at once")
        devices = told(ann.name, ann.run, "get", "devices")
        assert "another user's job" in devices or f"of-{bob.name}" in devices
        told(bob.name, bob.run, "get", "jobs")
        jobs = {person.name: client.job(f"of-{person.name}") for person in (ann, bob)}
        for job in jobs.values():
            until(client, job.id, lambda view: view.state == "Succeeded")
    for person, other in ((ann, bob), (bob, ann)):
        own = told(person.name, person.run, "logs", f"of-{person.name}")
        assert (f"{person.name} has GPU " in own, f"private words of {person.name}" in own) == (True, True)
        refused = told(person.name, person.run, "logs", f"of-{other.name}", ends=4)
        assert (f"{person.name} may not read the logs of this" in refused, "private words" in refused) == (
            True,
            False,
        ), refused
        stopped = told(person.name, person.run, "cancel", f"of-{other.name}", ends=4)
        assert "belongs to somebody else" in stopped
    seen = {line.split("GPU ")[1].split()[0] for line in map(first_line, (ann, bob))}
    assert len(seen) == 2, "each has another one"
    audit = told("root", root, "get", "audit")
    assert all(person.name in audit for person in (ann, bob))
    assert audit.count("forbidden") == 4, audit
    told(ann.name, ann.run, "get", "audit", ends=4)
    report = told("root", root, "report", "--by", "user", "--since", "1h", "-o", "csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(report))}
    assert set(rows) == {ann.name, bob.name}
    for row in rows.values():
        assert float(row["gpu_hours"]) > 5 / 3600
    told("root", root, "report", "--by", "user", "--since", "1h")


def first_line(person: people.Person) -> str:
    return person.run("logs", f"of-{person.name}").stdout.splitlines()[0]
