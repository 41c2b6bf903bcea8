"""The systemd unit among the examples: systemd accepts it, and it does not end what it is there to keep."""

from __future__ import annotations

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "examples" / "holdfast.service"


def service() -> dict[str, str]:
    parser = ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys of units are case-sensitive
    parser.read_string(UNIT.read_text())
    return dict(parser["Service"])


def test_stopping_the_unit_ends_the_server_and_no_program() -> None:
    found = service()
    assert found["KillMode"] == "process"
    assert not {"ExecStop", "ExecStopPost", "KillSignal"} & set(found), "SIGTERM to the server alone is a clean stop"


def test_the_unit_outlives_what_the_kernel_does_when_memory_runs_out() -> None:
    found = service()
    assert (found["OOMPolicy"], found["Restart"]) == ("continue", "always")
    assert -1000 < int(found["OOMScoreAdjust"]) < 0


def test_the_unit_runs_the_command_that_serves() -> None:
    found = service()
    program, *words = found["ExecStart"].split()
    assert (Path(program).name, words) == ("holdfast", ["up"])
    assert found["Environment"] == f"HOLDFAST_DATA=/var/lib/{found['StateDirectory']}"


def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze on this machine")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/holdfast/bin/holdfast", sys.executable))
    done = subprocess.run(
        [verify, "verify", "--man=no", "--recursive-errors=no", str(copy)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_documentation_gives_a_reason_for_what_is_unusual_in_the_unit() -> None:
    page = (ROOT / "docs" / "howto-operate.md").read_text()
    for name in ("KillMode", "OOMPolicy", "OOMScoreAdjust", "TasksMax", "Restart", "Delegate"):
        assert f"`{name}={service()[name]}`" in page
