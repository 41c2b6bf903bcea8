"""One run of MLflow for all attempts of a job: ``start_run()`` in place of ``mlflow.start_run()``."""

from __future__ import annotations

from typing import Any

import mlflow

from holdfast.sdk.calls.context import current


def start_run(**options: Any) -> Any:
    """Start a run in a job's first attempt, and resume it in every other one.

    Its id is kept beside the checkpoints, and its tag ``holdfast.job`` is the job's id.

    Args:
        **options: As of ``mlflow.start_run``, without ``run_id``; in attempts that resume a run, they have no effect.

    Raises:
        LookupError: Holdfast did not start this program.
    """
    run = current()
    kept = run.checkpoint_dir / f"mlflow-run-{run.tracking_id}"
    if kept.exists():
        return mlflow.start_run(run_id=kept.read_text())
    tags = {"holdfast.job": run.job_id, **options.pop("tags", {})}
    started = mlflow.start_run(**{"run_name": run.job_name, **options, "tags": tags})
    kept.write_text(started.info.run_id)
    return started
