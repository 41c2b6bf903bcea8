"""Copies of records with changes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast.domain.job import Attempt, Job, Run, evolve
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.workloads.kubejob.model import KubeJobState
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord

JOB = Job("id", "name", "queue", 1, 2.0, "{}")
RECORDS = [JOB, Attempt("id", 1), Run("id-1-0-1", "id", 1, 0), KubeJobRecord("id"), KubeJobState(), PodRecord("pod", 0)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_copy_without_changes_is_equal(record: Any) -> None:  # noqa: ANN401 - any record
    assert evolve(record) == record


def test_a_copy_differs_in_what_was_changed_and_in_nothing_else() -> None:
    assert evolve(JOB, reason="because", attempt=3) == replace(JOB, reason="because", attempt=3)


def test_values_are_checked_by_whoever_checks_types() -> None:
    assert evolve(JOB, attempt="3").attempt != 3  # type: ignore[arg-type] # unused, if it was not found


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError, match="raeson"):
        evolve(JOB, raeson="because")  # type: ignore[call-arg] # found before it runs, too


@pytest.mark.parametrize(("kind", "status"), [(Attempt, AttemptStatus.RUNNING), (Run, RunStatus.RUNNING)])
def test_entering_a_status_keeps_every_other_field(kind: Any, status: Any) -> None:  # noqa: ANN401 - two kinds
    record = kind(**{field.name: object() for field in fields(kind)})
    wanted = {"status": status, "status_since": 9.0, **({"tries": 0} if kind is Attempt else {})}
    assert record.entered(status, 9.0) == replace(record, **wanted)
