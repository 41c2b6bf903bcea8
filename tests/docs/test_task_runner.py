"""The task runner says what it can do, and what went wrong."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TASKS = re.findall(r"^    (\w+)\)", (ROOT / "dev").read_text(), re.MULTILINE)


def dev(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(ROOT / "dev"), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environ or None,
    )


def test_the_tasks_are_those_promised() -> None:
    assert set(TASKS) >= {"setup", "demo", "test", "slow", "mutate", "check", "cases", "bench"}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_in_the_help(task: str) -> None:
    assert re.search(rf"^  {task}\b", dev("help").stdout, re.MULTILINE)


def test_an_unknown_task_is_refused_with_the_help() -> None:
    done = dev("nonsense")
    assert done.returncode == 1
    assert "there is no task 'nonsense'" in done.stderr
    assert "usage:" in done.stderr


def test_without_a_python_it_says_what_to_do(tmp_path: Path) -> None:
    for tool in ("dirname", "cat", "cksum"):
        found = subprocess.run(["/bin/sh", "-c", f"command -v {tool}"], capture_output=True, text=True, check=True)
        (tmp_path / tool).symlink_to(found.stdout.strip())
    done = dev("setup", PATH=str(tmp_path), HOLDFAST_VENV=str(tmp_path / "venv"))
    assert done.returncode == 1
    assert "Python 3.11 or newer was not found" in done.stderr


CI_RUNS = {
    "all pass": ({}, 0, ["clients", "test", "slow", "mutate"]),
    "a test passes the second time": ({"test": 1}, 0, ["clients", "test", "slow", "again", "mutate"]),
    "a slow test passes the second time": ({"slow": 1}, 0, ["clients", "test", "slow", "again", "mutate"]),
    "a test fails twice": ({"test": 1, "again": 1}, 1, ["clients", "test", "slow", "again"]),
    "a failed suite left no test to run again": ({"slow": 1, "again": 5}, 5, ["clients", "test", "slow", "again"]),
    "a check fails": ({"test": 2}, 2, ["clients", "test"]),
    "the slow suite cannot run": ({"slow": 3}, 3, ["clients", "test", "slow"]),
    "a mutant survives": ({"mutate": 1}, 0, ["clients", "test", "slow", "mutate"]),
    "other systems' clients cannot be installed": ({"clients": 1}, 0, ["clients", "test", "slow", "mutate"]),
}
"""Exit codes of the tasks that fail, CI's own exit code, and the tasks that it ran."""


@pytest.mark.parametrize(("codes", "code", "tasks"), CI_RUNS.values(), ids=CI_RUNS.keys())
def test_ci_fails_only_for_what_fails_twice_and_for_checks(
    tmp_path: Path, codes: dict[str, int], code: int, tasks: list[str]
) -> None:
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    script.write_text((ROOT / ".ci" / "run").read_text())
    cases = "".join(f"{task}) exit {number} ;;\n" for task, number in codes.items())
    programs = {"dev": f'#!/bin/sh\necho "$1" >>tasks\ncase $1 in\n{cases}esac\n', "initdb": "", "strace": ""}
    for name, text in programs.items():  # the task runner as CI calls it, and two programs that are looked for
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", str(script)], capture_output=True, text=True, timeout=30, check=False, env={"PATH": path}
    )
    assert done.returncode == code
    assert (tmp_path / "tasks").read_text().split() == tasks
    timed = {"install", *tasks} - {"clients", "mutate"}
    assert timed <= {line.split()[-1] for line in done.stdout.partition("took how long:")[2].splitlines() if line}
