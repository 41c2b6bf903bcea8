"""Runs tests on broken copies of the repository, a few at a time.

Decides what counts as noticed: a test that fails, or never ends, and passes on the code as it is. Anything else pytest
may say is a fault of the list.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tools.mutate.mutation import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.mutate.mutation import Mutation

_COPIED = ("src", "tests", "tools", "examples", "bench", "docs")
_ALONE = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "LICENSE", "dev")
_LONGEST_S = 120.0
_UNUSED = ("-p", "no:schemathesis", "-p", "no:hydra_pytest")
"""Plugins that take as long to read as a short test to run."""
_ONE_FAILED = 1
_AGAIN = 2
"""What was not noticed is tried again: a race is not lost each time, and a busy machine may be too slow for a test."""


class Verdict(StrEnum):
    """What the tests made of a mutation."""

    NOTICED = "noticed"
    SURVIVED = "SURVIVED"
    UNUSABLE = "UNUSABLE"
    """The tests could not be run at all, or fail without it, too."""
    UNTRIED = "untried"
    """The time was over before its turn came."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutation."""

    mutation: Mutation
    verdict: Verdict
    took_s: float
    said: str
    """The test that noticed, or what pytest said last."""


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


def run(mutations: Sequence[Mutation], at_a_time: int, within_s: float = math.inf) -> Iterator[Outcome]:
    """Try every mutation whose turn comes within a time and tell what came of it, as it comes."""
    until = time.monotonic() + within_s
    with tempfile.TemporaryDirectory(prefix="holdfast-mutate-") as folder, ThreadPoolExecutor(at_a_time) as pool:
        Path(folder).chmod(0o755)  # some tests run programs of other accounts
        copies = Copies(Path(folder), at_a_time)
        trials = [pool.submit(_try, mutation, copies, until) for mutation in mutations]
        for trial in as_completed(trials):
            yield trial.result()


def _try(mutation: Mutation, copies: Copies, until: float) -> Outcome:
    began = time.monotonic()
    if began > until:
        return Outcome(mutation, Verdict.UNTRIED, 0, "")
    with copies.one() as root:
        verdict, said = _judged(mutation, root)
        for _ in range(_AGAIN):
            if verdict is Verdict.NOTICED:
                break
            verdict, said = _judged(mutation, root)
    return Outcome(mutation, verdict, time.monotonic() - began, said)


def _judged(mutation: Mutation, root: Path) -> tuple[Verdict, str]:
    tests = [f"tests/{test}" for test in mutation.tests]
    original = mutation.apply(root)
    try:
        code, said = run_tests(root, tests)
    finally:
        (root / mutation.source).write_text(original)
    return _verdict(root, code, tests if code is None else [said]), said


def _verdict(root: Path, code: int | None, blamed: Sequence[str]) -> Verdict:
    """Judge by whether the tests that failed, or never ended, pass on the code as it is."""
    if code == 0:
        return Verdict.SURVIVED
    sound = code in {None, _ONE_FAILED} and run_tests(root, blamed)[0] == 0
    return Verdict.NOTICED if sound else Verdict.UNUSABLE


def run_tests(
    root: Path, tests: Sequence[str], longest_s: float = _LONGEST_S, options: Sequence[str] = ()
) -> tuple[int | None, str]:
    """Run tests on a copy; returns pytest's exit code, ``None`` when it had to be stopped, and which test failed.

    Each run has a temporary directory of its own: broken code may leave programs behind that still use theirs.
    """
    with tempfile.TemporaryDirectory(dir=root, prefix="tmp-", ignore_cleanup_errors=True) as folder:
        base = ("--no-header", "--tb=no", f"--basetemp={folder}/t")
        command = [sys.executable, "-m", "pytest", "-x", *_UNUSED, *base, *options]
        return _run(root, [*command, *tests], longest_s)


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
