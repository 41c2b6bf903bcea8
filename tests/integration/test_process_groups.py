"""Control groups that shims and supervisors leave behind when they are killed, on this machine's own hierarchies."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.ports.engine import RunPhase
from tests.integration.conftest import ours

if TYPE_CHECKING:
    from tests.integration.conftest import NewMachine


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
