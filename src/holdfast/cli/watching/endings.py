"""The report at the end of waiting for jobs: how each ended, why, and the last line it printed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.cli.render.figures import states as in_states
from holdfast.cli.render.jobs import took
from holdfast.cli.render.references import references
from holdfast.cli.watching.follow import ENDED
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.jobs import JobOutcome

MOST_TOLD = 20
"""Jobs that are reported one by one: each takes a request for its last line, and a screen holds no more."""
_PLAIN = "kernel_nonzero_exit"
"""The cause that adds nothing to the exit code, with which the reason begins."""


def tell_endings(client: Client, states: Mapping[str, str | None], ids: Sequence[str], cli: Cli) -> None:
    """Report how jobs ended, and count those beyond the first ``MOST_TOLD``.

    Args:
        client: The connection.
        states: States by id; ``None`` if a job is gone.
        ids: The jobs to report, in order.
        cli: Where to print the report.
    """
    shown, rest = ids[:MOST_TOLD], ids[MOST_TOLD:]
    by_id = {job.id: job for job in client.job_outcomes(ids=shown)} if shown else {}
    called = references((job.id, job.name) for job in by_id.values())
    for job_id in shown:
        job = by_id.get(job_id)
        if job is None:
            cli.say(f"{job_id}: is gone")
            continue
        line = ending_line(job, called[job_id])
        cli.say(line)
        last = last_line(client, job) if job.state in ENDED else ""
        if last and last not in line:
            cli.say(f"  {last}")
    if rest:
        cli.say(f"and {len(rest):,} more: {counted(states[job_id] for job_id in rest)}")


def ending_line(job: JobOutcome, called: str) -> str:
    """Say how a job ended: ``train: Failed after 3 attempts, 2m10s (oom_killed): <reason> (job <id>)``."""
    often = f" after {job.attempt} attempts" if job.attempt > 1 else ""
    ran = took(job, 0.0) if job.state in ENDED else ""
    how = f"{called}: {job.state}{often}"
    if ran:
        how += f", {ran}" if often else f" after {ran}"
    cause = "/".join(filter(None, (job.category, job.subcategory))) or job.cause or ""
    if cause and cause != _PLAIN and job.state != "Succeeded" and cause not in job.reason:
        how += f" ({cause})"
    if job.state == "Succeeded":
        return how
    return f"{how}: {job.reason} (job {job.id})" if job.reason else f"{how} (job {job.id})"


def last_line(client: Client, job: JobOutcome) -> str:
    """Return the line that says what went wrong, or else the last one a job printed."""
    if job.error_line and job.state == "Failed":
        return job.error_line
    try:
        text = client.logs(job.id, tail=1).text
    except NotFound:
        return ""
    return text.rstrip("\n").rpartition("\n")[2]


def counted(states: Iterable[str | None]) -> str:
    """Write how many jobs are in each state, and how many are gone."""
    counts = Counter(state or "gone" for state in states)
    gone = [f"{counts['gone']:,} gone"] if counts["gone"] else []
    parts = [states_text] if (states_text := in_states(counts)) != "none" else []
    return ", ".join([*parts, *gone])
