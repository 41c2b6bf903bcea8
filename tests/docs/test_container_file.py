"""The container file, as far as it can be checked without building it: the linter, what it copies, what it starts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from holdfast.cli.main import parse

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Containerfile").read_text().replace("\\\n", "")
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]


def said(instruction: str) -> list[str]:
    return [rest for name, rest in LINES if name == instruction]


def test_the_linter_finds_no_fault() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", ROOT / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_is_there_and_no_ignore_file_keeps_it_out() -> None:
    copied = [word for rest in said("COPY") if "--from" not in rest for word in rest.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    let_in = re.findall(r"^!(.+)$", (ROOT / ".containerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(let_in)
    assert (ROOT / ".dockerignore").read_text() == (ROOT / ".containerignore").read_text()


def test_it_starts_a_command_there_is_and_not_as_root() -> None:
    *_, program = json.loads(said("ENTRYPOINT")[0])
    words = json.loads(said("CMD")[0])
    found = parse(words)
    assert found is not None
    assert (program, found[0].name) == ("holdfast", "up")
    assert int(said("USER")[-1]) > 0
    assert f"HOLDFAST_DATA={said('VOLUME')[0]}" in TEXT
