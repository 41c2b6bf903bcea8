"""Runs tests on copies of the repository, which can be broken without harm."""

from __future__ import annotations

import math
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

_LEAVE_S = 10.0
_COPIED = ("src", "tests", "tools", "examples", "bench", "docs")
_ALONE = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "LICENSE", "dev")


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder for a while."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-mutate-", dir=parent))
    folder.chmod(0o755)  # some tests run programs of other accounts
    try:
        yield folder
    finally:
        # Tests that were stopped leave folders deeper than Python's own removal can go, and programs that still write.
        subprocess.run(["rm", "-rf", str(folder)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607 - our own


class Copies:
    """Copies of a repository, each lent to one trial at a time."""

    def __init__(self, folder: Path, number: int, root: Path) -> None:
        """Copy `root` that many times into a folder."""
        self.paths = [_copied(folder / str(index), root) for index in range(number)]
        self._free: SimpleQueue[Path] = SimpleQueue()
        for path in self.paths:
            self._free.put(path)

    @contextmanager
    def lent(self) -> Iterator[Path]:
        """Borrow a copy, to be given back as it was."""
        root = self._free.get()
        try:
            yield root
        finally:
            self._free.put(root)


def _copied(to: Path, root: Path) -> Path:
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
    with scratch(root) as folder:
        base = ("--no-header", "--tb=no", f"--basetemp={folder}/t")
        code, output = run(
            root, [sys.executable, "-m", "pytest", "-x", *base, *options, *tests], [root / "src"], longest_s
        )
    if code is None:
        return code, "tests that never end"
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))] or output.splitlines()[-1:]
    return code, lines[0].removeprefix("FAILED ").removeprefix("ERROR ").partition(" - ")[0] if lines else ""


def run(root: Path, command: Sequence[str], path: Sequence[Path], longest_s: float) -> tuple[int | None, str]:
    """Run a program in a copy; returns its exit code, ``None`` when it had to be stopped, and what it printed."""
    process = subprocess.Popen(  # noqa: S603 - our own tests
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},  # noqa: TID251 - a child's
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=None if math.isinf(longest_s) else longest_s)
    except subprocess.TimeoutExpired:
        return None, _stopped(process)
    return process.returncode, output


def _stopped(process: subprocess.Popen[str]) -> str:
    """Interrupt pytest, so that it stops what tests have started, and kill it if that takes long; return its output."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=_LEAVE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output
