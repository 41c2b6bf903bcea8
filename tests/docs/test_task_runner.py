"""The task runner says what it can do, and what went wrong."""

from __future__ import annotations

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


def test_ci_runs_what_a_developer_runs_and_then_what_takes_longer() -> None:
    *_, first, second, third = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [first, second, third.partition(" --minutes ")[0]] == ["./dev test", "./dev slow", "./dev mutate"]
