"""Leaves out of work what a caller may not see: output of programs, their environment, names, or all details."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.compiled.codec import dump_spec
from holdfast.domain.events.jobs import AttemptProgressed
from holdfast.domain.job import Attempt
from holdfast.domain.record import evolve
from holdfast.domain.rights import ANOTHERS
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.events.registry import Event, StoredEvent
    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.job import Job, Run
    from holdfast.domain.notifications.notification import OutcomeReport

T = TypeVar("T", Attempt, "Run")
F = TypeVar("F", "Failure", "RunOutcome")
_HIDDEN = dump_spec(JobSpec(command=("hidden",), name="hidden"))
_CACHED = 1024
_QUOTES = re.compile(r"\b(exit code -?\d+|killed by (?:SIG[A-Z0-9+-]+|signal \d+)): .*", re.DOTALL)
"""Where ``failure_in_words`` quotes a line of the log; to the end of the text, as the line may have any form."""
_NAMES = re.compile(r"\b((?:is|are) in use by )[^;]*")
"""Where ``domain.placement.assignment.DeviceShortage`` names jobs."""
_REASON_FIELDS = ("reason", "message", "detail")
"""The fields of events that give reasons."""
_WORDS = ('"env', '"secrets"')


def masked(job: Job) -> Job:
    """Return a job that shows only that it exists, where it is and how much it uses."""
    # The id of an array's job contains the array's name.
    key = job.id if job.child is None else f"{job.child.set_id}-{job.seq}"
    return evolve(
        job,
        id=key,
        name=ANOTHERS,
        spec=_HIDDEN,
        reason="",
        counters={},
        child=None,
        submitted_by="",
        submitter_uid=None,
        group="",
        parent="",
    )


def unquoted(text: str) -> str:
    """Return a reason without the line of the job's log that it quotes."""
    return _QUOTES.sub(r"\1", text)


def unnamed(text: str) -> str:
    """Return the reason why a job waits without the names of the jobs that use what it waits for."""
    return _NAMES.sub(r"\1other jobs", text)


def report_without_logs(report: OutcomeReport) -> OutcomeReport:
    """Return a notification's report without quoted lines of the log."""
    return evolve(report, reason=unquoted(report.reason), failure=unquoted(report.failure))


def event_without_logs(stored: StoredEvent) -> StoredEvent:
    """Return an event without program output."""
    if isinstance(stored.event, AttemptProgressed):
        return stored._replace(event=evolve(stored.event, progress=""))
    return _with_reasons(stored, unquoted, ": ")


def event_without_names(stored: StoredEvent) -> StoredEvent:
    """Return an event without the names of the jobs that use what a job waits for."""
    return _with_reasons(stored, unnamed, " in use by ")


def _with_reasons(stored: StoredEvent, change: Callable[[str], str], mark: str) -> StoredEvent:
    """Return an event with its reasons changed; ``mark`` is a text without which a reason needs no change."""
    event: Any = stored.event
    changed = {}
    for name in _reason_fields(type(stored.event)):
        text = getattr(event, name)
        if text and mark in text and (short := change(text)) != text:
            changed[name] = short
    return stored._replace(event=evolve(event, **changed)) if changed else stored


@lru_cache(maxsize=_CACHED)
def _reason_fields(kind: type[Event]) -> Sequence[str]:
    return [name for name in _REASON_FIELDS if name in kind.__struct_fields__]


def without_logs(record: T) -> T:
    """Return an attempt or a run without program output."""
    if isinstance(record, Attempt):
        return record if record.failure is None else evolve(record, failure=_silent(record.failure))
    outcome = None if record.outcome is None else evolve(_silent(record.outcome), log_tail=())
    return evolve(record, outcome=outcome, progress="")


def _silent(outcome: F) -> F:
    containers = tuple(evolve(container, message="", log_tail=()) for container in outcome.containers)
    return evolve(outcome, containers=containers, error_line="", log_matches=())


@lru_cache(maxsize=_CACHED)
def without_environment(text: str) -> str:
    """Return a stored specification or a manifest without environment variables."""
    return (
        json.dumps(_stripped(json.loads(text)), separators=(",", ":"), ensure_ascii=False)
        if any(word in text for word in _WORDS)
        else text
    )


def _stripped(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {
            name: _stripped(part)
            for name, part in value.items()
            if name not in {"env", "envFrom", "secrets"} or isinstance(part, str)  # a label may have such a name
        }
    return [_stripped(part) for part in value] if isinstance(value, list) else value
