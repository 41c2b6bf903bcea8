"""What is given to others: the wheel has what it needs and no more, and runs where nothing else is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast import __version__

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
NAME = "holdfast-scheduler"
PATIENCE_S = 280.0
INSTALLERS = {
    "pip": ([sys.executable, "-m", "venv", "{home}"], ["{home}/bin/python", "-m", "pip", "install", "-q", "{wheel}"]),
    "uv tool": ([str(BIN / "uv"), "tool", "install", "-q", "--python", sys.executable, "{wheel}"],),
    "pipx": ([str(BIN / "pipx"), "install", "-q", "--python", sys.executable, "{wheel}"],),
}
"""The commands that people install it with, one after the other."""


def call(*command: str, **environ: str) -> str:
    """Run a command without anything of this process's environment that could lend it a module."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST_", "COV_"))
    }
    done = subprocess.run(
        command,
        env={**kept, **environ},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(folder))
    call(sys.executable, "-m", "pip", "wheel", *options, str(ROOT))
    [found] = folder.iterdir()
    return found


def metadata(wheel: Path) -> tuple[Message, str, list[str]]:
    """Return a wheel's metadata, its entry points and the names of its files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [info] = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        described = message_from_bytes(archive.read(f"{info}/METADATA"))
        return described, archive.read(f"{info}/entry_points.txt").decode(), names


def test_the_wheel_has_a_free_name_and_the_command_and_import_keep_theirs(wheel: Path) -> None:
    described, entries, names = metadata(wheel)
    assert (described["Name"], described["Version"]) == (NAME, __version__)
    assert "holdfast = holdfast.cli.main:main" in entries
    assert f"{NAME} = holdfast.cli.main:main" in entries
    assert "bai = holdfast.cli.main:main" in entries
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"holdfast", "hydra_plugins"}


def test_the_wheel_has_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    names = set(metadata(wheel)[2])
    package = ROOT / "src"
    wanted = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert wanted - names == set()
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_documentation_names_extras_that_there_are(wheel: Path) -> None:
    extras = set(metadata(wheel)[0].get_all("Provides-Extra", []))
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "src").rglob("*.py")]
    named = {found for page in pages for found in re.findall(rf"{NAME}\[(\w+)\]", page.read_text())}
    assert "postgres" in named
    assert named - extras == set()
    assert [page for page in pages if re.search(r"pip install '?holdfast(\[|'|\s|$)", page.read_text())] == []


@pytest.mark.slow  # each installs every dependency anew
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", INSTALLERS)
def test_the_wheel_runs_jobs_where_nothing_else_is_installed(how: str, wheel: Path, tmp_path: Path) -> None:
    home, tools, data = tmp_path / "home", tmp_path / "tools", tmp_path / "data"
    places = {
        "UV_TOOL_DIR": str(tools),
        "UV_TOOL_BIN_DIR": str(home / "bin"),
        "PIPX_HOME": str(tools),
        "PIPX_BIN_DIR": str(home / "bin"),
    }
    for step in INSTALLERS[how]:
        call(*(word.format(home=home, wheel=wheel) for word in step), **places)
    command = str(home / "bin" / "holdfast")
    assert call(command, "--version") == f"holdfast {__version__}\n"
    assert call(command, "run", "--", "echo", "it runs", HOLDFAST_DATA=str(data)) == "it runs\n"
    assert "Succeeded" in call(command, "get", "jobs", HOLDFAST_DATA=str(data))
    assert call(str(home / "bin" / NAME), "--version") == f"holdfast {__version__}\n"
