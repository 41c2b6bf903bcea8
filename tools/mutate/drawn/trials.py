"""Tries drawn mutants: runs the tests that run the broken line, quickest first, for up to a minute at a time."""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from tools.mutate.drawn.mutants import write
from tools.mutate.drawn.verdicts import Known, Verdict
from tools.mutate.running import Copies, run_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.mutate.drawn.covering import Covering
    from tools.mutate.drawn.mutants import Mutant
    from tools.mutate.drawn.project import Project

_LONGEST_S = 60.0
_SURE_S = 0.5
"""Tests that are as quick as this wait for nothing."""
_AT_ONCE_S = 10.0
"""How long tests that are run together may take when nothing is broken: a sixth of the limit, for a busy machine."""


class Trials:
    """Copies of a project to break, and the map of its tests."""

    def __init__(self, project: Project, covering: Covering) -> None:
        """Remember both."""
        self._project = project
        self._covering = covering

    def run(self, mutants: Sequence[Mutant], at_a_time: int, until: float) -> Iterator[tuple[Mutant, Known | None]]:
        """Try every mutant whose turn comes by then, on the monotonic clock, and tell what became of it."""
        with tempfile.TemporaryDirectory(prefix="holdfast-mutate-") as folder, ThreadPoolExecutor(at_a_time) as pool:
            copies = Copies(Path(folder), at_a_time, self._project.root)
            trials = {pool.submit(self._try, mutant, copies, until): mutant for mutant in mutants}
            try:
                for trial in as_completed(trials):
                    yield trials[trial], trial.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _try(self, mutant: Mutant, copies: Copies, until: float) -> Known | None:
        began = time.monotonic()
        if began > until:
            return None
        tests = self._covering.tests(mutant.place)
        with copies.one() as root:
            verdict, said = self._judged(mutant, root, tests) if tests else (Verdict.UNTESTED, "no test runs this line")
        return Known(verdict, said, round(time.monotonic() - began, 1), self._project.content)

    def _judged(self, mutant: Mutant, root: Path, tests: Sequence[str]) -> tuple[Verdict, str]:
        """Run tests until one notices; one that may have failed because of a busy machine is run without the mutant."""
        options = self._project.selected
        for batch in self._batches(tests):
            original = mutant.apply(root)
            try:
                code, said = run_tests(root, batch, _LONGEST_S, options)
            finally:
                write(root / mutant.place.file, original)
            if code == 0:
                continue
            blamed = [said] if said in batch else batch
            is_sure = said in batch and self._covering.took_s(said) < _SURE_S
            if not is_sure and run_tests(root, blamed, _LONGEST_S, options)[0] != 0:
                return Verdict.UNUSABLE, said
            return (Verdict.NEVER_ENDS if code is None else Verdict.NOTICED), said
        return Verdict.SURVIVED, f"tests that run this line: {len(tests)}"

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
