"""What is drawn from, what is run, and the content of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from tools.mutate.running import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DECISIONS = (
    "src/holdfast/domain/classify.py",
    "src/holdfast/domain/lifecycle",
    "src/holdfast/domain/placement",
    "src/holdfast/domain/policy",
    "src/holdfast/domain/workloads",
    "src/holdfast/controller",
    "src/holdfast/compiled",
    "src/holdfast/storage/rules.py",
)
"""The modules that decide what becomes of work: modules and folders, which count whole."""
_SUITES = ("tests/unit", "tests/contract", "tests/property")
_LEFT_OUT = ("tests/property/test_simulation*.py", "tests/property/test_openapi.py")
"""Worlds run nearly every line: a rule that only they see needs a test of its own."""
_PLUGINS = ("--disable-plugin-autoload", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin")
"""Loading all that is installed takes longer than most tests."""
_SELECTED = (*_PLUGINS, "-m", "not slow", "-k", "not postgres", "--hypothesis-seed=0")
_READ = ("src", "tests", "tools")
KEPT = ".mutate"
"""Where verdicts and the coverage map are kept; git leaves it out."""


@dataclass(frozen=True)
class Project:
    """A repository with modules to break, and tests that should notice."""

    root: Path = ROOT
    decisions: tuple[str, ...] = DECISIONS
    suites: tuple[str, ...] = _SUITES
    left_out: tuple[str, ...] = _LEFT_OUT
    selected: tuple[str, ...] = _SELECTED
    """Which tests of the suites, and how they are run, as pytest is told."""

    @property
    def kept(self) -> Path:
        """The folder for what outlives a run."""
        return self.root / KEPT

    def modules(self) -> list[str]:
        """List the modules to break."""
        paths: set[Path] = set()
        for name in self.decisions:
            path = self.root / name
            paths.update([path] if path.is_file() else path.rglob("*.py"))
        return sorted(str(path.relative_to(self.root)) for path in paths)

    def test_files(self) -> list[str]:
        """List the files whose tests may notice."""
        paths = {path for suite in self.suites for path in (self.root / suite).rglob("test_*.py")}
        paths -= {path for pattern in self.left_out for path in self.root.glob(pattern)}
        return sorted(str(path.relative_to(self.root)) for path in paths)

    @cached_property
    def tests_content(self) -> dict[str, str]:
        """What is in each of those files, in short."""
        return {name: _in_short((self.root / name).read_bytes()) for name in self.test_files()}

    @cached_property
    def code_content(self) -> str:
        """What is in all the code that tests run, and in what they share, in short."""
        return _in_short(b"".join(self._code()))

    @property
    def content(self) -> str:
        """What is in all of it, in short."""
        return _in_short(repr((self.code_content, sorted(self.tests_content.items()))).encode())

    def _code(self) -> Iterator[bytes]:
        for folder in _READ:
            for path in sorted((self.root / folder).rglob("*.py")):
                name = str(path.relative_to(self.root))
                if not path.name.startswith("test_") and not name.startswith("tools/mutate/"):
                    yield name.encode()
                    yield path.read_bytes()


def _in_short(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
