"""Arrays at the command line, with a real server and real programs; kill -9 in between."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDS = 'echo "$HOLDFAST_ARRAY_INDEX" >> {folder}/began; '


class Shell(Server):
    """A person's shell with a data directory of its own, and its server."""

    def has_begun(self, count: int) -> bool:
        """Whether so many tasks wrote down that they have begun."""
        path = self.folder / "began"
        return path.exists() and len(path.read_text().split()) >= count


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.clean_up()


@pytest.mark.slow
def test_a_sweep_is_one_thing_to_look_at_and_its_failures_are_grouped(shell: Shell) -> None:
    script = 'echo "lr {lr} seed {seed}"; test {seed} != 2'
    command = ("run", "--name", "sweep", "--matrix", "lr=0.1,0.01", "seed=1..3", "--max-running", "4", "--")
    assert shell.run(*command, "sh", "-c", script).returncode == 1
    array = shell.json("get", "array", "sweep")
    assert [array[name] for name in ("state", "total", "succeeded", "failed", "running", "waiting")] == [
        "Failed", 6, 4, 2, 0, 0,
    ]  # fmt: skip
    assert shell.json("get", "jobs")["items"] == []
    assert "6 of 6 tasks ended, 2 failed" in shell.run("get", "jobs").stdout
    assert [job["array_index"] for job in shell.json("get", "jobs", "--array", "sweep")["items"]] == list(range(6))
    assert [job["name"] for job in shell.json("get", "jobs", "--array", "sweep", "-s", "failed")["items"]] == [
        "sweep-1",
        "sweep-4",
    ]
    [group] = shell.json("why", "sweep")["groups"]
    assert (group["count"], group["indexes"], group["exit_code"]) == (2, "1,4", 1)
    assert shell.run("logs", "sweep", "--index", "3").stdout == "lr 0.01 seed 1\n"
    for many in ("sweep", "array/sweep"):
        assert "hint: holdfast logs sweep --index 0" in shell.run("logs", many).stderr
        assert "hint: holdfast attempts sweep --index 0" in shell.run("attempts", many).stderr
    assert len(shell.json("attempts", "sweep", "--index", "4")["items"]) == 1
    assert shell.run("wait", "array", "sweep").returncode == 1


@pytest.mark.slow
def test_each_line_of_a_file_is_a_task_and_a_name_is_used_once(shell: Shell) -> None:
    ended = shell.run("run", "--name", "files", "--each", "-", "--", "echo", "reading {}", text="a b\n\nc\n")
    assert (ended.returncode, "2 of 2 tasks succeeded" in ended.stderr) == (0, True)
    assert shell.run("logs", "files", "--index", "0").stdout == "reading a b\n"
    again = shell.run("run", "--name", "files", "--array", "0-1", "--", "true")
    assert (again.returncode, "array 'files' exists already" in again.stderr) == (4, True)
    assert shell.run("delete", "array", "files").returncode == 0
    assert shell.run("run", "--array", "0-1", "--", "true").returncode == 0  # without a name it gets one of its own


def test_an_array_in_a_manifest_is_submitted_and_waited_for(shell: Shell) -> None:
    path = shell.folder / "array.yaml"
    path.write_text("name: some\ncommand: [sh, -c, 'exit {index}']\narray: {indices: 0-9, success: any}\n")
    submitted = shell.run("submit", "-f", str(path), "--wait", "-o", "name")
    assert (submitted.returncode, submitted.stdout) == (0, "array/some\n"), submitted.stderr
    path.write_text('name: none\ncommand: ["true"]\narray: {indices: x}\n')
    refused = shell.run("submit", "-f", str(path))
    assert (refused.returncode, f"{path}: array.indices (line 3)" in refused.stderr) == (2, True), refused.stderr


@pytest.mark.slow
def test_files_with_arrays_are_checked_whole_applied_and_deleted(shell: Shell) -> None:
    path = shell.folder / "several.yaml"
    array, bad = "name: some\ncommand: ['true']\narray: {indices: 0-1}\n", "name: bad\ncommand: ['true']\nqueue: nope\n"
    path.write_text(f"{array}---\n{bad}")
    refused = shell.run("submit", "-f", str(path))
    assert (refused.returncode, "nothing was submitted" in refused.stderr) == (2, True), refused.stderr
    assert shell.json("get", "arrays")["items"] == []
    path.write_text(array)
    dry = shell.run("submit", "-f", str(path), "--dry-run")
    assert (dry.returncode, "indices: 0-1" in dry.stdout) == (0, True), dry.stderr
    assert shell.json("get", "arrays")["items"] == []
    assert shell.run("apply", "-f", str(path)).stdout == "array some submitted\n"
    path.write_text(array.replace("0-1", "0-1, maxRunning: 1"))
    assert shell.run("apply", "-f", str(path)).stdout == "array some updated\n"
    path.write_text(array.replace("0-1", "0-2, maxRunning: 1"))
    refused = shell.run("apply", "-f", str(path))
    assert (refused.returncode, f"{path}: array.indices (line 3)" in refused.stderr) == (4, True), refused.stderr
    assert "exists already" in shell.run("submit", "-f", str(path), "--dry-run").stderr
    assert shell.run("delete", "-f", str(path)).stdout == "array some deletion requested\n"


