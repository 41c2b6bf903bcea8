"""The parts of the process engine that need no process: messages, environments, paths, journal, timers, ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import ContainerResult, EndedBy
from holdfast.domain.spec import Resources
from holdfast.engines.process import log_path, log_start, translate
from holdfast.engines.process.keeper import journal as journals
from holdfast.engines.process.keeper.journal import Journal, replay
from holdfast.engines.process.keeper.ports import Ports
from holdfast.engines.process.keeper.records import FINISHED, STARTING, Run
from holdfast.engines.process.keeper.timers import Timers
from holdfast.engines.process.observe import observation
from holdfast.errors import InvalidRequest
from holdfast.ports.engine import RunOrder, RunPhase

if TYPE_CHECKING:
    from pathlib import Path

ORDER = RunOrder(
    uid="u",
    job_id="j",
    job_name="n",
    attempt=2,
    rank=1,
    size=4,
    command=("python", "train.py"),
    env={"LR": "0.1", "HOLDFAST_RANK": "99"},
    resources=Resources(memory=1024),
    ports=("web-ui",),
)


def test_a_job_cannot_pretend_to_be_another_rank(tmp_path: Path) -> None:
    env = translate.launch_message(tmp_path, ORDER)["env"]
    assert (env["HOLDFAST_RANK"], env["LR"]) == ("1", "0.1")


def test_only_gangs_have_a_master_port(tmp_path: Path) -> None:
    message = translate.launch_message(tmp_path, ORDER)
    assert (message["gang"], message["ports"], message["memory"]) == ("j/2", ["WEB_UI"], 1024)
    alone = RunOrder("u", "j", "n", attempt=1, rank=0, size=1, command=("true",))
    assert translate.launch_message(tmp_path, alone)["gang"] == ""


def test_the_base_environment_is_a_short_list_and_always_has_a_path() -> None:
    environ = {"HOME": "/h", "LC_CTYPE": "C", "HOLDFAST_TOKEN": "t", "HOLDFAST_URL": "u", "SECRET": "s"}
    assert translate.base_environment(environ) == {
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
    report = {"uid": "u", "node": "here", "phase": "finished", "started_at": 2.0, "progress": "p", "outcome": outcome}
    seen = observation(report)
    assert (seen.phase, seen.started_at, seen.progress) == (RunPhase.FINISHED, 2.0, "p")
    assert seen.outcome is not None
    assert seen.outcome.containers == (ContainerResult(137, signal=9, reason="OOMKilled"),)
    assert (seen.outcome.ended_by, seen.outcome.ran_s, seen.outcome.node) == (EndedBy.MEMORY, 3.0, "here")
    assert (seen.outcome.message, seen.outcome.log_tail, seen.outcome.peak_memory) == ("too much", ("a", "b"), 7)


def test_a_run_stopped_before_it_started_has_no_container() -> None:
    outcome = {"started": False, "ended_at": 5.0, "ended_by": "user", "note": "stopped before it started"}
    report = {"uid": "u", "node": "", "phase": "finished", "started_at": None, "progress": "", "outcome": outcome}
    seen = observation(report).outcome
    assert seen is not None
    assert (seen.containers, seen.node, seen.started) == ((), None, False)


def ended(uid: str) -> Run:
    run = Run(uid, "here", f"/runs/{uid}")
    run.phase, run.outcome = FINISHED, {"ended_at": 1.0}
    return run


def test_a_journal_gives_back_what_was_not_forgotten(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    journal = Journal(path)
    going = Run("going", "here", "/runs/going")
    going.pid, going.started_at = 42, 3.0
    for run in (ended("kept"), ended("gone"), going):
        journal.ordered(run)
    journal.started(going, before=1.0)
    journal.ended(ended("kept"))
    journal.ended(ended("gone"))
    journal.forgot(["gone"])
    journal.close()
    runs, started = replay(path)
    assert {uid: run.phase for uid, run in runs.items()} == {"kept": FINISHED, "going": STARTING}
    assert runs["kept"].outcome == {"ended_at": 1.0}
    assert list(started) == ["going"]
    assert (started["going"].pid, started["going"].before) == (42, 1.0)


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
    journal.ordered(Run("later", "here", "/runs/later"))
    journal.close()
    assert list(replay(path)[0]) == ["run-7", "run-99", "later"]


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
    gang = [Run(f"r{rank}", "here", "/", {"ports": ["A"], "gang": "j/1"}) for rank in (0, 1)]
    other = Run("other", "here", "/", {"ports": [], "gang": "j/2"})
    taken = [ports.environment(run) for run in (*gang, other)]
    masters = [one["HOLDFAST_MASTER_PORT"] for one in taken]
    assert masters[0] == masters[1] != masters[2]
    assert len({masters[0], masters[2], taken[0]["HOLDFAST_PORT_A"], taken[1]["HOLDFAST_PORT_A"]}) == 4
    for run in gang:
        ports.release(run.uid, "j/1")
    assert ports.environment(gang[0])["HOLDFAST_MASTER_PORT"] != masters[2]
