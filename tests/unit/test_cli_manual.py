"""Manual pages: every command has one, with all of its options, and the formatter of man(1) complains of none."""

from __future__ import annotations

import io
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.commands import NAMES, command, commands
from holdfast.cli.context import Cli
from holdfast.cli.main import run_line
from holdfast.cli.manual import overview_page, page_of

if TYPE_CHECKING:
    from pathlib import Path


def said(line: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run_line(line.split(), Cli(stdout=out, stderr=err, environ={})), out.getvalue(), err.getvalue()


def formatted(page: str) -> str:
    """Format a page as man(1) does, without a complaint."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    line = [groff, "-man", "-Tutf8", "-ww", "-P-cbou"]
    done = subprocess.run(line, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_page_of_which_nothing_is_lost(name: str) -> None:
    page = formatted(page_of(command(name)))
    words = page.split()
    assert page.startswith(f"HOLDFAST-{name.upper()}(1)")
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "STATUS", "--help"} <= set(words)
    for example in command(name).examples:
        assert example in page, "an example is not filled"


def test_the_overview_names_every_page() -> None:
    page = formatted(overview_page(commands(), "runs things"))
    assert all(f"holdfast-{name}(1)" in page for name in NAMES)


def test_pages_are_installed_where_man_finds_them(tmp_path: Path) -> None:
    folder = tmp_path / "man" / "man1"
    assert said(f"man --install --to {folder}")[0] == 0
    assert len(list(folder.iterdir())) == len(NAMES) + 1
    man = shutil.which("man")
    if man is not None:
        found = subprocess.run([man, "-M", str(folder.parent), "-w", "holdfast-run"], capture_output=True, check=False)
        assert found.stdout.decode().strip() == str(folder / "holdfast-run.1")


def test_a_page_is_printed_off_a_terminal_and_a_misspelt_command_is_guessed() -> None:
    assert said("man run")[1].startswith(".TH HOLDFAST-RUN 1")
    assert said("man")[1].startswith(".TH HOLDFAST 1")
    code, _, err = said("man sumbit")
    assert (code, "did you mean submit?" in err) == (3, True)


def test_what_looks_like_an_instruction_is_text() -> None:
    page = overview_page([], ".so /etc/passwd 'quoted \\fBbold")
    assert "\n.so" not in page
    assert ".so /etc/passwd 'quoted \\fBbold" in formatted(page)


def test_help_is_short_and_long_everywhere_and_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        assert (said(f"{name} -h")[0], said(f"{name} --help")[0]) == (0, 0)
        short, _, long = capsys.readouterr().out.partition("Usage: holdfast")[2].partition("Usage: holdfast")
        assert short == long != "", name
    assert said("--version")[0] == 0
    assert capsys.readouterr().out.startswith("holdfast ")
