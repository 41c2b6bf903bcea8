"""Programs that misbehave, on the real engine: each is contained as far as can be, and its end is explained."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Resources
from holdfast.engines.process.files import ProcessLogs, log_path, log_start
from holdfast.engines.process.places import MEMORY_LABEL, PIDS_LABEL
from holdfast.engines.process.shim import processes
from holdfast.ports.engine import RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.engine import RunOrder
    from tests.integration.conftest import Machine, NewMachine

MEBI = 1 << 20
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[1], "w").write(str(os.getpid()))
        os.rename(sys.argv[1], sys.argv[1] + ".pid")
        time.sleep(1000)
    os._exit(0)
while not os.path.exists(sys.argv[1] + ".pid"):
    time.sleep(0.01)
"""
CLEARED = f"import os, sys; os.execve(sys.executable, [sys.executable, '-c', {DAEMON!r}, sys.argv[1]], {{}})"
FORKS = """
import os, sys, time
children, refused = [], None
for _ in range(int(sys.argv[1])):
    try:
        child = os.fork()
    except OSError as error:
        refused = error
        break
    if child == 0:
        time.sleep(1000)
        os._exit(0)
    children.append(child)
print(len(children), refused, flush=True)
sys.exit(1 if refused else 0)
"""
WATCHER = """
import os, pathlib, signal
me = os.environ["HOLDFAST_ATTEMPT_UID"]
for record in pathlib.Path(os.environ["RECORDS"]).glob("*.record"):
    if me.encode() in record.read_bytes():
        for entry in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if os.readlink(entry) == str(record):
                    os.kill(int(entry.parts[2]), signal.SIGKILL)
            except OSError:
                pass
""".replace("'", '"')
KILL_WATCHER = f"{sys.executable} -S -c '{WATCHER}'"
FLOOD = "import os, time\nfor _ in range(300): os.write(1, b'x' * (1 << 20)); time.sleep(0.002)\nprint('the end')"


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code, *arguments)


