"""Runs that fall silent, with real programs: when they are ended, what is written down first, and who is spared."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.workloads.watching import StallLimits
from holdfast.engines.process.files import STACK_SIGNAL
from holdfast.ports.engine import RunPhase, StopReason

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.failure import RunOutcome
    from tests.integration.conftest import Machine

OUTPUT, PROGRESS = StallLimits(no_output_s=1.0), StallLimits(no_progress_s=1.0)
HANGS = """
import time
import holdfast
holdfast.current()
def wait_for_peer():
    time.sleep(1000)
def train():
    wait_for_peer()
print("training", flush=True)
train()
"""
SPY = """#!/bin/sh
echo "Process $3: python train.py"
echo 'Thread 7 (idle): "loader"'
echo '    get (queue.py:171)'
echo 'Thread 6 (idle): "MainThread"'
echo '    all_reduce (torch/distributed.py:2806)'
echo '    step (train.py:40)'
"""


def _stalled(outcome: RunOutcome) -> bool:
    return outcome.ended_by is EndedBy.STALL and outcome.conditions == {FailureCondition.STALLED}


def test_a_run_without_output_is_ended_as_stalled_and_says_where_it_was(machine: Machine) -> None:
    order = machine.start(sys.executable, "-c", HANGS, stall=OUTPUT)
    outcome = machine.finish(order)
    assert _stalled(outcome)
    assert 1.0 <= (outcome.ran_s or 0.0) < 3.0
    assert outcome.message.startswith("no output for 1s; it was in: wait_for_peer (<string>:6), train (<string>:8)")
    log = machine.log(order)
    assert "holdfast: no output for 1s; where its processes are:\nprocess " in log
    assert "Current thread" in log
    assert "in wait_for_peer" in log
    assert outcome.log_tail == ("training",)


def test_of_a_program_that_tells_no_stacks_the_kernel_says_where_its_last_process_waits(machine: Machine) -> None:
    order = machine.start("sh", "-c", f"trap 'echo {STACK_SIGNAL}' USR1; sleep 1000; echo never", stall=OUTPUT)
    outcome = machine.finish(order)
    assert _stalled(outcome)
    assert "(sleep)" in outcome.message
    assert "process " in machine.log(order)


def test_py_spy_is_asked_where_it_is_on_the_programs_path(machine: Machine, tmp_path: Path) -> None:
    spy = tmp_path / "tools" / "py-spy"
    spy.parent.mkdir()
    spy.write_text(SPY)
    spy.chmod(0o755)
    path = f"{spy.parent}:{os.defpath}"
    order = machine.start(sys.executable, "-c", "import time; time.sleep(1000)", stall=OUTPUT, env={"PATH": path})
    outcome = machine.finish(order)
    assert outcome.message == ("no output for 1s; it was in: all_reduce (distributed.py:2806), step (train.py:40)")


@pytest.mark.slow
def test_a_spy_that_hangs_is_ended_with_the_dump(machine: Machine, tmp_path: Path) -> None:
    spy = tmp_path / "py-spy"
    spy.write_text("#!/bin/sh\nexec sleep 1000\n")
    spy.chmod(0o755)
    order = machine.start(
        sys.executable, "-c", "import time; time.sleep(1000)", stall=OUTPUT, env={"PATH": f"{tmp_path}:{os.defpath}"}
    )
    outcome = machine.finish(order)
    assert _stalled(outcome)
    assert 5.0 <= (outcome.ran_s or 0.0) < 9.0


def test_a_run_that_talks_is_never_stalled_on_either_stream(machine: Machine) -> None:
    talk = "for i in range(8): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True); time.sleep(0.3)"
    program = (sys.executable, "-c", f"import sys, time\n{talk}")
    assert machine.run(*program, stall=OUTPUT, separate_logs=True).succeeded


def test_progress_is_what_the_file_says_not_that_it_was_written(machine: Machine) -> None:
    steps = 'for i in 1 2 3 4 5 6; do echo "$i/6" > $HOLDFAST_PROGRESS_FILE; sleep 0.3; done'
    same = 'while true; do echo "1/6" > $HOLDFAST_PROGRESS_FILE; echo busy; sleep 0.1; done'
    moves, stays = (machine.start("sh", "-c", line, stall=PROGRESS) for line in (steps, same))
    assert machine.finish(moves).succeeded
    outcome = machine.finish(stays)
    assert _stalled(outcome)
    assert outcome.message.startswith("no progress for 1s")


def test_a_suspended_run_is_not_stalled_until_it_could_speak_again(machine: Machine) -> None:
    order = machine.start("sh", "-c", "echo $$; exec sleep 1000", stall=StallLimits(no_output_s=1.5))
    machine.until_logged(order, "\n")
    pid = int(machine.log(order))
    os.kill(pid, signal.SIGSTOP)
    machine.changed.clear()
    machine.changed.wait(2.5)
    assert machine.engine.observe()[order.uid].phase is RunPhase.RUNNING
    os.kill(pid, signal.SIGCONT)
    assert _stalled(machine.finish(order))


def test_a_run_in_its_grace_is_not_stalled(machine: Machine) -> None:
    quiet = "trap 'sleep 2; exit 7' TERM; echo ready; while true; do sleep 0.1; done"
    order = machine.start("sh", "-c", quiet, stall=StallLimits(no_output_s=1.2))
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 30.0, StopReason.USER)])
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.containers[0].exit_code) == (EndedBy.USER, 7)


@pytest.mark.parametrize("victim", ["supervisors", "shim"])
def test_a_stall_is_noticed_although_what_watched_the_run_was_killed(machine: Machine, victim: str) -> None:
    order = machine.start("sh", "-c", "echo ready; exec sleep 1000", stall=OUTPUT)
    machine.until_logged(order, "ready")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    found = machine.supervisors() if victim == "supervisors" else [machine.shim()]
    for process in found:
        process.kill()
    psutil.wait_procs(found, timeout=5)
    assert _stalled(machine.finish(order))


def test_a_run_that_asks_for_no_limit_may_be_silent(machine: Machine) -> None:
    began = time.monotonic()
    assert machine.run("sleep", "1.6").succeeded
    assert time.monotonic() - began >= 1.6


def test_the_live_progress_of_a_run_says_how_fast_it_comes_on_and_its_last_word_is_its_own(machine: Machine) -> None:
    steps = 'for i in 0 10 20 30; do echo "$i/30" > $HOLDFAST_PROGRESS_FILE; sleep 1.1; done'
    order = machine.start("sh", "-c", steps)
    seen = machine.until(order, lambda seen: seen.progress.startswith("20/30"))
    assert "/s, " in seen.progress
    assert seen.progress.endswith(" left)")
    assert machine.finish(order).progress == "30/30"
