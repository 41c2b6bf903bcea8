"""What becomes of the work directory of a run that has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.engines.process.files import log_path
from holdfast.ports.engine import StopReason
from tests.integration.test_process_files import GROWS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import Machine, NewMachine

WITHIN_S = 20
FILL = (
    "mkdir -p deep/er && echo x > deep/er/file && chmod 500 deep/er && ln -s / root; echo done > $HOLDFAST_RESULT_FILE"
)


def work(machine: Machine, order: RunOrder) -> Path:
    return log_path(machine.directory, order.job_id, order.attempt, order.rank).with_name("work")


def until_removed(machine: Machine, folder: Path) -> None:
    until = time.monotonic() + WITHIN_S
    while left := [*folder.parent.glob("work*")]:
        assert time.monotonic() < until, left
        machine.changed.wait(0.01)


@pytest.mark.parametrize(
    "command",
    [["sh", "-c", FILL], ["sh", "-c", f"{FILL}; exit 3"], ["sh", "-c", f"{FILL}; kill -9 $$"]],
    ids=["succeeded", "failed", "killed"],
)
def test_one_that_is_not_kept_goes_with_all_that_is_in_it_and_nothing_else(
    machine: Machine, command: Sequence[str]
) -> None:
    order = machine.start(*command, keeps_work=False)
    assert machine.finish(order).started
    until_removed(machine, work(machine, order))
    left = {path.name: path.is_file() for path in work(machine, order).parent.iterdir()}
    assert {"log", "result"} <= left.keys(), left
    assert all(left.values()), left


def test_it_goes_after_a_run_that_was_stopped_and_after_one_that_could_not_be_launched(machine: Machine) -> None:
    stopped = machine.start("sh", "-c", "echo there; exec sleep 1000", keeps_work=False)
    machine.until_logged(stopped, "there")
    machine.engine.stop([(stopped.uid, 1.0, StopReason.USER)])
    machine.finish(stopped)
    refused = machine.start("/no/such/program", keeps_work=False)
    assert not machine.finish(refused).started
    for order in (stopped, refused):
        until_removed(machine, work(machine, order))


def test_one_that_grows_while_it_is_removed_keeps_no_other_run_waiting(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path / "runs", launch_limit_s=2.0)
    order = machine.start("sh", "-c", "echo there; until test -e go; do sleep 0.02; done", keeps_work=False)
    machine.until_logged(order, "there")
    folder = work(machine, order)
    words = [
        sys.executable,
        "-c",
        f"import contextlib, itertools, os; os.chdir({str(folder)!r})\n{GROWS}",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as growing:
        assert growing.stdout is not None
        growing.stdout.readline()
        (folder / "go").touch()
        machine.finish(order)
        others = [machine.finish(machine.start("true")) for _ in range(8)]
        growing.kill()
    assert [(each.started, each.containers[0].exit_code) for each in others] == [(True, 0)] * 8, others
    until_removed(machine, folder)


def test_a_later_run_in_its_place_has_a_work_directory_of_its_own(machine: Machine) -> None:
    fill = "ls; touch $(seq 2000); test $(ls | wc -l) = 2000"
    tries = [machine.order("sh", "-c", fill, keeps_work=False, job_id="j", attempt=1) for _ in range(3)]
    for order in tries:  # as tasks have, one of which is tried again
        machine.engine.start([order])
        assert machine.finish(order).containers[0].exit_code == 0
    assert machine.log(tries[0]) == ""
    until_removed(machine, work(machine, tries[0]))


def test_it_is_kept_unless_the_job_says_otherwise(machine: Machine) -> None:
    kept = machine.start("sh", "-c", "echo x > file")
    machine.finish(kept)
    other = machine.start("sh", "-c", "echo x > file", keeps_work=False)  # by the same supervisor, perhaps
    machine.finish(other)
    until_removed(machine, work(machine, other))
    assert (work(machine, kept) / "file").read_text() == "x\n"


def test_the_next_attempt_begins_while_the_last_ones_is_removed(machine: Machine) -> None:
    many = "i=0; while [ $i -lt 3000 ]; do : > file-$i; i=$((i+1)); done; ls | wc -l"
    orders = []
    for attempt in (1, 2, 3):
        orders.append(machine.start("sh", "-c", many, keeps_work=False, job_id="j", attempt=attempt))
        machine.finish(orders[-1])
    assert [machine.log(order).strip() for order in orders] == ["3000"] * 3
    for order in orders:
        until_removed(machine, work(machine, order))
