"""Warnings ahead of the end, with real programs and signals: who gets them, when, and what else is spared."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holdfast.domain.failure import EndedBy
from holdfast.domain.workloads.watching import EarlyWarning
from holdfast.engines.process.files import log_path
from holdfast.ports.engine import LEADING, RunPhase, StopReason

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import Machine

SOON = EarlyWarning(1.0, "USR2")
SAVES = """
import os, signal, sys, time
def save(number, frame):
    left_s = float(os.environ["HOLDFAST_STOP_AT"]) - time.time()
    print("saved on", signal.Signals(number).name, round(left_s), flush=True)
    sys.exit(85)
signal.signal(signal.SIGUSR2, save)
print("ready", flush=True)
time.sleep(1000)
"""
POLLS = """
import holdfast, time
run = holdfast.current()
while not run.should_stop():
    time.sleep(0.02)
print(run.warning().reason, round(run.warning().stop_at - time.time()), flush=True)
run.checkpointed()
"""


def told(machine: Machine, order: RunOrder) -> dict[str, Any]:
    """Read the file that a run finds once it was warned."""
    found: dict[str, Any] = json.loads(stop_file(machine, order).read_text())
    return found


def stop_file(machine: Machine, order: RunOrder) -> Path:
    return log_path(machine.directory, order.job_id, order.attempt, order.rank).with_name("stop")


def test_the_signal_comes_ahead_of_the_deadline_and_a_run_that_saved_ends_by_itself(machine: Machine) -> None:
    order = machine.start(sys.executable, "-c", SAVES, deadline_s=2.0, warning=SOON, checkpointed_exit_code=85)
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.containers[0].exit_code) == (EndedBy.ITSELF, 85)
    assert machine.log(order) == "ready\nsaved on SIGUSR2 1\n"
    assert 1.0 <= (outcome.ran_s or 0.0) < 2.0
    said = told(machine, order)
    assert said["reason"] == "deadline"
    assert said["stop_at"] - said["given_at"] == pytest.approx(1.0, abs=0.2)


def test_a_program_that_does_not_handle_the_signal_is_not_hurt_by_it_and_has_its_whole_time(machine: Machine) -> None:
    order = machine.start("sh", "-c", "sleep 1000; echo never", deadline_s=1.5, warning=EarlyWarning(1.0, "TERM"))
    outcome = machine.finish(order)
    assert outcome.ended_by is EndedBy.DEADLINE
    assert (outcome.ran_s or 0.0) >= 1.5
    assert outcome.warned_at == pytest.approx(told(machine, order)["given_at"])
    assert told(machine, order)["reason"] == "deadline"


def test_below_a_shell_it_is_the_program_that_is_warned_and_not_its_own_workers(machine: Machine) -> None:
    parent = SAVES.replace('print("ready"', 'os.fork() or time.sleep(1000); print("ready"')
    order = machine.start("sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, parent, deadline_s=2.0, warning=SOON)
    assert machine.finish(order).containers[0].exit_code == 85
    assert machine.log(order).count("saved on SIGUSR2") == 1


def test_should_stop_sees_the_warning_without_any_handler(machine: Machine) -> None:
    order = machine.start(
        sys.executable, "-c", POLLS, deadline_s=2.5, warning=EarlyWarning(1.0), checkpointed_exit_code=44
    )
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.containers[0].exit_code) == (EndedBy.ITSELF, 44)
    assert machine.log(order) == "deadline 1\n"


@pytest.mark.parametrize("reason", sorted(LEADING))
def test_whoever_is_not_at_fault_has_the_time_that_was_asked_for(machine: Machine, reason: StopReason) -> None:
    order = machine.start(
        sys.executable,
        "-c",
        SAVES.replace("sys.exit(85)", "pass").replace('os.environ["HOLDFAST_STOP_AT"]', '"0"'),
        warning=SOON,
        grace_s=5.0,
    )
    machine.until_logged(order, "ready")
    began = time.monotonic()
    machine.engine.stop([(order.uid, 5.0, reason)])
    machine.until_logged(order, "saved")
    machine.until(order, lambda seen: seen.phase is RunPhase.STOPPING)
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.containers[0].signal) == (EndedBy(reason.value), signal.SIGTERM)
    assert 1.0 <= time.monotonic() - began < 3.0
    assert told(machine, order)["reason"] == reason.value


@pytest.mark.parametrize("reason", [StopReason.USER, StopReason.LOST])
def test_who_cancels_waits_for_no_warning_not_even_for_one_that_was_begun(machine: Machine, reason: StopReason) -> None:
    order = machine.start("sh", "-c", "echo ready; exec sleep 1000", warning=EarlyWarning(60.0))
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 5.0, StopReason.PREEMPTION)])
    machine.until(order, lambda seen: seen.phase is RunPhase.STOPPING)
    machine.engine.stop([(order.uid, 1.0, reason)])
    assert machine.finish(order).containers[0].signal == signal.SIGTERM


@pytest.mark.parametrize("victim", ["supervisors", "shim"])
def test_a_warning_is_given_once_and_kept_although_what_watched_the_run_was_killed(
    machine: Machine, victim: str
) -> None:
    code = SAVES.replace("sys.exit(85)", "pass").replace('os.environ["HOLDFAST_STOP_AT"]', '"0"')
    order = machine.start(sys.executable, "-c", code, warning=EarlyWarning(2.0, "USR2"))
    machine.until_logged(order, "ready")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    began = time.monotonic()
    machine.engine.stop([(order.uid, 5.0, StopReason.PREEMPTION)])
    machine.until_logged(order, "saved")
    found = machine.supervisors() if victim == "supervisors" else [machine.shim()]
    for process in found:
        process.kill()
    psutil.wait_procs(found, timeout=5)
    outcome = machine.finish(order)
    assert outcome.ended_by is EndedBy.PREEMPTION
    assert outcome.warned_at == pytest.approx(told(machine, order)["given_at"], abs=0.1)
    assert 1.99 <= time.monotonic() - began < 5.0  # moments are written down in milliseconds
    assert machine.log(order).count("saved on") == 1


def test_a_next_dispatch_of_the_attempt_finds_no_old_warning(machine: Machine) -> None:
    first = machine.start("sleep", "1000", job_id="again", deadline_s=1.2, warning=SOON)
    machine.finish(first)
    assert stop_file(machine, first).exists()
    again = machine.start("sh", "-c", 'test -e "$HOLDFAST_STOP_FILE"', job_id="again", warning=SOON)
    assert machine.finish(again).containers[0].exit_code == 1


def test_a_run_knows_its_deadline_from_the_start_also_without_a_warning(machine: Machine) -> None:
    order = machine.start("sh", "-c", 'echo "$HOLDFAST_STOP_AT" "${HOLDFAST_STOP_FILE:-none}"', deadline_s=100.0)
    machine.finish(order)
    stop_at, file = machine.log(order).split()
    assert float(stop_at) - time.time() == pytest.approx(100.0, abs=10.0)
    assert file == "none"