@pytest.mark.slow
def test_a_cancelled_array_leaves_no_program_and_makes_no_more_tasks(shell: Shell) -> None:
    shell.start().close()
    assert shell.run("run", "-d", "--name", "long", "--array", "0-99", "--", "sleep", "300").stdout == "long\n"
    wait_until(lambda: shell.json("get", "array", "long")["running"] > 0, "tasks run")
    assert "long hold requested" in shell.run("hold", "long", "--reason", "too hot").stdout
    wait_until(lambda: shell.json("get", "array", "long")["reason"] == "too hot", "it is held")
    assert shell.run("get", "arrays", "--state", "held", "-o", "name").stdout == "array/long\n"
    assert shell.run("wait", "array", "long", "--for", "held", "--timeout", "30s").returncode == 0
    assert "long release requested" in shell.run("release", "--all").stdout
    assert shell.run("run", "-d", "--name", "long", "--", "sleep", "300").returncode == 0  # a job of the same name
    assert "long cancel requested" in shell.run("cancel", "array/long", "--reason", "wrong data").stdout
    ended = shell.run("wait", "array", "long", "--timeout", "30s")
    assert (ended.returncode, "long: Cancelled: wrong data" in ended.stderr) == (1, True), ended.stderr
    assert shell.run("cancel", "job/long").returncode == 0
    assert shell.run("wait", "long", "--for", "Cancelled", "--timeout", "30s").returncode == 0
    assert shell.programs() == []
    assert shell.run("cancel", "array/long").returncode != 0


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_kill_nine_at_any_time_loses_no_task_and_runs_none_twice(shell: Shell, kills: int) -> None:
    shell.start().close()
    script = RECORDS.format(folder=shell.folder) + "sleep 0.02"
    assert shell.run("run", "-d", "--name", "all", "--array", "0-299", "--", "sh", "-c", script).returncode == 0
    for number in range(kills):
        wait_until(partial(shell.has_begun, 30 * (number + 1)), "some tasks have begun")
        shell.end()
        shell.start().close()
    assert shell.run("wait", "array", "all", "--timeout", "60s").returncode == 0
    began = (shell.folder / "began").read_text().split()
    assert sorted(map(int, began)) == list(range(300))


@pytest.mark.slow
def test_what_failed_is_rerun_with_more_memory_and_goes_on_from_its_checkpoints_whatever_is_killed(
    shell: Shell,
) -> None:
    script = (
        "step=$HOLDFAST_CHECKPOINT_DIR/step; test -e $step && { sleep 2; cat $step; exit; }; "
        "test {index} -ge 2 || exit 0; echo half of {index} > $step; exit $(({index} - 1))"
    )
    array = {"name": "sweep", "command": ["sh", "-c", script], "array": {"indices": "0-3"}}
    with shell.start() as client:
        client.submit_array(array)
        wait_until(lambda: client.array("sweep").state == "Failed", "the first try ends")
    made = shell.run("rerun", "sweep", "--failed", "--cause", "kernel_nonzero_exit", "--set", "memory=64Mi")
    assert (made.returncode, made.stdout) == (0, "sweep-rerun-1\n"), made.stderr
    assert "array sweep-rerun-1 reruns 2 tasks of sweep: 2,3" in made.stderr
    wait_until(shell.programs, "tasks run again")
    shell.end()
    with shell.start() as client:
        wait_until(lambda: client.array("sweep-rerun-1").state == "Succeeded", "the second try ends")
        assert [client.logs(f"sweep-rerun-1-{index}").text for index in (2, 3)] == ["half of 2\n", "half of 3\n"]
        task = client.job("sweep-rerun-1-3")
        assert (task.spec["resources"]["memory"], len(task.attempts)) == (64 << 20, 1)
        again = shell.run("rerun", "sweep", "--failed")
        assert (again.returncode, "holdfast rerun sweep-rerun-1 --failed" in again.stderr) == (4, True), again.stderr
        assert shell.run("rerun", "sweep-rerun-1", "--failed").returncode == 3
