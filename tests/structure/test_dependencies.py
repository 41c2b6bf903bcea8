"""What an extra installs is what its part of the package imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
FOLDERS = {
    "armada": ("api/armada",),
    "backendai": ("api/backendai",),
    "fluster": ("fluster", "api/connect", "api/fluster", "api/iris"),
}


def _named(requirement: str) -> str:
    """Return the name of a distribution, as all of its spellings have it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def _installed_with(requirements: list[str]) -> set[str]:
    """Return the names of what is installed for these, and for that in turn."""
    found, left = set[str](), [_named(each) for each in requirements]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            try:
                needed = requires(name) or []
            except PackageNotFoundError:
                continue  # not for this platform
            left += [_named(each) for each in needed if "extra ==" not in each]
    return found


def _imported(path: Path) -> set[str]:
    """Return the packages that a file imports, at its head or later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found - {*sys.stdlib_module_names, "holdfast"}


@pytest.mark.parametrize("extra", FOLDERS)
def test_an_extra_installs_whatever_its_folders_import(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = _installed_with([*project["dependencies"], *project["optional-dependencies"][extra]])
    providers = packages_distributions()
    lacking = {
        f"{path.relative_to(SOURCE)}: {name}"
        for folder in FOLDERS[extra]
        for path in (SOURCE / folder).rglob("*.py")
        for name in _imported(path)
        if installed.isdisjoint(map(_named, providers.get(name, [name])))
    }
    assert lacking == set()
