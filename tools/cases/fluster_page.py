"""What the page of Fluster's cases says of what jobs are given; the names are those that ``fluster_given`` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAYS: tuple[tuple[str, str], ...] = (
    ("max_retries_failure, max_retries_preemption", "Numbers"),
    ("initial_delay, max_delay, initial, max", "Seconds"),
    ("initial_retry_delay_ms, max_retry_delay_ms", "Milliseconds"),
    ("multiplier, backoff_multiplier", "A number"),
    ("retry_on_exit_codes, no_retry_on_exit_codes, both_lists", "Lists of exit codes; `empty`"),
    ("retry, job_retry", "A configuration, a list of them, or `absent`"),
    ("controller_defaults", "`failure`, `preemption` and `delay_ms` of launches that do not say so"),
    (
        "program",
        "`fails twice then succeeds`, `always exit CODE`, `exits CODE twice then succeeds`, `worker dies once then...`",
    ),
    ("state, task", "A state, perhaps `on WORKER`; `PENDING in back-off`, `terminal`"),
    ("job, job_id, name", "A name, perhaps with `exists`; `unknown`, `nonexistent`; a state"),
    ("retry_available_at_ms", "`now+MS`"),
    ("attempt, current_attempt_id", "Which attempt runs, from 0; `attempt NUMBER` beside it: how each went"),
    ("endpoints", "Names, or how many"),
    ("endpoint", "What its program registers, perhaps with `at ...`"),
    ("worker, worker_id", "A name; `free`"),
    ("cpu, worker_cpu", "Cores"),
    ("scheduling_timeout_seconds, worker_timeout_seconds, ran_for_s", "Seconds"),
    ("failed_at_ms, term_timeout_ms", "Milliseconds"),
    ("submitted, last_heartbeat", "`now-NUMBERms`, `now-NUMBERs`"),
    ("running", '`["j1"]`'),
    ("exit, oom_killed", "How its program ends"),
    ("report, result", "That the report of its end is lost"),
    ("process", "`ignores SIGTERM`"),
)


def told() -> Mapping[str, str]:
    """Return what each name may say, for the page of the cases."""
    return {name: says for names, says in _SAYS for name in names.split(", ")}
