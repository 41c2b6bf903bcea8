"""Turns the state of a set, and of a Job, into plain values for storage and back; decides nothing about where."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from holdfast.domain.jobset.state import Condition, GroupStatus, JobSetState, Terminal
from holdfast.domain.podjob.model import BackoffRecord, JobCondition, PodJobState

if TYPE_CHECKING:
    from collections.abc import Mapping


def set_record(state: JobSetState) -> dict[str, Any]:
    """Return a set's state as values that survive JSON."""
    return {**asdict(state), "terminal": state.terminal.value}


def set_state(record: Mapping[str, Any]) -> JobSetState:
    """Return the state a record stands for."""
    fields = dict(record)
    for name in ("job_restarts", "job_restarts_counted"):
        fields[name] = {group: _by_index(counts) for group, counts in fields[name].items()}
    fields["left_failed"] = {job: (attempt[0], attempt[1]) for job, attempt in fields["left_failed"].items()}
    fields["conditions"] = tuple(Condition(**one) for one in fields["conditions"])
    fields["groups"] = tuple(GroupStatus(**one) for one in fields["groups"])
    fields["counted_at"] = tuple(fields["counted_at"])
    fields["terminal"] = Terminal(fields["terminal"])
    return JobSetState(**fields)


def job_record(state: PodJobState) -> dict[str, Any]:
    """Return a Job's state as values that survive JSON."""
    sets = ("counted", "completed_indexes", "failed_indexes")
    return {**asdict(state), **{name: sorted(getattr(state, name)) for name in sets}}


def job_state(record: Mapping[str, Any]) -> PodJobState:
    """Return the state a record stands for."""
    fields = dict(record)
    for name in ("counted", "completed_indexes", "failed_indexes"):
        fields[name] = frozenset(fields[name])
    fields["index_failures"] = {int(index): tuple(counts) for index, counts in fields["index_failures"].items()}
    fields["conditions"] = tuple(JobCondition(**one) for one in fields["conditions"])
    fields["backoff"] = BackoffRecord(**fields["backoff"])
    return PodJobState(**fields)


def _by_index(counts: Mapping[Any, int]) -> dict[int, int]:
    return {int(index): count for index, count in counts.items()}
