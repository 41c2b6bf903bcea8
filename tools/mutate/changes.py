"""What git knows: the lines that the last commits changed, and the tests that changed together with a module."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.mutate.project import Project

_LATELY = 20
"""Commits."""
_HISTORY = 3000
"""Commits."""
_MOST_TESTS = 8
"""A commit that changed more files of tests does not say which of them is about what."""
_IS_TEST = re.compile(r"tests/(.*/)?test_\w+\.py$")
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class Changes(NamedTuple):
    """What is different from an earlier commit, in the working tree, too."""

    since: str
    """The commit, in short."""
    lines: Mapping[str, frozenset[int]]
    """Of each module, the lines that are new or different."""


def head(project: Project) -> str:
    """Return the commit that is checked out; empty where there is no repository."""
    return _git(project, "rev-parse", "HEAD").strip()


def changes(project: Project, since: str | None = None) -> Changes | None:
    """Compare with a commit, by default with that of 20 commits ago or the oldest there is.

    Returns ``None`` where git has nothing to compare with: a clone of depth 1 has no other commit.

    Raises:
        SystemExit: There is no commit `since`.
    """
    if since is not None and not _git(project, "rev-parse", "--verify", "--quiet", f"{since}^{{commit}}"):
        message = f"git has no commit {since!r} here"
        raise SystemExit(message)
    commits = _git(project, "rev-list", "--first-parent", f"--max-count={_LATELY + 1}", "HEAD").split()
    base = since or (commits[-1] if len(commits) > 1 else None)
    if base is None:
        return None
    return Changes(base[:12], _changed_lines(project, base))


def together(project: Project) -> dict[tuple[str, str], float]:
    """Count the commits that changed a module and a file of tests, a commit with several such files in part."""
    counts: defaultdict[tuple[str, str], float] = defaultdict(float)
    log = _git(project, "log", "--format=%x00", "--name-only", f"--max-count={_HISTORY}")
    for commit in log.split("\0"):
        files = commit.split("\n")
        tests = [file for file in files if _IS_TEST.match(file)]
        for module in files if len(tests) <= _MOST_TESTS else ():
            for test in tests:
                counts[module, test] += 1 / len(tests)
    return counts


def _changed_lines(project: Project, base: str) -> dict[str, frozenset[int]]:
    lines: defaultdict[str, set[int]] = defaultdict(set)
    file = ""
    diff = _git(project, "diff", "--unified=0", "--no-color", "--no-ext-diff", base, "--", project.package)
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif hunk := _HUNK.match(line):
            first, number = int(hunk[1]), int(hunk[2] or 1)
            lines[file].update(range(first, first + number))
    return {file: frozenset(numbers) for file, numbers in lines.items()}


def _git(project: Project, *words: str) -> str:
    """Return what git prints; nothing where it fails, or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=project.root, capture_output=True, text=True, check=False)  # noqa: S603, S607 - git
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
