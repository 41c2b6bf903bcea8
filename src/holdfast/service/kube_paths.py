"""Translates the paths of problems from native manifests to Kubernetes manifests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.native.dependencies import DEPENDS_ON
from holdfast.dialects.native.notify import NOTIFY
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import QUEUE_LABEL

if TYPE_CHECKING:
    from holdfast.errors import Problem

QUEUE = "spec.queue"
NOTIFIED = "spec.notify"
AWAITED = "spec.dependsOn"
JOB_POD = "spec.template.spec"
"""Where the pod of a ``batch/v1`` Job is."""
_RESOURCE = re.compile(r"spec\.resources\.(.+)")
_NAMES = {"gpu": "nvidia.com/gpu"}


def in_kubernetes(problem: Problem, pod: str) -> Problem:
    """Move a problem of a native job to the field of a Kubernetes manifest; ``pod`` is the path of its pod."""
    if problem.path == QUEUE:
        return evolve(problem, path=f"metadata.labels.{QUEUE_LABEL}")
    if problem.path.startswith(NOTIFIED):
        return evolve(problem, path=f"metadata.annotations.{NOTIFY}")
    if problem.path.startswith(AWAITED):
        return evolve(problem, path=f"metadata.annotations.{DEPENDS_ON}")
    if match := _RESOURCE.fullmatch(problem.path):
        return evolve(problem, path=f"{pod}.containers[0].resources.requests.{_NAMES.get(match[1], match[1])}")
    return problem