def until(machine: Machine, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def tells_exits() -> bool:
    return processes.can_be_waited_for(os.getpid())


def is_gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def path_of(machine: Machine, order: RunOrder, name: str) -> Path:
    return log_path(machine.directory, order.job_id, order.attempt, order.rank).parent / name


# processes


@pytest.mark.parametrize("code", [DAEMON, CLEARED], ids=["marked", "environment cleared"])
def test_a_daemon_dies_with_the_run_it_ran_away_from(machine: Machine, tmp_path: Path, code: str) -> None:
    assert machine.run(*python(code, str(tmp_path / "daemon"))).succeeded
    daemon = int((tmp_path / "daemon.pid").read_text())
    until(machine, lambda: is_gone(daemon))


@pytest.mark.parametrize("limits", ["auto", "rss"])
def test_a_daemon_that_hides_dies_with_its_run_and_not_with_another(
    new_machine: NewMachine, tmp_path: Path, limits: str
) -> None:
    machine = new_machine(tmp_path / "runs", memory_limits=limits)
    other = machine.start("sleep", "1000")
    machine.until(other, lambda seen: seen.phase is RunPhase.RUNNING)
    order = machine.start("sh", "-c", f"{shlex.join(python(CLEARED, str(tmp_path / 'daemon')))} && exec sleep 1000")
    until(machine, (tmp_path / "daemon.pid").exists)
    machine.engine.stop([(other.uid, 0.0, StopReason.USER)])
    machine.finish(other)
    daemon = int((tmp_path / "daemon.pid").read_text())
    assert not is_gone(daemon)
    machine.engine.stop([(order.uid, 0.0, StopReason.USER)])
    machine.finish(order)
    assert is_gone(daemon)


def test_a_fork_bomb_stays_below_its_limit_and_others_go_on(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path, pids_limit=40)
    if machine.engine.nodes()[0].labels[PIDS_LABEL] == "none":
        pytest.skip("no control group can be made on this machine: processes cannot be limited")
    order = machine.start(*python(FORKS, "200"))
    outcome = machine.finish(order)
    assert machine.log(order).startswith("39 ")
    assert outcome.containers[0].exit_code == 1
    assert "limit of 40 processes" in outcome.message
    assert machine.run("true").succeeded
    assert not machine.survivors()


def test_what_one_leaves_in_shared_memory_does_not_count_for_the_next(machine: Machine) -> None:
    if machine.engine.nodes()[0].labels[MEMORY_LABEL] == "rss":
        pytest.skip("no control group can be made on this machine: memory is watched, which counts no files")
    left = Path("/dev/shm") / f"left-{machine.directory.name}-{os.getpid()}"  # noqa: S108 - shared memory it is to be
    try:
        filled = machine.run("sh", "-c", f"head -c 100M /dev/zero > {left}", resources=Resources(memory=300 * MEBI))
        assert (filled.succeeded, left.stat().st_size) == (True, 100 * MEBI)
        again = machine.start("sh", "-c", "echo up; exec sleep 1000", resources=Resources(memory=64 * MEBI))
        machine.until_logged(again, "up")
        [supervisor] = machine.supervisors()
        assert 64 * MEBI <= memory_limit(supervisor.pid) < 100 * MEBI, "in force, and nothing had to be killed for it"
        machine.engine.stop([(again.uid, 0.0, StopReason.USER)])
        assert machine.finish(again).ended_by is EndedBy.USER
    finally:
        left.unlink(missing_ok=True)


def memory_limit(pid: int) -> int:
    """Read the limit of a process's control group."""
    group = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    first = Path(f"/sys/fs/cgroup/memory{group.get('memory', '')}/memory.limit_in_bytes")
    return int((first if "memory" in group else Path(f"/sys/fs/cgroup{group['']}/memory.max")).read_text())


def test_a_bomb_of_shells_ends_with_its_run(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path, pids_limit=60)
    if machine.engine.nodes()[0].labels[PIDS_LABEL] == "none":
        pytest.skip("no control group can be made on this machine: processes cannot be limited")
    order = machine.start("sh", "-c", "echo up; bomb() { bomb | bomb & }; bomb & exec sleep 1000")
    machine.until_logged(order, "up")
    assert machine.run("true").succeeded
    machine.engine.stop([(order.uid, 0.2, StopReason.USER)])
    assert machine.finish(order).ended_by is EndedBy.USER
    until(machine, lambda: not machine.survivors())


def test_zombies_of_a_program_are_gone_with_it(machine: Machine) -> None:
    code = "import os, time\nfor _ in range(20): os.fork() or os._exit(0)\ntime.sleep(0.2)"
    assert machine.run(*python(code)).succeeded
    until(machine, lambda: not [one.pid for each in machine.supervisors() for one in each.children()])


def test_children_in_groups_of_their_own_are_killed_with_the_leader(machine: Machine) -> None:
    code = "import os, time\nif os.fork() == 0: os.setpgid(0, 0); time.sleep(1000)\ntime.sleep(0.2)"
    assert machine.run(*python(code)).succeeded
    until(machine, lambda: not machine.survivors())


def test_a_program_that_suspends_itself_is_ended_by_its_deadline(machine: Machine) -> None:
    outcome = machine.run("sh", "-c", "kill -STOP $$; exit 3", deadline_s=0.3, grace_s=0.2)
    assert outcome.ended_by is EndedBy.DEADLINE
    assert outcome.conditions == {FailureCondition.DEADLINE_EXCEEDED}


# logs


def test_a_fast_log_stays_near_its_limit_while_it_is_written(new_machine: NewMachine, tmp_path: Path) -> None:
    machine, limit = new_machine(tmp_path, log_limit=8 * MEBI), 8 * MEBI
    order = machine.start(*python(FLOOD))
    path, most = path_of(machine, order, "log"), 0
    while (seen := machine.engine.observe()[order.uid]).outcome is None:
        most = max(most, path.stat().st_blocks * 512 if path.exists() else 0)
        machine.changed.wait(0.005)
    assert seen.outcome.succeeded
    assert most < 150 * MEBI, f"{most >> 20} MiB of 300"
    assert path.stat().st_size == 300 * MEBI + len("the end\n")
    assert path.stat().st_blocks * 512 <= limit + MEBI
    part = ProcessLogs(tmp_path).read(order.job_id, 1, 0, offset=0, limit=100)
    assert part.offset == log_start(path) >= 290 * MEBI
    assert part.data == b"x" * 100


def test_a_log_written_in_a_flash_is_within_its_limit_when_the_run_has_ended(
    new_machine: NewMachine, tmp_path: Path
) -> None:
    machine = new_machine(tmp_path, log_limit=MEBI)
    order = machine.start("sh", "-c", "head -c 30000000 /dev/zero; echo the end; exit 1")
    assert machine.finish(order).log_tail[-1].endswith("the end")
    path = path_of(machine, order, "log")
    assert path.stat().st_blocks * 512 <= 2 * MEBI
    assert path.stat().st_size == 30_000_008


def test_a_program_that_closes_its_output_is_no_failure(machine: Machine) -> None:
    order = machine.start("sh", "-c", "echo before; exec >&- 2>&-; echo lost; sleep 0.1; exit 4")
    assert machine.finish(order).containers[0].exit_code == 4
    assert machine.log(order) == "before\n"


def test_garbage_and_control_sequences_are_kept_as_they_are(machine: Machine) -> None:
    order = machine.start("sh", "-c", r"printf '\033[2J\377\376\000end\n'; exit 1")
    assert machine.finish(order).log_tail
    part = ProcessLogs(machine.directory).read(order.job_id, 1, 0, offset=0, limit=100)
    assert part.data == b"\033[2J\377\376\0end\n"


LINK_ELSEWHERE = 'rm -f "$1"; ln -s "$2" "$1"'
PIPE = 'rm -f "$1"; mkfifo "$1"'
FOLDER = 'rm -f "$1"; mkdir "$1"'


@pytest.mark.parametrize("replace", [LINK_ELSEWHERE, PIPE, FOLDER], ids=["symlink", "pipe", "directory"])
@pytest.mark.parametrize("name", ["log", "termination", "progress"])
def test_a_file_replaced_by_something_else_is_not_followed(
    new_machine: NewMachine, tmp_path: Path, name: str, replace: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"a secret\n" * 400_000)
    machine = new_machine(tmp_path / "runs", log_limit=MEBI)
    run = tmp_path / "runs" / "jobs" / "j" / "1.0"
    script = f"{replace}; echo done; while ! test -e go; do sleep 0.02; done; exit 3"
    order = machine.start("sh", "-c", script, "sh", str(run / name), str(secret), job_id="j")
    until(machine, lambda: (run / name).is_symlink() or ((run / name).exists() and not (run / name).is_file()))
    beside = machine.run("true")  # several looks later everything still works
    until(machine, lambda: name == "log" or machine.log(order) == "done\n")
    (run / "work" / "go").touch()
    outcome = machine.finish(order)
    assert beside.succeeded
    assert outcome.containers[0].exit_code == 3
    assert "secret" not in repr(outcome)
    assert secret.stat().st_blocks * 512 >= 3 * MEBI
    assert b"secret" not in ProcessLogs(machine.directory).read("j", 1, 0, offset=0, limit=1000).data


@pytest.mark.parametrize("replace", [LINK_ELSEWHERE, PIPE], ids=["symlink", "pipe"])
def test_a_second_dispatch_is_not_led_astray_by_what_the_first_left(
    machine: Machine, tmp_path: Path, replace: str
) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    log = tmp_path / "jobs" / "j" / "1.0" / "log"
    assert machine.run("sh", "-c", replace, "sh", str(log), str(secret), job_id="j").succeeded
    second = machine.start("sh", "-c", "echo again", job_id="j")
    assert machine.finish(second).succeeded
    assert machine.log(second) == "again\n"
    assert secret.read_text() == ""


@pytest.mark.parametrize("variable", ["HOLDFAST_TERMINATION_LOG", "HOLDFAST_PROGRESS_FILE"])
def test_of_a_huge_file_only_a_little_is_read(machine: Machine, variable: str) -> None:
    """Two gigabytes with a hole, so that the test's own disk is not filled."""
    order = machine.start("sh", "-c", f'truncate -s 2G "${variable}"; echo last >> "${variable}"; sleep 0.3; exit 1')
    outcome = machine.finish(order)
    assert len(outcome.containers[0].message) <= 4096
    assert len(outcome.progress) <= 4096
    assert machine.shim().memory_info().rss < 100 * MEBI


# files and places


def test_a_program_that_deletes_its_own_work_directory_ends_as_itself(machine: Machine) -> None:
    order = machine.start("sh", "-c", 'rm -rf "$PWD"; exit 6', job_id="j")
    assert machine.finish(order).containers[0].exit_code == 6
    assert machine.run("sh", "-c", "touch fine", job_id="j").succeeded
    assert machine.run("sh", "-c", "touch fine", job_id="j", attempt=2).succeeded


def test_a_program_that_deletes_everything_of_its_run_ends_as_itself(machine: Machine) -> None:
    order = machine.start("sh", "-c", 'rm -rf "${PWD%/work}"; exit 6', job_id="j")
    outcome = machine.finish(order)
    assert (outcome.containers[0].exit_code, outcome.log_tail) == (6, ())
    assert ProcessLogs(machine.directory).read("j", 1, 0, offset=0, limit=10).data == b""
    assert machine.run("true", job_id="j", attempt=2).succeeded


def test_a_place_that_cannot_be_written_is_the_programs_affair(machine: Machine) -> None:
    outcome = machine.run("sh", "-c", "touch here", working_dir="/proc")
    assert outcome.started
    assert outcome.containers[0].exit_code == 1
    assert "touch" in outcome.log_tail[-1]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("/", "PermissionDenied"),
        ("/etc/passwd", "PermissionDenied"),
        ("./nothing", "CommandNotFound"),
        ("", "CommandNotFound"),
    ],
)
def test_what_is_no_program_is_a_launch_failure(machine: Machine, command: str, reason: str) -> None:
    outcome = machine.run(command)
    assert (outcome.started, outcome.conditions) == (False, frozenset({FailureCondition.LAUNCH_FAILED}))
    assert outcome.containers[0].reason == reason


