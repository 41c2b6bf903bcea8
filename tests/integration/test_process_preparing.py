"""Preparations with real programs: what counts as the run, how they fail, and who survives whom meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Resources
from holdfast.domain.workloads.preparing import Preparation
from holdfast.ports.engine import RunPhase, StopReason

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

LAUNCH_FAILED = frozenset({FailureCondition.LAUNCH_FAILED})
WAITS = 'echo preparing; while [ ! -e "$GO" ]; do sleep 0.02; done; echo made > made'


def waiting(go: Path) -> Preparation:
    return Preparation(("sh", "-c", WAITS.replace("$GO", str(go))))


def test_the_program_finds_what_its_preparation_made_and_counts_as_started_only_then(
    machine: Machine, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    order = machine.start("cat", "made", preparation=waiting(go), deadline_s=5.0)
    machine.until_logged(order, "preparing")
    seen = machine.engine.observe()[order.uid]
    assert (seen.phase, seen.started_at) == (RunPhase.STARTING, None)
    at = time.time()
    go.touch()
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.started) == (EndedBy.ITSELF, True)
    assert (outcome.started_at or 0.0) >= at - 0.01
    assert machine.log(order) == "preparing\nmade\n"


def test_the_deadline_and_the_silence_of_a_program_are_counted_from_its_own_start(machine: Machine) -> None:
    slow = Preparation(("sleep", "1.2"))
    order = machine.start(
        "sh", "-c", 'echo $(date +%s.%N) "$HOLDFAST_STOP_AT"; exec sleep 1000', preparation=slow, deadline_s=1.0
    )
    outcome = machine.finish(order)
    assert outcome.ended_by is EndedBy.DEADLINE
    assert 0.9 <= (outcome.ran_s or 0.0) < 1.8
    now, stop_at = map(float, machine.log(order).split())
    assert 0.8 < stop_at - now <= 1.0


@pytest.mark.parametrize(
    ("preparation", "says"),
    [
        (
            Preparation(("sh", "-c", "echo no such package; exit 3")),
            "its preparation failed: exit code 3, sh: no such package",
        ),
        (Preparation(("sh", "-c", "kill -SEGV $$")), "signal 11"),
        (Preparation(("no-such-tool", "install")), "cannot start 'no-such-tool'"),
        (Preparation(("sleep", "1000.0625"), 0.3), "its preparation took longer than 0.3 s"),
    ],
    ids=["code", "signal", "missing", "too long"],
)
def test_a_preparation_that_fails_is_a_launch_that_failed_and_the_program_is_never_started(
    machine: Machine, preparation: Preparation, says: str
) -> None:
    order = machine.start("sh", "-c", "echo started", preparation=preparation)
    outcome = machine.finish(order)
    assert (outcome.started, outcome.conditions) == (False, LAUNCH_FAILED)
    assert outcome.containers[0].reason == "PreparationFailed"
    assert says in outcome.message
    assert "started" not in machine.log(order)
    assert ("no such package" in outcome.log) == (preparation.command[-1].endswith("exit 3"))
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info.get("cmdline") == ["sleep", "1000.0625"]]


def test_a_program_that_is_missing_after_its_preparation_is_told_as_ever(machine: Machine) -> None:
    outcome = machine.run("not-there", preparation=Preparation(("true",)))
    assert (outcome.started, outcome.conditions) == (False, LAUNCH_FAILED)
    assert outcome.containers[0].reason == "CommandNotFound"


def test_a_run_that_is_stopped_while_it_is_prepared_never_started_and_leaves_nothing(
    machine: Machine, tmp_path: Path
) -> None:
    order = machine.start("echo", "started", preparation=waiting(tmp_path / "never"))
    machine.until_logged(order, "preparing")
    machine.engine.stop([(order.uid, 5.0, StopReason.USER)])
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.started) == (EndedBy.USER, False)
    assert machine.log(order) == "preparing\n"


def test_a_preparation_that_needs_too_much_memory_failed_to_launch(machine: Machine) -> None:
    hungry = Preparation(("python3", "-c", "x = 'x' * (256 << 20); import time; time.sleep(5)"))
    outcome = machine.run("echo", "started", preparation=hungry, resources=Resources(memory=64 << 20))
    assert (outcome.started, outcome.conditions) == (False, LAUNCH_FAILED)
    assert "its preparation exceeded its memory limit of 64Mi" in outcome.message


@pytest.mark.parametrize("killed", ["supervisor", "shim"])
def test_a_run_is_prepared_and_started_though_who_watches_it_is_killed(
    machine: Machine, tmp_path: Path, killed: str
) -> None:
    go = tmp_path / "go"
    order = machine.start("sh", "-c", "cat made; exit 7", preparation=waiting(go))
    machine.until_logged(order, "preparing")
    [supervisor] = [one for one in machine.supervisors() if one.children()]
    (supervisor if killed == "supervisor" else machine.shim()).kill()
    go.touch()
    outcome = machine.finish(order)
    if outcome.ended_by is not EndedBy.LOST:  # this kernel may not tell anybody else how it ended
        assert (outcome.started, outcome.containers[0].exit_code) == (True, 7)
    assert machine.log(order) == "preparing\nmade\n"


def test_an_attempt_that_is_dispatched_again_is_prepared_again(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path / "runs")
    once = Preparation(("sh", "-c", "mkdir made"))
    assert machine.run("true", preparation=once, job_id="j").started
    again = machine.run("true", preparation=once, job_id="j")
    assert (again.started, again.conditions) == (False, LAUNCH_FAILED)
