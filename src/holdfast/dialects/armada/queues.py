"""Reads and writes Armada's queues, as in its API and files, with its messages.

A queue's weight is one over its priority factor; cordoned means paused. Limits by priority class are kept and given
back, but limit nothing. Names and labels must be valid Kubernetes labels: upstream's pods have both and would not start
otherwise. A queue without owners and permissions keeps those it has.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.permissions import (
    GROUP_OWNERS,
    NOBODY,
    PERMISSIONS,
    USER_OWNERS,
    read_permissions,
    write_permissions,
)
from holdfast.dialects.jobset.values import LONGEST_LABEL, label_value, qualified_name
from holdfast.dialects.native.access import MOST_PERMISSIONS, MOST_SUBJECTS
from holdfast.dialects.native.envelope import take_kind
from holdfast.dialects.native.job import LONGEST_ANNOTATION, MOST_LABELS, MOST_POLICIES
from holdfast.dialects.reading import Fields
from holdfast.domain.access.grants import Right
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMITS = "resourceLimitsByPriorityClassName"
_STAND_IN = "queue"
"""Stands in for an invalid name, so that the rest is still checked."""
_LIMITS_KEPT = "armadaproject.io/resource-limits-by-priority-class"


def read_queue(value: Mapping[str, Any], *, before: Queue | None, problems: list[Problem]) -> Queue | None:
    """Read a queue; ``None`` if anything is wrong.

    Args:
        value: The queue as JSON.
        before: The present queue, whose settings unknown to Armada stay.
        problems: Where to add problems.
    """
    noted = len(problems)
    name, factor = str(value.get("name") or ""), float(value.get("priorityFactor") or 0.0)
    if not 1.0 <= factor < math.inf:  # A missing value is no number either.
        message = f"failed to map priority factor. priority factor cannot be lower than 1.0. Value: {factor:f}"
        problems.append(Problem("priorityFactor", message))
    problems += [Problem("name", f"{name[:LONGEST_LABEL]!r} {wrong}") for wrong in _wrong_in_name(name)]
    labels = {str(key): str(text) for key, text in (value.get("labels") or {}).items()}
    problems += _wrong_in_labels(labels)
    limits = _read_limits(value, problems)
    policies = tuple(dict.fromkeys(str(policy) for policy in value.get("retryPolicies") or ()))
    if len(policies) > MOST_POLICIES:
        problems.append(Problem("retryPolicies", f"has {len(policies)} policies; at most {MOST_POLICIES} are allowed"))
    permissions = read_permissions(value, problems)
    if len(problems) > noted:
        return None
    queue = before or Queue(name)
    annotations = {key: text for key, text in queue.annotations.items() if key != _LIMITS_KEPT}
    if limits:
        annotations[_LIMITS_KEPT] = limits
    return evolve(
        queue,
        weight=1.0 / factor,
        paused=value.get("cordoned") is True,
        labels=labels,
        annotations=annotations,
        permissions=permissions or queue.permissions,
        retry_policies=policies,
    )


def read_queue_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Queue | None:
    """Read the file of a queue (``armadaproject.io/v1beta1``); ``None`` if anything is wrong.

    A queue without owners and permissions is open to operators only, as upstream.
    """
    noted = len(problems)
    fields = Fields(value, path, problems)
    take_kind(fields)
    queue = {
        "name": fields.text("name", required=True) or _STAND_IN,
        "priorityFactor": fields.number("priorityFactor", low=1.0, high=sys.float_info.max) or 1.0,
        "cordoned": fields.flag("cordoned"),
        "labels": fields.mapping("labels", most=MOST_LABELS),
        "retryPolicies": fields.texts("retryPolicies", most=MOST_POLICIES),
        USER_OWNERS: fields.texts(USER_OWNERS, most=MOST_SUBJECTS),
        GROUP_OWNERS: fields.texts(GROUP_OWNERS, most=MOST_SUBJECTS),
        PERMISSIONS: [_read_permission(part) for part in fields.mappings(PERMISSIONS, most=MOST_PERMISSIONS)],
        LIMITS: _given(fields.nested(LIMITS)),
    }
    if "priorityFactor" not in value:
        fields.problem("priorityFactor", "is required", hint="1 or more; a lower number makes the queue more important")
    fields.finish()
    queue_problems: list[Problem] = []
    read = read_queue(queue, before=None, problems=queue_problems)
    problems += [evolve(problem, path=fields.at(problem.path)) for problem in queue_problems]
    return evolve(read, permissions=read.permissions or NOBODY) if read and len(problems) == noted else None


def _read_permission(fields: Fields) -> dict[str, Any]:
    subjects = [
        {"kind": subject.text("kind"), "name": subject.text("name")}
        for subject in fields.mappings("subjects", most=MOST_SUBJECTS)
    ]
    return {"subjects": subjects, "verbs": fields.texts("verbs", most=len(Right))}


def _given(fields: Fields | None) -> Mapping[str, Any]:
    return {} if fields is None else fields.value


def _wrong_in_name(name: str) -> list[str]:
    return label_value(name) if name else ["is no name of a queue"]


def _wrong_in_labels(labels: Mapping[str, str]) -> Iterator[Problem]:
    if len(labels) > MOST_LABELS:
        yield Problem("labels", f"has {len(labels)} labels; at most {MOST_LABELS} are allowed")
        return
    for key, text in labels.items():
        if not key or not text:
            message = f"queue labels must not have an empty key or value, key: {key}, value: {text}"
            yield Problem("labels", message)
            continue
        for shown, wrong in ((key, qualified_name(key)), (text, label_value(text))):
            yield from (Problem("labels", f"{shown[:LONGEST_LABEL]!r} {message}") for message in wrong)


def _read_limits(value: Mapping[str, Any], problems: list[Problem]) -> str:
    """Return the stored form of the limits by priority class; empty if there are none."""
    limits = value.get(LIMITS)
    written = json.dumps(limits, sort_keys=True) if limits else ""
    if len(written) > LONGEST_ANNOTATION:
        message = f"takes {len(written)} characters as JSON; at most {LONGEST_ANNOTATION} are allowed"
        problems.append(Problem(LIMITS, message))
    return written


def write_queue(queue: Queue) -> dict[str, Any]:
    """Write a queue; it reads back equal."""
    written: dict[str, Any] = {"name": queue.name, "priorityFactor": _factor(queue.weight)}
    if queue.paused:
        written["cordoned"] = True
    if queue.labels:
        written["labels"] = dict(queue.labels)
    if queue.retry_policies:
        written["retryPolicies"] = list(queue.retry_policies)
    if queue.permissions and queue.permissions != NOBODY:
        written[PERMISSIONS] = write_permissions(queue.permissions)
    if _LIMITS_KEPT in queue.annotations:
        written[LIMITS] = json.loads(queue.annotations[_LIMITS_KEPT])
    return written


def _factor(weight: float) -> float:
    """Return the priority factor of a weight; dividing twice must not turn 3 into 3.0000000000000004."""
    factor = 1.0 / weight
    nearest = round(factor, 9)
    return nearest if nearest and 1.0 / nearest == weight else factor