def test_a_file_as_working_directory_is_a_launch_failure_that_names_it(machine: Machine) -> None:
    outcome = machine.run("true", working_dir="/etc/passwd")
    assert not outcome.started
    assert "/etc/passwd" in outcome.message


@pytest.mark.parametrize("limits", ["auto", "rss"])
def test_a_program_that_kills_its_supervisor_again_and_again_changes_nothing(
    new_machine: NewMachine, tmp_path: Path, limits: str
) -> None:
    machine = new_machine(tmp_path, memory_limits=limits)
    other = machine.start("sh", "-c", "sleep 1.5; exit 6")
    # The first kills who started it; the others in turn whoever has come to wait for it since.
    script = f"kill -9 $PPID; for i in 1 2; do sleep 0.5; {KILL_WATCHER}; done; echo survived; exit 5"
    order = machine.start("sh", "-c", script, env={"RECORDS": str(tmp_path / "supervisors")})
    outcome = machine.finish(order)
    assert (outcome.containers[0].exit_code, outcome.ended_by) == (5, EndedBy.ITSELF)
    assert outcome.log_tail[-1] == "survived"
    assert machine.finish(other).containers[0].exit_code == 6


def test_a_program_that_kills_all_that_holds_programs_loses_no_result(machine: Machine) -> None:
    """Only a kernel that tells of processes that are nobody's children makes this possible."""
    if not tells_exits():
        pytest.skip("this kernel is older than 6.15: it tells only a parent how a process ended")
    other = machine.start("sh", "-c", "echo begun; sleep 3; exit 6")
    machine.until_logged(other, "begun")  # before, it still has the name of the supervisor it comes from
    [shim], supervisors = [machine.shim()], machine.supervisors()
    victims = " ".join(str(one.pid) for one in [*supervisors, shim])
    order = machine.start("sh", "-c", f"kill -9 $PPID {victims}; sleep 1; exit 5")
    assert machine.finish(order).containers[0].exit_code == 5
    assert machine.finish(other).containers[0].exit_code == 6


def test_a_program_has_no_file_open_but_its_own_three(machine: Machine) -> None:
    order = machine.start("sh", "-c", "ls /proc/$$/fd; true")
    assert machine.finish(order).succeeded
    assert machine.log(order).split() == ["0", "1", "2"]


def test_signals_to_everyone_it_can_reach_in_its_group_harm_only_itself(machine: Machine) -> None:
    outcome = machine.run("sh", "-c", "kill -9 0")
    assert outcome.containers[0].signal == signal.SIGKILL
    assert outcome.ended_by is EndedBy.ITSELF
    assert machine.run("true").succeeded
