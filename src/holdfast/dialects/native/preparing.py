"""Reads what is done before a job's program is started, and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.preparing import DEFAULT_TIMEOUT_S, Preparation

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.dialects.reading import Fields
    from holdfast.domain.workloads.spec import JobSpec


def read_preparation(spec: Fields, read_command: Callable[[Fields], tuple[str, ...]]) -> Preparation | None:
    """Read ``prepare``: a program as of the job itself, and how long it may take."""
    part = spec.nested("prepare")
    if part is None:
        return None
    command, timeout_s = read_command(part), part.duration("timeout")
    part.finish()
    if timeout_s == 0:
        part.problem("timeout", "must be more than 0")
    return Preparation(command, DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s)


def write_preparing(spec: JobSpec) -> dict[str, Any]:
    """Write what a job says about that, durations in seconds."""
    if spec.prepare is None:
        return {}
    return {"prepare": {"command": list(spec.prepare.command), "timeout": spec.prepare.timeout_s}}
