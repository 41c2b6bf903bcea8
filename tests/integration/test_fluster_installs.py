"""What installs the packages of a call before that is made: by uv or by pip, and what it says if it cannot."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from typing import TYPE_CHECKING

import pytest

from holdfast.app.entrance.pythons import RUNNER

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with one package, which gives 42."""
    folder, info = tmp_path / "wheels", "answers-1.0.dist-info"
    folder.mkdir()
    with zipfile.ZipFile(folder / "answers-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("answers.py", "GIVEN = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: answers\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"answers.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return folder


def install(
    folder: Path, *words: str, python: str = sys.executable, **environ: str
) -> subprocess.CompletedProcess[str]:
    (folder / "work").mkdir(exist_ok=True)
    return subprocess.run(
        [python, RUNNER, "--install", *words],
        cwd=folder / "work",
        env={"PATH": os.defpath, "HOME": str(folder), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("by", ["uv", "pip"])
def test_either_installs_for_this_run_alone_and_without_a_network_from_a_folder(
    tmp_path: Path, wheels: Path, by: str
) -> None:
    ended = install(tmp_path, "--by", by, "--index", str(wheels), "answers==1.0")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "work" / ".packages" / "answers.py").read_text() == "GIVEN = 42\n"
    assert (tmp_path / "work" / ".packages" / "answers.py").stat().st_nlink == 1, "a copy, and none of a cache's"
    assert importlib.util.find_spec("answers") is None


BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "mine-1.0-py3-none-any.whl", "mine-1.0.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        metadata = "Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\nProvides-Extra: more\\n"
        wheel.writestr("mine.py", "HERE = True\\n")
        wheel.writestr(f"{info}/METADATA", metadata + "Requires-Dist: answers; extra == 'more'\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", f"mine.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "mine"
version = "1.0"

[project.optional-dependencies]
more = ["answers"]
"""


@pytest.mark.parametrize("by", ["uv", "pip"])
def test_extras_of_a_workspace_are_installed_with_it(tmp_path: Path, wheels: Path, by: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "backend.py").write_text(BACKEND)
    (tmp_path / "work" / "pyproject.toml").write_text(PROJECT)
    ended = install(tmp_path, "--by", by, "--index", str(wheels), ".[more]")
    assert ended.returncode == 0, ended.stderr
    assert {"mine.py", "answers.py"} <= {path.name for path in (tmp_path / "work" / ".packages").iterdir()}


def test_uv_needs_no_home_that_can_be_written(tmp_path: Path, wheels: Path) -> None:
    ended = install(tmp_path, "--by", "uv", "--index", str(wheels), "answers", HOME="/proc/no/such/home")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("by", ["uv", "pip"])
def test_a_package_that_is_not_there_is_named_last(tmp_path: Path, wheels: Path, by: str) -> None:
    ended = install(tmp_path, "--by", by, "--index", str(wheels), "no-such-package")
    assert ended.returncode != 0
    assert "no-such-package" in ended.stderr.rsplit("\n\n", 1)[-1]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--by", "uv"), 127, "uv is not on this machine"),
        (("--by", "pip"), 1, "No module named pip"),
        ((), 1, "No module named pip"),
    ],
    ids=["uv", "pip", "either"],
)
def test_what_the_machine_lacks_is_said(
    tmp_path: Path, wheels: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python")
    ended = install(tmp_path, *words, "--index", str(wheels), "answers", python=bare)
    assert (ended.returncode, says in ended.stderr.splitlines()[-1]) == (code, True), ended.stderr


def test_uv_is_taken_where_it_is_unless_pip_alone_is_set_where_to_look(tmp_path: Path, wheels: Path) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\necho by uv: $*\n")
    uv.chmod(0o755)
    path = f"{uv.parent}:{os.defpath}"
    places = [tmp_path / name for name in "abc"]
    for place in places:
        place.mkdir()
    index = ("--index", str(wheels))
    assert "by uv: pip install" in install(places[0], *index, "answers", PATH=path, PIP_INDEX_URL="http://x").stdout
    assert "by uv: pip install" not in install(places[1], "answers", PATH=path, PIP_NO_INDEX="1").stdout
    assert "by uv: pip install" in install(places[2], "--by", "uv", "answers", PATH=path, PIP_NO_INDEX="1").stdout
