"""Every way a command can end has one exit code."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import errors
from holdfast.cli import exit_codes
from holdfast.wire.jobs import JobView

RESOURCES = {"cpu": "1", "memory": "0", "gpu": 0}
AT = "2026-01-01T00:00:00.000Z"


def job(state: str, **attempt: object) -> JobView:
    attempts = [{"number": 1, "state": state, "phase": "ERROR", "created_at": AT, "resources": RESOURCES, **attempt}]
    facts: dict[str, Any] = {"labels": {}, "counters": {}, "spec": {}, "attempts": attempts if attempt else []}
    header = {"id": "j", "name": "j", "queue": "default", "state": state, "resources": RESOURCES, "submitted_at": AT}
    return JobView.model_validate({**header, **facts})


def launch_failed(reason: str) -> dict[str, Any]:
    container = {"name": "main", "reason": reason}
    run = {"uid": "u", "rank": 0, "state": "Failed", "phase": "ERROR", "containers": [container]}
    return {"conditions": ["LaunchFailed"], "runs": [run]}


@pytest.mark.parametrize("kind", errors.all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_has_an_exit_code_of_its_own_line(kind: type[errors.HoldfastError]) -> None:
    assert exit_codes.of_error(kind()) == exit_codes.BY_ERROR[kind]


def test_every_exit_code_of_an_error_is_documented() -> None:
    assert set(exit_codes.BY_ERROR.values()) <= set(exit_codes.MEANINGS)


def test_an_error_without_a_line_takes_its_parents_code() -> None:
    class Newer(errors.NotFound):
        """Something newer."""

    assert exit_codes.of_error(Newer()) == exit_codes.NOT_FOUND


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (job("Succeeded", exit_code=0), 0),
        (job("Failed", exit_code=3), 3),
        (job("Failed", exit_code=137, signal=9), 137),
        (job("Failed", exit_code=137), 137),
        (job("Failed", signal=15), 143),
        (job("Held", exit_code=3), 75),
        (job("Failed", exit_code=0), 1),
        (job("Failed", **launch_failed("CommandNotFound")), 127),
        (job("Failed", **launch_failed("PermissionDenied")), 126),
        (job("Failed", conditions=["Unschedulable"]), 1),
        (job("Cancelled"), 1),
        (job("Failed"), 1),
    ],
)
def test_run_ends_with_the_jobs_own_code(ended: JobView, code: int) -> None:
    assert exit_codes.of_job(ended) == code
