"""The repository that is broken: its modules, its tests, and how the tests are run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.mutate.places import PLACES

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("tests/property/test_simulation*.py", "tests/property/test_openapi.py")
"""Simulated worlds run nearly every line: a rule that only they notice needs a test of its own."""
# Loading every installed plugin takes longer than most tests.
_PLUGINS = ("--disable-plugin-autoload", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin")


@dataclass(frozen=True)
class Project:
    """A repository with modules to break and tests that should notice."""

    root: Path = ROOT
    package: str = "src/holdfast"
    places: tuple[str, ...] = PLACES
    """Those that are always drawn from."""
    suites: tuple[str, ...] = ("tests/unit", "tests/contract", "tests/property", "tests/integration")
    """Folders of tests that run the code in their own process, where coverage sees it."""
    outside: tuple[str, ...] = ("tests/e2e", "tests/integration")
    """Folders of tests that may start the code in processes of their own, where it does not."""
    left_out: tuple[str, ...] = _LEFT_OUT
    options: tuple[str, ...] = (*_PLUGINS, "-m", "not slow", "-k", "not postgres", "--hypothesis-seed=0")
    """How pytest is called."""

    def modules(self) -> list[str]:
        """List the modules that people wrote, except migrations, which nobody changes once they are released."""
        paths = (self.root / self.package).rglob("*.py")
        return sorted(self._name(path) for path in paths if not {"_generated", "migrations"} & {*path.parts})

    def test_files(self, folders: tuple[str, ...]) -> list[str]:
        """List the files of tests in some folders."""
        paths = {path for folder in folders for path in (self.root / folder).rglob("test_*.py")}
        paths -= {path for pattern in self.left_out for path in self.root.glob(pattern)}
        return sorted(map(self._name, paths))

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root))
