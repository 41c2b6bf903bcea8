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
from tools.demo.batch import EXPLAINED, STORIES, catalogue, jobs, surprises
from tools.demo.report import explain, table
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
    batch = jobs()
    for manifest in catalogue():
        put = client.put_policy if manifest["kind"] == "RetryPolicy" else client.put_category
        put(manifest["metadata"]["name"], manifest)
    console.print(f"Submitting {len(batch)} jobs; {len(STORIES)} of them will fail in one way or another.")
    began = time.monotonic()
    client.submit_bulk(batch)
    at_rest = watch(client, console, patience_s=PATIENCE_S)
    took = time.monotonic() - began
    found = list(client.full_jobs())
    console.print(table(found))
    explain(client, console, EXPLAINED)
    wrong = surprises(found) + ([] if at_rest else ["some jobs were still on their way"])
    for line in wrong:
        console.print(line, style="red", highlight=False)
    console.print(
        f"\n{len(found)} jobs, {sum(len(job.attempts) for job in found)} attempts in {took:.1f} s; "
        + ("not every job ended as it must." if wrong else "every job ended as it must.")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
