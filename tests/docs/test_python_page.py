"""The program on the page about Python runs, and prints what the page says beside each ``print``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.slow
def test_the_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    text = "\n".join(BLOCK.findall((ROOT / "docs" / "python.md").read_text()))
    program = tmp_path / "program.py"
    program.write_text(text)
    expected = PRINTED.findall(text)
    assert expected
    environ = {**os.environ, "HOLDFAST_DATA": str(tmp_path / "data"), "HOLDFAST_CPUS": "4"}
    done = subprocess.run(
        [sys.executable, str(program)], env=environ, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line] == expected
    assert done.stderr == ""
