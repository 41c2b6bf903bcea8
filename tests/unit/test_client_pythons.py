"""Which Python the environments of other systems' clients are made with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tools.clients.pythons import python_for

if TYPE_CHECKING:
    from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def _stands_in(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    found = folder / name
    found.write_text(f"#!/bin/sh\n{script}\n")
    found.chmod(0o755)
    return found


def test_one_on_the_path_that_does_not_answer_is_passed_over_for_one_that_does(tmp_path: Path) -> None:
    _stands_in(tmp_path / "shims", f"python{VERSION}", "exit 127")
    good = _stands_in(tmp_path / "good", f"python{VERSION}", f'exec {sys.executable} "$@"')
    environ = {"PATH": f"{tmp_path}/shims:{tmp_path}/good", "HOME": str(tmp_path)}
    assert python_for([VERSION], environ) == str(good)


def test_pyenvs_versions_are_looked_at_after_the_path(tmp_path: Path) -> None:
    folder = tmp_path / ".pyenv" / "versions" / f"{VERSION}.1" / "bin"
    kept = _stands_in(folder, f"python{VERSION}", f'exec {sys.executable} "$@"')
    assert python_for(["9.9", VERSION], {"PATH": "", "HOME": str(tmp_path)}) == str(kept)


def test_one_that_says_another_version_than_its_name_is_not_taken(tmp_path: Path) -> None:
    _stands_in(tmp_path, "python9.9", f'exec {sys.executable} "$@"')
    assert python_for(["9.9"], {"PATH": str(tmp_path), "HOME": str(tmp_path)}) is None


def test_where_one_is_named_no_other_is_looked_for(tmp_path: Path) -> None:
    good = _stands_in(tmp_path, f"python{VERSION}", f'exec {sys.executable} "$@"')
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    assert python_for([VERSION], {**environ, "HOLDFAST_TEST_PYTHON": sys.executable}) == sys.executable
    assert python_for([VERSION], {**environ, "HOLDFAST_TEST_PYTHON": "/nowhere/python"}) is None
    assert python_for([VERSION], environ) == str(good)
