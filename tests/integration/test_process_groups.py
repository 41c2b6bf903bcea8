"""Control groups that shims and supervisors leave behind when they are killed, on this machine's own hierarchies."""

from __future__ import annotations

import base64
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.domain.workloads.preparing import Input, Preparation
from holdfast.engines.process.shim import processes
from holdfast.ports.engine import RunPhase
from tests.integration.conftest import ours

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import Machine, NewMachine


@pytest.mark.slow
def test_control_groups_of_a_shim_that_was_killed_are_removed_by_the_next_that_leaves(
    new_machine: NewMachine, tmp_path: Path
) -> None:
    killed, living, leaving = (new_machine(tmp_path / name) for name in ("killed", "living", "leaving"))
    orders = {machine: machine.start("sleep", "1000") for machine in (killed, living)}
    for machine, order in orders.items():
        machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    groups = {machine: {group for each in machine.supervisors() for group in groups_of(each)} for machine in orders}
    if not groups[killed]:
        pytest.skip("there are no control groups on this machine")
    assert all(group.is_dir() for group in (*groups[killed], *groups[living]))
    killed.engine.close()
    for process in (*ours(killed.directory), *killed.survivors()):
        with suppress(psutil.NoSuchProcess):  # some end with the others
            process.kill()
            process.wait()
    assert leaving.run("true").succeeded
    leaving.end()
    assert not [group for group in groups[killed] if group.parent.exists()]
    assert all(group.is_dir() for group in groups[living])
    killed.open()


def test_the_least_memory_limit_is_enough_to_prepare_a_run_and_keeps_its_supervisor(machine: Machine) -> None:
    given = (Input("d/x", data=base64.b64encode(b"x").decode()),)
    for inputs in ((), given, given):
        preparation = Preparation(("true",))
        order = machine.start("sh", "-c", "echo up", memory_limit=1, preparation=preparation, inputs=inputs)
        outcome = machine.finish(order)
        assert outcome.containers, outcome
        assert (outcome.containers[0].exit_code, machine.log(order)) == (0, "up\n"), outcome


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_program_that_was_taken_over_goes_on_although_the_shim_is_killed_later(machine: Machine, rounds: int) -> None:
    """It is in the group of a supervisor that is dead, which must not be ended as a leftover, nor be used again."""
    go = machine.directory / "go"
    brief = machine.start("sleep", "1")  # its supervisor, of a lower number, is free when one is looked for
    machine.until(brief, lambda seen: seen.phase is RunPhase.RUNNING)
    order = machine.start("sh", "-c", f"(sleep 1000) & echo up; while ! test -e {go}; do sleep 0.02; done; exit 6")
    machine.until_logged(order, "up")
    machine.finish(brief)
    for _ in range(rounds):
        take_over(machine, order)
    machine.engine.close()
    machine.shim().kill()
    machine.open()
    others = [machine.start("sh", "-c", "(sleep 1000) & sleep 0.2") for _ in range(4)]
    assert all(machine.finish(other).succeeded for other in others)
    assert machine.engine.observe()[order.uid].phase is RunPhase.RUNNING
    if rounds == 2:
        take_over(machine, order)
    go.touch()
    assert machine.finish(order).containers[0].exit_code == (6 if processes.can_be_waited_for(os.getpid()) else None)
    assert not machine.survivors()


def take_over(machine: Machine, order: RunOrder) -> None:
    """Kill the supervisor of a run, and wait until another one has it and nothing is left of the killed one."""
    records = machine.directory / "supervisors"
    [held] = holders(records, order)
    [supervisor] = [each for each in machine.supervisors() if file_of(each, held)]
    supervisor.kill()
    deadline = time.monotonic() + 15
    while held.exists() or len(holders(records, order)) != 1:
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def holders(records: Path, order: RunOrder) -> list[Path]:
    """Find the records that begin with a run."""
    start = f'{{"order":{{"uid":"{order.uid}"'.encode()
    return [path for path in records.glob("*.record") if processes.content(str(path)).startswith(start)]


def file_of(process: psutil.Process, path: Path) -> bool:
    """Whether a supervisor has a file open, as it has its record for as long as it lives."""
    return str(path) in {os.path.realpath(each) for each in Path(f"/proc/{process.pid}/fd").iterdir()}


def groups_of(process: psutil.Process) -> list[Path]:
    """Find the control groups of a supervisor, in every hierarchy where it has one of its own."""
    mounted = {
        line.split()[4]: line.split()[3]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if " - cgroup" in line
    }
    named = {line.split(":", 2)[2] for line in Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()}
    places = [Path(mount) / os.path.relpath(name, root) for mount, root in mounted.items() for name in named]
    return [place for place in places if place.parent.name.startswith("holdfast-") and place.is_dir()]
