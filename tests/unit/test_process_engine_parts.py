"""The parts of the process engine that need no process: messages, paths, journal, records, timers, ports."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path

import pytest

from holdfast.domain.devices import Device
from holdfast.domain.failure import ContainerResult, EndedBy
from holdfast.domain.job import Resources
from holdfast.engines.devices.visible import visible
from holdfast.engines.process import files
from holdfast.engines.process.files import log_path, log_start, observation
from holdfast.engines.process.shim import journal as journals
from holdfast.engines.process.shim import record as records
from holdfast.engines.process.shim.journal import Journal, replay
from holdfast.engines.process.shim.ports import Ports
from holdfast.engines.process.shim.record import Record
from holdfast.engines.process.shim.records import FINISHED, STARTING, Exit, ShimRun, SupervisedRun
from holdfast.engines.process.shim.runs import Timers
from holdfast.errors import InvalidRequest
from holdfast.ports.engine import Container, RunOrder, RunPhase

ORDER = RunOrder(
    uid="u",
    job_id="j",
    job_name="n",
    attempt=2,
    rank=1,
    size=4,
    containers=(Container(command=("python", "train.py"), env={"LR": "0.1", "HOLDFAST_RANK": "99"}),),
    resources=Resources(memory=1024),
    ports=("web-ui",),
)


def test_a_job_cannot_pretend_to_be_another_rank(tmp_path: Path) -> None:
    env = files.launch_message(tmp_path, ORDER)["env"]
    assert (env["HOLDFAST_RANK"], env["LR"]) == ("1", "0.1")


def test_only_gangs_have_a_master_port(tmp_path: Path) -> None:
    message = files.launch_message(tmp_path, ORDER)
    assert (message["gang"], message["ports"], message["memory"]) == ("j/2", ["WEB_UI"], 1024)
    alone = RunOrder("u", "j", "n", attempt=1, rank=0, size=1, containers=(Container(command=("true",)),))
    assert files.launch_message(tmp_path, alone)["gang"] == ""


def test_the_base_environment_is_a_short_list_and_always_has_a_path() -> None:
    environ = {"HOME": "/h", "LC_CTYPE": "C", "HOLDFAST_TOKEN": "t", "HOLDFAST_URL": "u", "SECRET": "s"}
    assert files.base_environment(environ) == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/h",
        "LC_CTYPE": "C",
    }


@pytest.mark.parametrize("job_id", ["", "..", "a/b", "../etc", ".hidden", "a\0b"])
def test_a_job_id_cannot_lead_out_of_the_directory(tmp_path: Path, job_id: str) -> None:
    with pytest.raises(InvalidRequest):
        log_path(tmp_path, job_id, 1, 0)


def test_a_whole_log_and_a_missing_one_start_at_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("text")
    assert (log_start(tmp_path / "log"), log_start(tmp_path / "none")) == (0, 0)


def test_a_report_becomes_an_observation() -> None:
    facts = {
        "started": True,
        "ended_at": 5.0,
        "ended_by": "memory",
        "exit_code": 137,
        "signal": 9,
        "reason": "OOMKilled",
    }
    outcome = {**facts, "conditions": ["OOMKilled"], "note": "too much", "log_tail": ["a", "b"], "peak_memory": 7}
    report: dict[str, object] = {
        "uid": "u",
        "node": "here",
        "phase": "finished",
        "ports": [],
        "started_at": 2.0,
        "progress": "p",
        "outcome": outcome,
    }
    seen = observation(report)
    assert (seen.phase, seen.started_at, seen.progress) == (RunPhase.FINISHED, 2.0, "p")
    assert seen.outcome is not None
    assert seen.outcome.containers == (ContainerResult(137, signal=9, reason="OOMKilled"),)
    assert (seen.outcome.ended_by, seen.outcome.ran_s, seen.outcome.node) == (EndedBy.MEMORY, 3.0, "here")
    assert (seen.outcome.message, seen.outcome.log_tail, seen.outcome.peak_memory) == ("too much", ("a", "b"), 7)


def test_a_run_stopped_before_it_started_has_no_container() -> None:
    outcome = {"started": False, "ended_at": 5.0, "ended_by": "user", "note": "stopped before it started"}
    report: dict[str, object] = {
        "uid": "u",
        "node": "",
        "phase": "finished",
        "ports": [],
        "started_at": None,
        "progress": "",
        "outcome": outcome,
    }
    seen = observation(report).outcome
    assert seen is not None
    assert (seen.containers, seen.node, seen.started) == ((), None, False)


def ended(uid: str) -> ShimRun:
    run = ShimRun(uid, "here", f"/runs/{uid}")
    run.phase, run.outcome = FINISHED, {"ended_at": 1.0}
    return run


def test_a_journal_gives_back_what_was_not_forgotten(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    journal = Journal(path)
    for run in (ended("kept"), ended("gone"), ShimRun("going", "here", "/runs/going")):
        journal.ordered(run)
    journal.ended(ended("kept"))
    journal.ended(ended("gone"))
    journal.forgot(["gone"])
    journal.close()
    runs = replay(path)
    assert {uid: run.phase for uid, run in runs.items()} == {"kept": FINISHED, "going": STARTING}
    assert runs["kept"].outcome == {"ended_at": 1.0}


def test_closing_a_journal_writes_what_is_pending(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    journal.ordered(ended("kept"))
    journal.close()
    assert list(replay(str(tmp_path / "journal"))) == ["kept"]


def test_a_line_cut_short_swallows_no_other(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('["order","first","here","/runs"]\n["end","first",1.0,"",{"ended_a')
    journal = Journal(str(path))
    journal.ordered(ShimRun("second", "here", "/runs"))
    journal.close()
    assert list(replay(str(path))) == ["first", "second"]


def test_what_a_full_disk_refused_is_kept_and_written_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        journal.ordered(ended("kept"))
        assert not journal.flush()
        assert journal.pending
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert journal.flush()
    journal.close()
    assert list(replay(str(path))) == ["kept"]


def test_a_journal_grown_long_keeps_only_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "COMPACT_BYTES", 1000)
    path = str(tmp_path / "journal")
    journal = Journal(path)
    for number in range(100):
        journal.ordered(ended(f"run-{number}"))
        journal.ended(ended(f"run-{number}"))
    journal.flush()
    before = journal.size
    journal.shrink({"run-7", "run-99"})
    assert journal.size < before / 10
    journal.ordered(ShimRun("later", "here", "/runs/later"))
    journal.close()
    assert list(replay(path)) == ["run-7", "run-99", "later"]


def test_a_journal_that_cannot_be_put_in_its_place_stays_and_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "COMPACT_BYTES", 10)
    journal = Journal(str(tmp_path / "journal"))
    journal.ordered(ShimRun("kept", "here", "/runs/kept"))
    journal.flush()
    monkeypatch.setattr(Path, "replace", refuse)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers
    journal.shrink({"kept"})
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208 - as above
    journal.ordered(ShimRun("later", "here", "/runs/later"))
    journal.close()
    assert list(replay(str(tmp_path / "journal"))) == ["kept", "later"]


def refuse(_: Path, __: str) -> Path:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_timers_come_in_order_and_ended_runs_are_dropped_once_many() -> None:
    timers = Timers()
    for number in range(2000):
        timers.add(float(2000 - number), f"run-{number}", "deadline")
    timers.prune(lambda uid: uid in {"run-1999", "run-0"})
    assert timers.next() == 1.0
    assert list(timers.due(5000.0)) == [("run-1999", "deadline"), ("run-0", "deadline")]
    assert timers.next() == float("inf")


def test_ports_are_shared_within_a_gang_only_and_come_back() -> None:
    ports = Ports()
    gang = [ShimRun(f"r{rank}", "here", "/", {"ports": ["A"], "gang": "j/1"}) for rank in (0, 1)]
    other = ShimRun("other", "here", "/", {"ports": [], "gang": "j/2"})
    taken = [ports.environment(run) for run in (*gang, other)]
    masters = [one["HOLDFAST_MASTER_PORT"] for one in taken]
    assert masters[0] == masters[1] != masters[2]
    assert len({masters[0], masters[2], taken[0]["HOLDFAST_PORT_A"], taken[1]["HOLDFAST_PORT_A"]}) == 4
    for run in gang:
        ports.release(run.uid)
    assert ports.environment(gang[0])["HOLDFAST_MASTER_PORT"] != masters[2]


def test_without_a_free_port_a_run_is_refused_until_another_gives_one_back() -> None:
    ports = Ports()
    ports.take_over("others", range(20_000, 32_000), "", 0)
    run = ShimRun("r", "here", "/", {"ports": ["HTTP"]})
    with pytest.raises(OSError, match="no free ports available"):
        ports.environment(run)
    ports.release("others")
    assert 20_000 <= int(ports.environment(run)["HOLDFAST_PORT_HTTP"]) < 32_000


def test_ports_of_an_earlier_shims_runs_are_not_handed_out_again() -> None:
    ports = Ports()
    first = int(ports.environment(ShimRun("r", "here", "/", {"ports": ["A"]}))["HOLDFAST_PORT_A"])
    ports.take_over("old", [first + 1], "j/1", first + 2)
    taken = int(ports.environment(ShimRun("s", "here", "/", {"ports": ["A"]}))["HOLDFAST_PORT_A"])
    assert taken > first + 2
    joined = ports.environment(ShimRun("t", "here", "/", {"ports": [], "gang": "j/1"}))
    assert joined["HOLDFAST_MASTER_PORT"] == str(first + 2)


def program(tmp_path: Path) -> SupervisedRun:
    order = {"uid": "u", "node": "n", "directory": str(tmp_path), "grace_s": 1.0, "env": {"SECRET": "s"}, "argv": ["x"]}
    made = SupervisedRun(order)
    made.pid, made.started_at, made.exit = 42, 3.0, Exit(7, None, 0)
    made.outcome = {"ended_at": 5.0, "message": "m", "log_tail": ["l"]}
    return made


def test_a_record_tells_each_step_of_its_last_run_and_no_secret(tmp_path: Path) -> None:
    path, run = str(tmp_path / "1.record"), program(tmp_path)
    kept = Record(path)
    assert records.read(path) is None
    kept.begin(run, "here", "now")
    begun = records.read(path)
    assert begun is not None
    assert (begun.uid, begun.place, begun.boot, begun.start, begun.exit, begun.end) == (
        "u",
        "here",
        "now",
        None,
        None,
        None,
    )
    kept.started(run, 1.0, 2.0)
    kept.exited(run)
    exited = records.read(path)
    assert exited is not None
    assert exited.start is not None
    assert exited.exit is not None
    assert (exited.start["pid"], exited.exit["exit"], exited.end) == (42, [7, None, 0], None)
    kept.ended(run)
    ended_well = records.read(path)
    assert ended_well is not None
    assert ended_well.end == run.outcome
    assert b"SECRET" not in (tmp_path / "1.record").read_bytes()
    kept.begin(program(tmp_path), "here", "now")
    again = records.read(path)
    assert again is not None
    assert (again.start, again.exit, again.end) == (None, None, None)


def test_of_a_record_cut_short_what_came_before_counts(tmp_path: Path) -> None:
    path, run = tmp_path / "1.record", program(tmp_path)
    kept = Record(str(path))
    kept.begin(run, "here", "now")
    kept.started(run, 1.0, 2.0)
    whole = path.read_bytes().partition(b"\0")[0]
    kept.ended(run)
    path.write_bytes(path.read_bytes()[: len(whole) + 9])
    cut = records.read(str(path))
    assert cut is not None
    assert cut.start is not None
    assert cut.end is None


def test_an_end_is_written_although_the_disk_is_full(tmp_path: Path) -> None:
    run = program(tmp_path)
    kept = Record(str(tmp_path / "1.record"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (records.ROOM_BYTES, hard))
        kept.begin(run, "here", "now")
        run.outcome = {"ended_at": 5.0, "message": "m" * records.ROOM_BYTES, "log_tail": ["l"]}
        kept.ended(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    found = records.read(str(tmp_path / "1.record"))
    assert found is not None
    assert found.end == {"ended_at": 5.0, "message": "", "log": "", "log_tail": []}


def test_a_record_is_held_for_as_long_as_its_supervisor_lives(tmp_path: Path) -> None:
    path = str(tmp_path / "1.record")
    held = Record(path)
    assert records.is_held(path)
    held.remove()
    assert not records.is_held(path)


NVIDIA_GPUS = [Device(f"GPU-{name}", place, maker="nvidia") for place, name in enumerate("ab")]
AMD_GPUS = [Device(f"GPU-{name}", place, maker="amd") for place, name in enumerate("cd")]
NUMBERED = [Device(f"gpu-{place}", place) for place in range(2)]


@pytest.mark.parametrize(
    ("devices", "given", "seen"),
    [
        (NVIDIA_GPUS, ("GPU-b",), ("GPU-b", "-1", "GPU-b")),
        (NVIDIA_GPUS, ("GPU-a", "GPU-b"), ("GPU-a,GPU-b", "-1", "GPU-a,GPU-b")),
        (NVIDIA_GPUS, (), ("-1", "-1", "void")),
        (AMD_GPUS, ("GPU-d",), ("1", "1", "void")),
        (AMD_GPUS, (), ("-1", "-1", "void")),
        (NUMBERED, ("gpu-1",), ("1", "1", "1")),
        ([*NVIDIA_GPUS, *AMD_GPUS], ("GPU-c",), ("-1", "0", "void")),
        ([*NVIDIA_GPUS, *AMD_GPUS], ("GPU-a",), ("GPU-a", "-1", "GPU-a")),
    ],
)
def test_a_program_sees_its_gpus_and_no_others(
    devices: list[Device], given: tuple[str, ...], seen: tuple[str, str, str]
) -> None:
    env = visible(devices, given)
    assert tuple(env[f"{name}_VISIBLE_DEVICES"] for name in ("CUDA", "HIP", "NVIDIA")) == seen


def test_on_a_node_without_gpus_nothing_is_said_of_them() -> None:
    assert visible((), (), share_m=250) == {}
    assert visible(NUMBERED, ("gpu-0",), share_m=250)["HOLDFAST_GPU_SHARE"] == "0.25"
