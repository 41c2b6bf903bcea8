"""Whoever runs the tests may use Holdfast, too: the tests see none of the caller's variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from holdfast.app.reach import PREFIX
from holdfast.app.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[2]
AWAY = {"URL": "http://127.0.0.1:1", "TOKEN": "of-the-caller", "DATA": "/nowhere", "CPUS": "0.001", "SECRET_OPS": "x"}


def test_no_variable_of_the_caller_is_seen_by_tests_or_what_they_start() -> None:
    shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert [line for line in shown.splitlines() if line.startswith(PREFIX)] == []
    assert read_settings() == Settings()


def test_tests_run_with_variables_of_holdfast_as_they_do_without() -> None:
    one = f"{__file__}::{test_no_variable_of_the_caller_is_seen_by_tests_or_what_they_start.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", one],
        cwd=ROOT,
        env={**os.environ, **{f"{PREFIX}{name}": value for name, value in AWAY.items()}},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
