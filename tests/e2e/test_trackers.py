"""All attempts of a job are one run of a tracker: the real ones, from PyPI, in an environment of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import holdfast

if TYPE_CHECKING:
    from pathlib import Path

WANDB = """
import holdfast, wandb
run = holdfast.current()
run.track()
with wandb.init(project="demo", mode="offline") as tracked:
    tracked.log({"loss": 1 / run.attempt})
    print("tracked", tracked.id == run.job_id)
if run.attempt == 1:
    run.fail("not yet", retryable=True)
"""
MLFLOW = """
import sys, holdfast, mlflow
from holdfast.integrations.mlflow import start_run
run = holdfast.current()
mlflow.set_tracking_uri(sys.argv[1])
with start_run() as tracked:
    mlflow.log_metric("loss", 1 / run.attempt)
    print("tracked", tracked.info.run_id)
if run.attempt == 1:
    run.fail("not yet", retryable=True)
found = mlflow.search_runs(output_format="list")
print("runs", len(found), found[0].data.tags["holdfast.job"] == run.job_id, found[0].info.run_name)
"""


def installed(package: str, place: Path) -> Path:
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(place)]
    done = subprocess.run([*words, package], capture_output=True, text=True, timeout=250, check=False)
    if done.returncode:
        pytest.skip(f"{package} cannot be installed here: {done.stderr[-300:]}")
    return place


def said(tmp_path: Path, package: str, program: str, *arguments: str, **environ: str) -> list[str]:
    """Run a program that fails once, and return what both attempts said."""
    place = installed(package, tmp_path / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
        with holdfast.Client.from_env() as client:
            job = client.submit(
                [sys.executable, "-c", program, *arguments],
                name="tracked",
                retries=1,
                env={"PYTHONPATH": str(place), **environ},
                working_dir=str(tmp_path),
            )
            assert job.wait(120) == "Succeeded", job.logs()
            return [
                line
                for attempt in (1, 2)
                for line in job.logs(attempt=attempt).splitlines()
                if line.startswith(("tracked", "runs"))
            ]


@pytest.mark.slow
@pytest.mark.timeout(400)  # installing takes what the network takes
def test_weights_and_biases_takes_the_jobs_id_in_every_attempt(tmp_path: Path) -> None:
    assert said(tmp_path, "wandb", WANDB, WANDB_SILENT="true") == ["tracked True", "tracked True"]


@pytest.mark.slow
@pytest.mark.timeout(400)  # as above
def test_mlflow_goes_on_with_the_run_of_the_first_attempt(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    first, second, runs = said(tmp_path, "mlflow-skinny", MLFLOW, store)
    assert first == second
    assert runs == "runs 1 True tracked"
