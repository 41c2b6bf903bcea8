"""Every example does what its first line says, with real programs; the demo ends as it must."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.app.connect import connect
from holdfast.app.settings import Settings
from holdfast.dialects.documents import read_documents

if TYPE_CHECKING:
    from holdfast.client import Client

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
AT_REST = frozenset({"Succeeded", "Failed", "Cancelled", "Held"})
PATIENCE_S = 60.0


def at_rest(client: Client, job: str) -> None:
    """Wait until a job has ended or is held."""
    pause, give_up = threading.Event(), time.monotonic() + PATIENCE_S
    while client.states([job])[job] not in AT_REST:
        assert time.monotonic() < give_up, client.job(job).reason
        pause.wait(0.05)


@pytest.mark.parametrize(
    ("name", "state", "attempts", "conditions"),
    [
        ("hello", "Succeeded", 1, []),
        ("flaky", "Succeeded", 3, ["AppError"]),
        ("oom", "Succeeded", 2, ["OOMKilled"]),
        ("gang", "Succeeded", 2, ["AppError"]),
        ("deadline", "Failed", 1, ["DeadlineExceeded"]),
        ("hold", "Held", 1, ["AppError"]),
    ],
)
def test_an_example_job_ends_as_it_says(
    tmp_path: Path, name: str, state: str, attempts: int, conditions: list[str]
) -> None:
    (document,) = read_documents((EXAMPLES / f"{name}.yaml").read_text())
    with connect(drive=True, settings=Settings(url=None, data=tmp_path / "data", cpus=4.0)) as client:
        job = client.submit(document.value).id
        at_rest(client, job)
        found = client.job(job)
    assert (found.state, len(found.attempts)) == (state, attempts), found.reason
    assert found.attempts[0].conditions == conditions


@pytest.mark.parametrize("path", sorted((EXAMPLES / "policies").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_policy_can_be_applied_and_read_back(tmp_path: Path, path: Path) -> None:
    (document,) = read_documents(path.read_text())
    name = document.value["metadata"]["name"]
    with connect(settings=Settings(url=None, data=tmp_path / "data")) as client:
        client.policies.put(name, document.value)
        assert client.policies.get(name).name == name


def test_the_demo_ends_as_it_must() -> None:
    demo = [sys.executable, "-m", "tools.demo"]
    done = subprocess.run(demo, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every job ended as it must" in done.stdout
    assert done.stderr == ""
