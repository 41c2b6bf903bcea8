"""Tries mutants: runs the tests that run the broken line, the quickest first, until one of them notices."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from tools.mutate.copies import run_tests
from tools.mutate.mutants import write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tools.mutate.copies import Copies
    from tools.mutate.covering import Covering
    from tools.mutate.mutants import Mutant

_LONGEST_S = 60.0
_LONGEST_FILE_S = 120.0
"""How long a file of tests may take that nobody has timed."""
_AT_ONCE_S = 10.0
"""How long tests that are run together took under coverage: a sixth of the limit, for a busy machine."""
_SURE_S = 0.5
"""A test that is as quick as this waits for nothing: its failure is not the machine's."""
_NONE_RAN = 5
"""Pytest's exit code where every test is left out."""


class Verdict(StrEnum):
    """What became of a mutant."""

    NOTICED = "noticed"
    NEVER_ENDS = "never ends"
    """Noticed: tests that take seconds were stopped after a minute."""
    SURVIVED = "SURVIVED"
    UNTESTED = "UNTESTED"
    """Survived, and no test near the module is seen to run that line."""
    UNUSABLE = "UNUSABLE"
    """A test fails, but without the mutant, too."""
    UNTRIED = "untried"
    """The time was over."""


class Outcome(NamedTuple):
    """A mutant and what became of it."""

    mutant: Mutant
    verdict: Verdict
    message: str
    """The test that noticed, or which tests did not."""
    took_s: float


class Trials:
    """Tries mutants in copies of the repository, a few at a time."""

    def __init__(self, covering: Covering, copies: Copies, until: float) -> None:
        """Try nothing after `until`, on the monotonic clock."""
        self._covering = covering
        self._copies = copies
        self._until = until

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Outcome]:
        """Try mutants and yield what became of them, in their order."""
        pool = ThreadPoolExecutor(len(self._copies.paths))
        try:
            yield from pool.map(self._try, mutants)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _try(self, mutant: Mutant) -> Outcome:
        began = time.monotonic()
        if began > self._until:
            return Outcome(mutant, Verdict.UNTRIED, "", 0.0)
        with self._copies.lent() as root:
            verdict, message = self._judge(mutant, root)
        return Outcome(mutant, verdict, message, time.monotonic() - began)

    def _judge(self, mutant: Mutant, root: Path) -> tuple[Verdict, str]:
        module = mutant.place.file
        tests, outside = self._covering.tests(mutant.place), self._covering.outside(module)
        failed = ""
        for batch in [*self._batches(tests), *([file] for file in outside)]:
            code, test = self._run(root, batch, mutant)
            if time.monotonic() > self._until:
                return Verdict.UNTRIED, ""
            if code in {0, _NONE_RAN}:
                continue
            if self._is_sound(root, batch, test):
                return (Verdict.NEVER_ENDS if code is None else Verdict.NOTICED), test
            failed = test
        if failed:
            return Verdict.UNUSABLE, failed
        if tests:
            return Verdict.SURVIVED, ", ".join([f"tests that run this line: {len(tests)}", *outside])
        if self._covering.is_cut_off(module):
            return Verdict.UNTRIED, ""
        return Verdict.UNTESTED, ", ".join(["no test near its module runs this line", *outside])

    def _is_sound(self, root: Path, batch: Sequence[str], test: str) -> bool:
        """Whether the test that failed, or all of them where none is named, would have passed without the mutant."""
        return self._covering.took_s(test) < _SURE_S or self._run(root, [test] if "::" in test else batch)[0] == 0

    def _run(self, root: Path, tests: Sequence[str], mutant: Mutant | None = None) -> tuple[int | None, str]:
        is_timed = all(self._covering.took_s(test) < math.inf for test in tests)
        longest_s = max(1.0, min(_LONGEST_S if is_timed else _LONGEST_FILE_S, self._until - time.monotonic()))
        if mutant is None:
            return run_tests(root, tests, longest_s, self._covering.project.options)
        original = mutant.apply(root)
        try:
            return run_tests(root, tests, longest_s, self._covering.project.options)
        finally:
            write(root / mutant.place.file, original)

    def _batches(self, tests: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        left_s = _AT_ONCE_S
        for test in tests:
            took_s = self._covering.took_s(test)
            if batch and took_s > left_s:
                yield batch
                batch, left_s = [], _AT_ONCE_S
            batch.append(test)
            left_s -= took_s
        if batch:
            yield batch
