"""Knows which tests run a line, from running the tests near its module under coverage."""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING

from coverage import CoverageData

from tools.mutate.changes import together
from tools.mutate.contexts import LIMIT, NOTES, SETUP
from tools.mutate.copies import run
from tools.mutate.nearness import Nearness
from tools.mutate.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tools.mutate.mutants import Place
    from tools.mutate.project import Project

_NEAR = 10
"""Test files whose coverage is looked at for each module."""
_OUTSIDE = 3
"""Test files that are run for each module without a look at what they run."""
_RULES = """\
[run]
core = ctrace
relative_files = true
include = {include}
"""


class Covering:
    """The map from lines to tests, which grows with the modules that are asked about."""

    def __init__(self, project: Project, modules: Sequence[str], copies: Sequence[Path]) -> None:
        """Read all tests; none is run yet.

        Args:
            project: Whose modules and tests.
            modules: All that will be asked about.
            copies: Copies of the repository to run tests in, one at a time in each.
        """
        self.project = project
        self._modules = modules
        self._copies = copies
        changed = together(project)
        self._inside = Nearness(project, project.test_files(project.suites), changed)
        self._outside = Nearness(project, project.test_files(project.outside), changed)
        self._took_s: dict[str, float] = {}
        self._lines: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._known: set[str] = set()
        self._cut_off: set[str] = set()

    def near(self, module: str) -> list[str]:
        """List the test files that are looked at for a module."""
        return self._inside.nearest(module, _NEAR)

    def outside(self, module: str) -> list[str]:
        """List the nearest test files that may start a module's code in processes of their own."""
        return self._outside.nearest(module, _OUTSIDE)

    def is_cut_off(self, module: str) -> bool:
        """Whether there was no time for every test near a module."""
        return not self._cut_off.isdisjoint(self.near(module))

    def learn(self, modules: Iterable[str], longest_s: float) -> None:
        """Run the tests near some modules, as far as the time goes; those that ran before are known."""
        near = {module: self.near(module) for module in dict.fromkeys(modules)}
        nearest_first = [file for rank in range(_NEAR) for files in near.values() for file in files[rank : rank + 1]]
        files = [file for file in dict.fromkeys(nearest_first) if file not in self._known]
        self._known.update(files)
        with ThreadPoolExecutor(len(self._copies)) as pool:
            shares = [files[number :: len(self._copies)] for number in range(len(self._copies))]
            list(pool.map(self._run, self._copies, shares, repeat(longest_s)))

    def tests(self, place: Place) -> list[str]:
        """List the tests that run a place, the quickest first, and then those that only might.

        What a fixture runs may serve every test of its file, and what runs at import every test of the module.
        """
        contexts = {name for line in range(place.first, place.last + 1) for name in self._lines[place.file, line]}
        sure = contexts & self._took_s.keys()
        prepared = {name.removesuffix(SETUP).partition("::")[0] for name in contexts if name.endswith(SETUP)}
        if place.is_imported:
            prepared.update(self.near(place.file))
        maybe = {name for name in self._took_s if name.partition("::")[0] in prepared}
        return [*self._quickest_first(sure), *self._quickest_first(maybe - sure)]

    def took_s(self, test: str) -> float:
        """Return how long a test took under coverage; infinity where it has not been run."""
        return self._took_s.get(test, math.inf)

    def _quickest_first(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self._took_s[test], test))

    def _run(self, root: Path, files: Sequence[str], longest_s: float) -> None:
        """Run test files in a copy and add what they run to the map."""
        if not files:
            return
        notes, data, rules = (root / name for name in ("noted.json", "data.coverage", "rules.rc"))
        rules.write_text(_RULES.format(include=",".join(self._modules)))
        plugin = ("-p", "tools.mutate.contexts", f"{NOTES}={notes}", f"{LIMIT}={longest_s}")
        coverage = [sys.executable, "-m", "coverage", "run", f"--rcfile={rules}", f"--data-file={data}", "-m", "pytest"]
        command = [*coverage, *plugin, "--tb=no", f"--basetemp={root}/basetemp", *self.project.options, *files]
        # The plugin is in our own tree, whatever the project is.
        code, output = run(root, command, (root, root / "src", ROOT), 2 * longest_s)
        if not notes.exists() and code is not None:
            message = f"the tests could not be run under coverage:\n{output[-2000:]}"
            raise SystemExit(message)
        is_complete = False
        if notes.exists() and data.exists():
            took_s, is_complete = json.loads(notes.read_text())
            notes.unlink()
            self._took_s.update(took_s)
            self._add(data)
        if code is None or not is_complete:
            self._cut_off.update(files)

    def _add(self, path: Path) -> None:
        data = CoverageData(str(path))
        data.read()
        for module in data.measured_files():
            for line, names in data.contexts_by_lineno(module).items():
                self._lines[module, line].update(names)
        data.close()
        path.unlink()
