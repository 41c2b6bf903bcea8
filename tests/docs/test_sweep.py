"""The sweep of the README: real trainings that crash, hang, lose the power, need more memory, and all succeed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_commands import ROOT, stable

BLOCK = re.compile(r"^```text\n(\$ holdfast submit -f examples/sweep.*?)^```$", re.MULTILINE | re.DOTALL)
VARIES = re.compile(r"(sweep Running|\d (Failed|Succeeded)|GPU-\w+|attempt \d on|\d+% right) ")
"""What depends on the moment: how far the sweep was, whom the power cut hit, which GPU a run got, what it learnt."""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_sweep_prints_what_the_readme_shows(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ("sh", "examples/sweep/run.sh"),
        cwd=ROOT,
        env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=390,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (shown,) = BLOCK.findall((ROOT / "README.md").read_text())
    printed = stable(done.stdout)
    assert [line for line in stable(shown) if line not in printed and not VARIES.match(line)] == []
    assert "signal 15 (Stalled)" in done.stdout
    assert list(tmp_path.iterdir()) == [], "the sweep leaves nothing behind"
