"""Reads and writes Armada's queues, as its API and its files have them, with its sentences.

A queue's weight is one over its priority factor; cordoned is paused. Limits by priority class are kept as they are
written and given back, and limit nothing. A queue that says nothing of owners and permissions keeps those it has.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.permissions import PERMISSIONS, read_permissions, write_permissions
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = "resourceLimitsByPriorityClassName"
_LIMITS_KEPT = "armadaproject.io/resource-limits-by-priority-class"


def read_queue(value: Mapping[str, Any], *, before: Queue | None, problems: list[Problem]) -> Queue | None:
    """Read a queue; ``None`` when anything was wrong.

    Args:
        value: The queue, as JSON has it.
        before: What the queue is now, whose settings that Armada does not know stay.
        problems: Where to note what is wrong.
    """
    noted = len(problems)
    name, factor = str(value.get("name") or ""), float(value.get("priorityFactor") or 0.0)
    if not 1.0 <= factor < math.inf:  # nor is it a number, if it is none
        message = f"failed to map priority factor. priority factor cannot be lower than 1.0. Value: {factor:f}"
        problems.append(Problem("priorityFactor", message))
    labels = {str(key): str(text) for key, text in (value.get("labels") or {}).items()}
    for key, text in labels.items():
        if not key or not text:
            message = f"queue labels must not have an empty key or value, key: {key}, value: {text}"
            problems.append(Problem("labels", message))
    permissions = read_permissions(value, problems)
    if len(problems) > noted:
        return None
    queue = before or Queue(name)
    limits = value.get(LIMITS)
    annotations = {key: text for key, text in queue.annotations.items() if key != _LIMITS_KEPT}
    if limits:
        annotations[_LIMITS_KEPT] = json.dumps(limits, sort_keys=True)
    return evolve(
        queue,
        weight=1.0 / factor,
        paused=value.get("cordoned") is True,
        labels=labels,
        annotations=annotations,
        permissions=permissions or queue.permissions,
        retry_policies=tuple(dict.fromkeys(str(one) for one in value.get("retryPolicies") or ())),
    )


def write_queue(queue: Queue) -> dict[str, Any]:
    """Write a queue; it reads back equal."""
    written: dict[str, Any] = {"name": queue.name, "priorityFactor": _factor(queue.weight)}
    if queue.paused:
        written["cordoned"] = True
    if queue.labels:
        written["labels"] = dict(queue.labels)
    if queue.retry_policies:
        written["retryPolicies"] = list(queue.retry_policies)
    if queue.permissions:
        written[PERMISSIONS] = write_permissions(queue.permissions)
    if _LIMITS_KEPT in queue.annotations:
        written[LIMITS] = json.loads(queue.annotations[_LIMITS_KEPT])
    return written


def _factor(weight: float) -> float:
    """Return the priority factor of a weight; dividing twice must not make 3 into 3.0000000000000004."""
    factor = 1.0 / weight
    nearest = round(factor, 9)
    return nearest if nearest and 1.0 / nearest == weight else factor
