"""Knows which tests run a line: one run of the suites under coverage, kept until code or tests change.

After an edit of tests alone only the files that were edited run again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coverage import CoverageData

from tools.mutate.drawn.contexts import NOTES, SETUP
from tools.mutate.running import ROOT, copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.mutate.drawn.mutants import Place
    from tools.mutate.drawn.project import Project

_RULES = """\
[run]
core = ctrace
relative_files = true
include = {include}
"""


class Covering:
    """The map: which tests run a line, and how long each takes."""

    def __init__(self, project: Project, took_s: dict[str, float]) -> None:
        """Read a map that is there."""
        self._took_s = took_s
        self._data = CoverageData(str(project.kept / "coverage"))
        self._data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests(self, place: Place) -> list[str]:
        """List the tests that run a place, the quickest first; those that only might come after them.

        What a fixture runs may serve all tests of its file, and what runs when a module is imported all that use it.
        """
        lines = self._of(place.file)
        contexts = {name for line in range(place.first, place.last + 1) for name in lines.get(line, ())}
        sure = contexts & self._took_s.keys()
        prepared = {name.removesuffix(SETUP).partition("::")[0] for name in contexts if name.endswith(SETUP)}
        maybe = {name for name in self._took_s if name.partition("::")[0] in prepared}
        if place.is_imported:
            maybe |= {name.removesuffix(SETUP) for names in lines.values() for name in names} & self._took_s.keys()
            maybe = maybe or {*self._took_s}  # a table without functions
        return [*self._quickest_first(sure), *self._quickest_first(maybe - sure)]

    def took_s(self, test: str) -> float:
        """Return how long a test took under coverage."""
        return self._took_s[test]

    def _quickest_first(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self._took_s[test], test))

    def _of(self, file: str) -> dict[int, list[str]]:
        if file not in self._lines:
            self._lines[file] = self._data.contexts_by_lineno(file)
        return self._lines[file]


def covering(project: Project) -> Covering:
    """Return the map of a project, which is built where it is missing, and mended where tests were edited."""
    noted, data = _noted(project.kept / "map.json"), project.kept / "coverage"
    if noted.get("code") != project.code_content or not data.exists():
        noted = {"code": project.code_content, "files": {}, "tests": {}}
        (project.kept / "map.json").unlink(missing_ok=True)
    files = noted["files"]
    stale = [file for file, content in project.tests_content.items() if files.get(file) != content]
    gone = files.keys() - project.tests_content.keys()
    if stale or gone:
        old = {*stale, *gone}
        kept = {test: took_s for test, took_s in noted["tests"].items() if test.partition("::")[0] not in old}
        noted["tests"] = {**kept, **(_built(project, stale, is_more=bool(kept)) if stale else {})}
        noted["files"] = project.tests_content
        _write(project.kept / "map.json", noted)
    return Covering(project, noted["tests"])


def _noted(path: Path) -> dict[str, Any]:
    try:
        noted: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return noted


def _write(path: Path, noted: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(noted))
    fresh.replace(path)


def _built(project: Project, files: Sequence[str], *, is_more: bool) -> dict[str, float]:
    """Run some files of tests under coverage, add what they run to the map, and return how long each test took."""
    project.kept.mkdir(exist_ok=True)
    print(f"finding out which test runs which line, once (test files under coverage: {len(files)})", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="holdfast-mutate-") as folder:
        root, noted, data = copied(Path(folder) / "copy", project.root), Path(folder) / "noted", Path(folder) / "data"
        said = _run(project, root, files, noted=noted, data=data)
        if not noted.exists():
            message = f"the tests could not be run under coverage:\n{said}"
            raise SystemExit(message)
        took_s: dict[str, float] = json.loads(noted.read_text())
        _added(project.kept / "coverage", data, is_more=is_more)
    print(f"found out in {time.monotonic() - began:.0f} s from {len(took_s)} tests that passed", flush=True)
    return took_s


def _run(project: Project, root: Path, files: Sequence[str], *, noted: Path, data: Path) -> str:
    include = ",".join(name if name.endswith(".py") else f"{name}/*" for name in project.decisions)
    rules = data.with_suffix(".rc")
    rules.write_text(_RULES.format(include=include))
    coverage = [sys.executable, "-m", "coverage", "run", f"--rcfile={rules}", f"--data-file={data}"]
    tests = [
        "-m",
        "pytest",
        "-p",
        "tools.mutate.drawn.contexts",
        f"{NOTES}={noted}",
        "--tb=no",
        f"--basetemp={root}/basetemp",
    ]
    places = os.pathsep.join(map(str, (root, root / "src", ROOT)))  # the plugin is in ours
    done = subprocess.run(  # noqa: S603 - our own tests
        [*coverage, *tests, *project.selected, *files],
        cwd=root,
        env={**os.environ, "PYTHONPATH": places},  # noqa: TID251 - a child's
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "\n".join(done.stdout.splitlines()[-20:])


def _added(path: Path, more: Path, *, is_more: bool) -> None:
    """Add to the map what was run, or begin a new one with it, all of it or nothing."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    if is_more:
        shutil.copy2(path, fresh)
    data, new = CoverageData(str(fresh)), CoverageData(str(more))
    if is_more:
        data.read()
    new.read()
    data.update(new)
    data.write()
    data.close()
    fresh.replace(path)
