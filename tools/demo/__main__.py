"""Runs the demo: exit code 0 when every job ended as it must, 1 when one did not."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from holdfast.app.connect import connect
from holdfast.app.settings import Settings
from tools.demo.batch import EXPLAINED, STORIES, catalogue, job_sets, jobs, surprises
from tools.demo.report import explain, table, table_of_sets
from tools.demo.watch import watch

if TYPE_CHECKING:
    from holdfast.client import Client

PATIENCE_S = 120.0
WIDTH_OFF_TERMINAL = 140


def main() -> int:
    """Run the batch on a data directory of its own, which is gone afterwards."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OFF_TERMINAL)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True) as folder:
        settings = Settings(url=None, data=Path(folder))
        with connect(drive=True, settings=settings) as client:
            return run(client, console)


def run(client: Client, console: Console) -> int:
    """Submit everything, follow it, and show what became of it."""
    batch, sets = jobs(), job_sets()
    for manifest in catalogue():
        put = client.policies.put if manifest["kind"] == "RetryPolicy" else client.categories.put
        put(manifest["metadata"]["name"], manifest)
    console.print(
        f"Submitting {len(batch)} jobs and {len(sets)} job sets; {len(STORIES)} of the jobs and something in each set "
        "will fail in one way or another."
    )
    began = time.monotonic()
    client.submit_bulk(batch)
    for manifest in sets:
        client.create_job_set(manifest)
    at_rest = watch(client, console, patience_s=PATIENCE_S)
    took = time.monotonic() - began
    found = [job for job in client.full_jobs() if job.job_set is None]
    found_sets = [client.job_set(one.name) for one in client.job_sets()]
    console.print(table(found))
    console.print(table_of_sets(client, found_sets))
    explain(client, console, EXPLAINED)
    wrong = surprises(found, found_sets) + ([] if at_rest else ["some jobs were still on their way"])
    for line in wrong:
        console.print(line, style="red", highlight=False)
    attempts = sum(len(job.attempts) for job in found)
    console.print(
        f"\n{len(found)} jobs, {attempts} attempts, {len(found_sets)} job sets in {took:.1f} s; "
        + ("not every job ended as it must." if wrong else "every job ended as it must.")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
