"""The process engine on real programs, real signals and real files."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Resources
from holdfast.domain.workloads.preparing import Preparation
from holdfast.engines.process.files import ProcessLogs, log_path, log_start
from holdfast.engines.process.places import MEMORY_LABEL
from holdfast.ports.engine import RunPhase, StopReason

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

MEBI = 1 << 20
IGNORE_TERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"
)
HOG = "x = []\nwhile True: x.append(bytearray(8 << 20))"


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


# how programs end


@pytest.mark.parametrize("code", [0, 1, 2, 127, 137, 255])
def test_an_exit_code_is_the_programs_own_and_no_signal(machine: Machine, code: int) -> None:
    [container] = machine.run("sh", "-c", f"exit {code}").containers
    assert (container.exit_code, container.signal) == (code, None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_is_told_from_an_exit_code(machine: Machine, number: int) -> None:
    outcome = machine.run("sh", "-c", f"kill -{int(number)} $$")
    assert [(one.exit_code, one.signal) for one in outcome.containers] == [(128 + number, number)]
    assert outcome.ended_by is EndedBy.ITSELF
    assert outcome.conditions == frozenset()


def test_the_last_lines_of_a_failure_are_kept(machine: Machine) -> None:
    outcome = machine.run("sh", "-c", "seq 1000; echo at last >&2; exit 1")
    assert outcome.log_tail[-2:] == ("1000", "at last")
    assert len(outcome.log_tail) == 20


def test_a_success_brings_no_log_lines(machine: Machine) -> None:
    outcome = machine.run("echo", "hello")
    assert (outcome.log_tail, outcome.log) == ((), "")


def test_the_last_64_kibibytes_of_a_failure_come_with_its_end(machine: Machine) -> None:
    outcome = machine.run("sh", "-c", "echo first; yes | head -c 65520; echo NCCL error >&2; exit 1")
    assert len(outcome.log) == 64 << 10
    assert outcome.log.endswith("y\ny\nNCCL error\n")
    assert len("\n".join(outcome.log_tail)) < 4096


def test_stdin_is_empty(machine: Machine) -> None:
    order = machine.start("sh", "-c", "cat; echo end of input")
    assert machine.finish(order).succeeded
    assert machine.log(order) == "end of input\n"


def test_output_of_any_size_stops_nobody(machine: Machine) -> None:
    order = machine.start("sh", "-c", "yes | head -c 20000000; exit 4")
    assert machine.finish(order).containers[0].exit_code == 4
    assert log_path(machine.directory, order.job_id, 1, 0).stat().st_size == 20_000_000


def test_a_log_over_its_limit_loses_its_oldest_part_and_keeps_its_offsets(
    new_machine: NewMachine, tmp_path: Path
) -> None:
    machine = new_machine(tmp_path, log_limit=MEBI)
    order = machine.start("sh", "-c", "yes | head -c 20000000; echo the end; sleep 1000")
    machine.until_logged(order, "the end")
    path = log_path(tmp_path, order.job_id, 1, 0)
    deadline = time.monotonic() + 20
    while path.stat().st_blocks * 512 > 2 * MEBI:
        assert time.monotonic() < deadline
        machine.changed.wait(0.05)
    assert path.stat().st_size == 20_000_008
    assert 0 < log_start(path) <= path.stat().st_size - MEBI // 2
    assert path.read_bytes().endswith(b"y\nthe end\n")


def test_the_first_four_kibibytes_of_the_termination_log_are_the_message(machine: Machine) -> None:
    [container] = machine.run("sh", "-c", 'yes | head -c 9000 > "$HOLDFAST_TERMINATION_LOG"; exit 1').containers
    assert container.message == "y\n" * 2048


def test_progress_is_seen_while_it_runs_and_after(machine: Machine) -> None:
    order = machine.start("sh", "-c", 'echo step 1 >> "$HOLDFAST_PROGRESS_FILE"; sleep 1000')
    assert machine.until(order, lambda seen: seen.progress).progress == "step 1"
    machine.engine.stop([(order.uid, 5.0, StopReason.USER)])
    assert machine.finish(order).progress == "step 1"


# where programs run


def test_a_program_is_told_who_it_is(machine: Machine) -> None:
    order = machine.start("env", job_id="train", attempt=3, rank=0, ports=("http", "web-ui"), env={"LR": "0.1"})
    assert machine.finish(order).succeeded
    told = dict(line.split("=", 1) for line in machine.log(order).splitlines())
    run = machine.directory / "jobs" / "train" / "3.0"
    expected = {
        "HOLDFAST_JOB_ID": "train",
        "HOLDFAST_JOB_NAME": "a-job",
        "HOLDFAST_ATTEMPT": "3",
        "HOLDFAST_RANK": "0",
        "HOLDFAST_SIZE": "1",
        "HOLDFAST_ATTEMPT_UID": order.uid,
        "HOLDFAST_TERMINATION_LOG": str(run / "termination"),
        "HOLDFAST_PROGRESS_FILE": str(run / "progress"),
        "HOLDFAST_CHECKPOINT_DIR": str(machine.directory / "jobs" / "train" / "checkpoints"),
        "HOLDFAST_MASTER_ADDR": "127.0.0.1",
        "LR": "0.1",
    }
    assert {name: told[name] for name in expected} == expected
    assert told["HOLDFAST_PORT_HTTP"] != told["HOLDFAST_PORT_WEB_UI"]
    assert "HOLDFAST_MASTER_PORT" not in told


def test_programs_inherit_little_and_no_secrets(new_machine: NewMachine, tmp_path: Path) -> None:
    environ = {"PATH": os.defpath, "HOME": "/home/me", "LC_ALL": "C", "HOLDFAST_TOKEN": "secret", "AWS_KEY": "secret"}
    machine = new_machine(tmp_path, environ=environ)
    order = machine.start("env")
    assert machine.finish(order).succeeded
    told = dict(line.split("=", 1) for line in machine.log(order).splitlines())
    assert "secret" not in told.values()
    assert (told["HOME"], told["LC_ALL"]) == ("/home/me", "C")


def test_ranks_of_a_gang_learn_one_master_port_and_have_ports_of_their_own(machine: Machine) -> None:
    command = ("sh", "-c", "echo $HOLDFAST_MASTER_PORT $HOLDFAST_PORT_RPC; read forever < $HOLDFAST_CHECKPOINT_DIR/go")
    gang = [machine.order(*command, job_id="gang", rank=rank, size=3, ports=("rpc",)) for rank in range(3)]
    checkpoints = machine.directory / "jobs" / "gang" / "checkpoints"
    checkpoints.mkdir(parents=True)
    os.mkfifo(checkpoints / "go")
    machine.engine.start(gang)
    for order in gang:
        machine.until_logged(order, "\n")
    numbers = [machine.log(order).split() for order in gang]
    assert len({master for master, _ in numbers}) == 1
    assert len({own for _, own in numbers} | {numbers[0][0]}) == 4


def test_the_ports_of_a_run_are_told_in_the_order_in_which_it_asked_until_it_is_over(machine: Machine) -> None:
    order = machine.start("sh", "-c", "echo $HOLDFAST_PORT_B $HOLDFAST_PORT_A up; sleep 1000", ports=("b", "a"))
    machine.until_logged(order, "up")
    numbers = tuple(map(int, machine.log(order).split()[:2]))
    assert machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING).ports == numbers
    machine.shim().kill()
    machine.engine.close()
    machine.open()
    assert machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING).ports == numbers
    machine.engine.stop([(order.uid, 1.0, StopReason.USER)])
    assert machine.until(order, lambda seen: seen.phase is RunPhase.FINISHED).ports == ()


def test_without_a_working_directory_a_run_starts_in_its_own_and_checkpoints_outlive_attempts(machine: Machine) -> None:
    first = machine.start("sh", "-c", "pwd; echo 7 > $HOLDFAST_CHECKPOINT_DIR/step", job_id="j")
    assert machine.finish(first).succeeded
    assert machine.log(first).strip() == str(machine.directory / "jobs" / "j" / "1.0" / "work")
    second = machine.start("sh", "-c", "cat $HOLDFAST_CHECKPOINT_DIR/step", job_id="j", attempt=2)
    assert machine.finish(second).succeeded
    assert machine.log(second) == "7\n"


@pytest.mark.parametrize("done", ["nothing", "the job's directory", "the move"])
def test_checkpoints_are_taken_over_once_whatever_was_done_of_it_when_the_last_try_died(
    machine: Machine, done: str
) -> None:
    jobs = machine.directory / "jobs"
    kept, new = jobs / "first" / "checkpoints", jobs / "again"
    kept.mkdir(parents=True)
    (kept / "step").write_text("7\n")
    if done != "nothing":
        new.mkdir()
    if done == "the move":
        kept.rename(new / "checkpoints")
    # Written in one go: neither rank ever reads half of what the other writes.
    script = "cd $HOLDFAST_CHECKPOINT_DIR; cat step; echo 8 > new.$$; mv new.$$ step"
    others = ("never", "first")
    gang = [
        machine.order("sh", "-c", script, job_id="again", rank=rank, size=2, checkpoints_of=others) for rank in range(2)
    ]
    machine.engine.start(gang)
    for order in gang:
        assert machine.finish(order).succeeded
    assert {machine.log(order) for order in gang} <= {"7\n", "8\n"}
    second = machine.start("sh", "-c", script, job_id="again", attempt=2, checkpoints_of=others)
    assert machine.finish(second).succeeded
    assert (machine.log(second), kept.exists(), (jobs / "first").is_dir()) == ("8\n", False, True)


def test_a_job_whose_others_have_no_checkpoints_gets_an_empty_folder(machine: Machine) -> None:
    order = machine.start("sh", "-c", "ls -A $HOLDFAST_CHECKPOINT_DIR", job_id="again", checkpoints_of=("never",))
    assert machine.finish(order).succeeded
    assert machine.log(order) == ""


def test_a_working_directory_is_where_the_program_starts(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    order = machine.start("pwd", working_dir=str(tmp_path / "here"))
    assert machine.finish(order).succeeded
    assert machine.log(order).strip() == str(tmp_path / "here")


def test_a_second_dispatch_of_an_attempt_appends_to_its_log_and_starts_with_no_message(machine: Machine) -> None:
    first = machine.start("sh", "-c", "echo one; echo old > $HOLDFAST_TERMINATION_LOG; exit 1", job_id="again")
    assert machine.finish(first).containers[0].message == "old\n"
    second = machine.start("sh", "-c", "echo two; exit 1", job_id="again")
    outcome = machine.finish(second)
    assert (outcome.containers[0].message, outcome.log_tail) == ("", ("two",))
    assert machine.log(second) == "one\ntwo\n"


def test_where_each_program_of_a_rank_began_is_known_while_the_disk_has_its_log(machine: Machine) -> None:
    logs, count = ProcessLogs(machine.directory), 4
    for number in range(count):
        machine.finish(machine.start("sh", "-c", f"printf {number}{'x' * number}", job_id="again"))
    part = logs.read("again", 1, 0, offset=0, limit=100)
    assert (part.data, part.began) == (b"01x2xx3xxx", (1, 3, 6))
    assert logs.read("again", 1, 0, offset=4, limit=0).began == (1, 3, 6)
    assert logs.read("other", 1, 0, offset=0, limit=100).began == ()


def test_a_program_that_spoils_where_others_began_spoils_no_more_than_that(machine: Machine) -> None:
    spoil = "printf one; printf 'x\\n-3\\n99999\\n2\\n%05000d\\n' 7 > ../began"
    machine.finish(machine.start("sh", "-c", spoil, job_id="again"))
    machine.finish(machine.start("sh", "-c", "printf two; rm ../began; mkdir ../began", job_id="again"))
    assert ProcessLogs(machine.directory).read("again", 1, 0, offset=0, limit=100).began == ()
    machine.finish(
        machine.start("sh", "-c", "printf three; rmdir ../began; printf '9\\n3\\n3\\n77\\n' > ../began", job_id="again")
    )
    part = ProcessLogs(machine.directory).read("again", 1, 0, offset=0, limit=100)
    assert (part.data, part.began) == (b"onetwothree", (3, 9))


# programs that cannot start


def test_a_program_that_does_not_exist_was_never_started(machine: Machine) -> None:
    outcome = machine.run("no-such-program-anywhere")
    assert not outcome.started
    assert outcome.conditions == {FailureCondition.LAUNCH_FAILED}
    assert outcome.containers[0].exit_code is None
    assert outcome.containers[0].reason == "CommandNotFound"
    assert "No such file or directory" in outcome.message


@pytest.mark.parametrize("memory", [0, 512 * MEBI])
@pytest.mark.parametrize(
    ("name", "content", "mode", "reason"),
    [
        ("plain", "#!/bin/sh\n", 0o600, "PermissionDenied"),
        ("no-interpreter", "#!/no/such/interpreter\n", 0o700, "CommandNotFound"),
        ("not-a-program", "\x00\x01garbage", 0o700, "NotExecutable"),
    ],
)
def test_each_way_of_not_starting_has_its_reason(
    machine: Machine, name: str, content: str, mode: int, reason: str, memory: int
) -> None:
    path = machine.directory / name
    path.write_text(content)
    path.chmod(mode)
    outcome = machine.run(str(path), resources=Resources(memory=memory))
    assert (outcome.started, outcome.conditions) == (False, frozenset({FailureCondition.LAUNCH_FAILED}))
    assert outcome.containers[0].reason == reason


@pytest.mark.parametrize("preparation", [None, Preparation(("true",))], ids=["at once", "prepared"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"#!/no/such/python -u\nx", "the interpreter '/no/such/python' that {} names in its #! line does not exist"),
        (b"#! \t./gone\n", "the interpreter './gone' that {} names in its #! line does not exist"),
        (b"#!/no/such/\xff\n", "the interpreter '/no/such/\\\\xff' that {} names in its #! line does not exist"),
        (b"#!/bin/sh\r\necho\r\n", "its lines end as on Windows; convert it: sed -i 's/\\r$//' {}"),
        (b"#!/etc/passwd\n", "the interpreter '/etc/passwd' that {} names in its #! line cannot be executed"),
        (b"#!./second\n", "the interpreter '/no/such' that './second' names in its #! line does not exist"),
        (b"echo hello\n", "it does not begin with a #! line, such as #!/bin/sh"),
        (b"#!\n", "its #! line names no interpreter"),
        (b"", "it is empty"),
        (b"\x7fELF garbage", "it was built for another kind of machine"),
    ],
)
def test_a_script_that_is_there_and_cannot_be_started_is_told_what_it_lacks(
    machine: Machine, tmp_path: Path, content: bytes, says: str, preparation: Preparation | None
) -> None:
    for name, text in (("script", content), ("second", b"#!/no/such\n")):
        (tmp_path / name).write_bytes(text)
        (tmp_path / name).chmod(0o700)
    outcome = machine.run("./script", working_dir=str(tmp_path), preparation=preparation)
    assert outcome.message.startswith("cannot start './script': "), outcome.message
    assert outcome.message.endswith(says.format("'./script'")), outcome.message


def test_a_script_of_the_path_whose_interpreter_is_missing_is_named_with_its_folder(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "tool").write_text("#!/no/such\n")
    (tmp_path / "tool").chmod(0o700)
    outcome = machine.run("tool", env={"PATH": str(tmp_path)})
    assert outcome.message.endswith(
        f"the interpreter '/no/such' that '{tmp_path}/tool' names in its #! line does not exist"
    )


def test_a_missing_working_directory_is_a_launch_failure_that_names_it(machine: Machine) -> None:
    outcome = machine.run("true", working_dir="/no/such/place")
    assert outcome.containers[0].reason == "WorkingDirNotFound"
    assert "/no/such/place" in outcome.message


def test_arguments_no_system_takes_are_a_launch_failure(machine: Machine) -> None:
    assert machine.run("echo", "a\0b").containers[0].reason == "InvalidCommand"
    assert machine.run("echo", "x" * (4 * MEBI)).containers[0].reason == "ArgumentListTooLong"


# stopping


def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(machine: Machine) -> None:
    order = machine.start(*python(IGNORE_TERM))
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 0.3, StopReason.PREEMPTION)])
    assert machine.until(order, lambda seen: seen.phase is not RunPhase.RUNNING).phase is RunPhase.STOPPING
    outcome = machine.finish(order)
    assert outcome.containers[0].signal == signal.SIGKILL
    assert outcome.ended_by is EndedBy.PREEMPTION


def test_a_program_may_use_its_grace(machine: Machine) -> None:
    order = machine.start("sh", "-c", "trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.05; done")
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 10.0, StopReason.USER)])
    outcome = machine.finish(order)
    assert (outcome.containers[0].exit_code, outcome.ended_by) == (9, EndedBy.USER)
    assert machine.log(order).endswith("saved\n")


def test_a_suspended_program_may_use_its_grace_too(machine: Machine) -> None:
    order = machine.start("sh", "-c", "trap 'exit 9' TERM; echo ready; kill -STOP $$; sleep 1000")
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 20.0, StopReason.USER)])
    assert machine.finish(order).containers[0].exit_code == 9


def test_sigterm_reaches_the_whole_group(machine: Machine) -> None:
    script = "sh -c \"trap 'echo child told; exit' TERM; echo ready; while :; do sleep 0.05; done\" & wait"
    order = machine.start("sh", "-c", f"trap : TERM; {script}; wait")
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 10.0, StopReason.USER)])
    machine.finish(order)
    assert "child told" in machine.log(order)


def test_a_second_stop_shortens_the_grace_and_keeps_the_reason(machine: Machine) -> None:
    order = machine.start(*python(IGNORE_TERM))
    machine.until_logged(order, "ready")
    machine.engine.stop([(order.uid, 1000.0, StopReason.USER)])
    machine.engine.stop([(order.uid, 0.0, StopReason.LOST)])
    assert machine.finish(order).ended_by is EndedBy.USER


def test_children_left_behind_are_killed_when_their_leader_ends(machine: Machine) -> None:
    assert machine.run("sh", "-c", "sleep 1000 & sleep 1000 & exit 0").succeeded
    assert not machine.survivors()


def test_children_that_ran_into_a_session_of_their_own_are_killed_too(machine: Machine) -> None:
    order = machine.start("sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & sleep 0.2")
    assert machine.finish(order).succeeded
    deadline = time.monotonic() + 20
    while machine.survivors():
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def test_a_deadline_ends_a_run_and_says_so(machine: Machine) -> None:
    outcome = machine.run(*python(IGNORE_TERM), deadline_s=0.5, grace_s=0.2)
    assert (outcome.ended_by, outcome.conditions) == (EndedBy.DEADLINE, frozenset({FailureCondition.DEADLINE_EXCEEDED}))
    assert outcome.containers[0].signal == signal.SIGKILL
    assert "deadline of 0.5 s" in outcome.message


def test_a_program_done_before_its_deadline_is_not_late(machine: Machine) -> None:
    assert machine.run("true", deadline_s=60.0).succeeded


# memory


@pytest.fixture(params=["auto", "rss"])
def limited(request: pytest.FixtureRequest, new_machine: NewMachine, tmp_path: Path) -> Machine:
    return new_machine(tmp_path, memory_limits=request.param)


def test_too_much_memory_is_named_with_evidence(limited: Machine) -> None:
    outcome = limited.run(*python(HOG), resources=Resources(memory=96 * MEBI))
    assert (outcome.ended_by, outcome.conditions) == (EndedBy.MEMORY, frozenset({FailureCondition.OOM_KILLED}))
    assert outcome.containers[0].reason == "OOMKilled"
    assert outcome.containers[0].signal == signal.SIGKILL
    assert outcome.peak_memory is not None
    assert outcome.peak_memory > 80 * MEBI
    assert "memory limit" in outcome.message


def test_memory_is_counted_over_a_runs_children(limited: Machine) -> None:
    outcome = limited.run("sh", "-c", f"{sys.executable} -c '{HOG}'; exit $?", resources=Resources(memory=96 * MEBI))
    assert outcome.conditions == {FailureCondition.OOM_KILLED}


def test_enough_memory_is_no_failure(limited: Machine) -> None:
    code = "import time; x = bytearray(40 << 20); time.sleep(0.2)"
    outcome = limited.run(*python(code), resources=Resources(memory=512 * MEBI))
    assert outcome.succeeded
    assert outcome.peak_memory is not None
    assert 40 * MEBI < outcome.peak_memory < 200 * MEBI


@pytest.mark.parametrize(
    ("limit", "condition"), [(500 * MEBI, None), (0, None), (100 * MEBI, FailureCondition.OOM_KILLED)]
)
def test_a_limit_of_its_own_counts_and_not_what_was_asked_for(
    limited: Machine, limit: int, condition: FailureCondition | None
) -> None:
    code = f"import time; x = bytearray(b'x') * (200 << 20); time.sleep({0.5 if condition is None else 30})"
    outcome = limited.run(*python(code), resources=Resources(memory=50 * MEBI), memory_limit=limit)
    assert outcome.conditions == (frozenset() if condition is None else {condition})
    assert outcome.succeeded is (condition is None)


@pytest.mark.parametrize("memory", [1, 1000, 100 << 10])
def test_a_limit_in_which_nothing_runs_is_no_lost_run(machine: Machine, memory: int) -> None:
    outcome = machine.run("/bin/true", resources=Resources(memory=memory))
    assert outcome.ended_by in {EndedBy.ITSELF, EndedBy.MEMORY}
    assert outcome.started


def test_137_alone_is_not_out_of_memory(limited: Machine) -> None:
    outcome = limited.run("sh", "-c", "kill -9 $$", resources=Resources(memory=512 * MEBI))
    assert (outcome.ended_by, outcome.conditions) == (EndedBy.ITSELF, frozenset())


def test_nodes_say_how_memory_is_limited(limited: Machine) -> None:
    way = limited.engine.nodes()[0].labels[MEMORY_LABEL]
    assert way == "rss" if limited.settings["memory_limits"] == "rss" else way in {"cgroup-v1", "cgroup-v2", "rss"}


def test_streams_that_are_kept_apart_are_two_logs_and_both_are_handed_over(machine: Machine) -> None:
    script = "echo out; echo error >&2; exit 1"
    first = machine.start("sh", "-c", script, job_id="again", separate_logs=True)
    outcome = machine.finish(first)
    assert (outcome.log, outcome.log_tail) == ("out\nerror\n", ("out", "error"))
    machine.finish(machine.start("sh", "-c", "echo later >&2; exit 1", job_id="again", separate_logs=True))
    logs = ProcessLogs(machine.directory)
    out, error = (logs.read("again", 1, 0, offset=0, limit=100, stderr=stderr) for stderr in (False, True))
    assert (out.data, out.began) == (b"out\n", (4,))
    assert (error.data, error.began) == (b"error\nlater\n", (6,))
    together = machine.start("sh", "-c", script)
    machine.finish(together)
    assert logs.read(together.job_id, 1, 0, offset=0, limit=100).data == b"out\nerror\n"
    assert logs.read(together.job_id, 1, 0, offset=0, limit=100, stderr=True).data == b""
