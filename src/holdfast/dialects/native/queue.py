"""Reads and writes queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.native.handler_limits import FIELD, read_handler_limits, write_handler_limits
from holdfast.dialects.native.job import MOST_GPUS, read_policy_names
from holdfast.dialects.reading import Fields
from holdfast.domain.job import Ceiling, Queue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

HEAVIEST = 1_000_000.0
MOST_JOBS = 1_000_000_000


def read_queue_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Queue | None:
    """Read a queue; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems), spec_required=False)
    spec = opened.spec or Fields({}, f"{path}.spec" if path else "spec", problems)
    weight = spec.number("weight", low=0, high=HEAVIEST)
    if weight == 0:
        spec.problem("weight", "must be more than 0", hint="paused: true starts none of its jobs")
    queue = Queue(
        name=opened.name or "",
        weight=1.0 if weight is None else weight,
        max_running=_read_max_running(spec),
        max_running_jobs=spec.integer("maxRunningJobs", low=1, high=MOST_JOBS),
        retry_policies=read_policy_names(spec),
        paused=spec.flag("paused"),
        handler_limits=read_handler_limits(spec),
    )
    close_envelope(opened)
    return queue if len(problems) == before else None


def _read_max_running(spec: Fields) -> Ceiling:
    part = spec.nested("maxRunning")
    if part is None:
        return Ceiling()
    ceiling = Ceiling(part.cpu("cpu"), part.memory("memory"), part.integer("gpu", low=0, high=MOST_GPUS))
    part.finish()
    return ceiling


def write_queue(queue: Queue) -> dict[str, Any]:
    """Write a queue's ``spec``; it reads back equal."""
    spec: dict[str, Any] = {"weight": queue.weight, "paused": queue.paused}
    most = queue.max_running
    limits = {"cpu": None if most.cpu_m is None else f"{most.cpu_m}m", "memory": most.memory, "gpu": most.gpu}
    if given := {name: limit for name, limit in limits.items() if limit is not None}:
        spec["maxRunning"] = given
    if queue.max_running_jobs is not None:
        spec["maxRunningJobs"] = queue.max_running_jobs
    if queue.retry_policies:
        spec["retryPolicies"] = list(queue.retry_policies)
    if queue.handler_limits:
        spec[FIELD] = write_handler_limits(queue.handler_limits)
    return spec
