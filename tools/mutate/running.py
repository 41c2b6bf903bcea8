"""Runs tests on broken copies of the repository, a few at a time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("src", "tests", "tools", "examples", "bench", "docs")
_ALONE = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "LICENSE", "dev")


class Copies:
    """Copies of the repository to break."""

    def __init__(self, folder: Path, many: int, of: Path = ROOT) -> None:
        """Make so many."""
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(many):
            self._free.put(copied(folder / str(number), of))

    @contextmanager
    def one(self) -> Iterator[Path]:
        """Borrow one, to be given back as it was."""
        root = self._free.get()
        try:
            yield root
        finally:
            self._free.put(root)


def copied(to: Path, root: Path = ROOT) -> Path:
    """Copy what a repository has of what tests need."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in _COPIED:
        if (root / folder).is_dir():
            shutil.copytree(root / folder, to / folder, ignore=ignored)
    for name in _ALONE:
        if (root / name).is_file():
            shutil.copy2(root / name, to / name)
    return to


def run_tests(
    root: Path, tests: Sequence[str], longest_s: float, options: Sequence[str] = ()
) -> tuple[int | None, str]:
    """Run tests on a copy; returns pytest's exit code, ``None`` when it had to be stopped, and which test failed.

    Each run has a temporary directory of its own: broken code may leave programs behind that still use theirs.
    """
    with tempfile.TemporaryDirectory(dir=root, prefix="tmp-", ignore_cleanup_errors=True) as folder:
        base = ("--no-header", "--tb=no", f"--basetemp={folder}/t")
        return _run(root, [sys.executable, "-m", "pytest", "-x", *base, *options, *tests], longest_s)


def _run(root: Path, command: Sequence[str], longest_s: float) -> tuple[int | None, str]:
    env = {**os.environ, "PYTHONPATH": f"{root}/src"}  # noqa: TID251 - a child's
    process = subprocess.Popen(  # noqa: S603 - our own tests
        command,
        cwd=root,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "it never ends"
    lines = [line for line in told.splitlines() if line.startswith(("FAILED", "ERROR"))] or told.splitlines()[-1:]
    return process.returncode, lines[0].removeprefix("FAILED ").partition(" - ")[0] if lines else ""
