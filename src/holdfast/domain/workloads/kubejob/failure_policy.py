"""Judges a failed pod by a podFailurePolicy: rules in order, the first that matches, else Count.

Exit codes are looked up in app containers first, then in init containers; any failed container counts, and a code
of 0 never matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import ContainerSelector
from holdfast.domain.policy.model import ExitCodeOperator
from holdfast.domain.record import Struct
from holdfast.domain.workloads.kubejob.model import PodAction, PodPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.kubejob.model import Pod, PodRule

NAMESPACE = "default"
"""What stands for the namespace in messages: Holdfast has none."""


class PodVerdict(Struct, frozen=True):
    """What the policy says about one pod."""

    action: PodAction
    rule: int | None = None
    reason: str = ""
    """Of the Job, when it fails by this."""
    message: str = ""


def judge(rules: Sequence[PodRule] | None, pod: Pod) -> PodVerdict:
    """Judge one failed pod; one still terminating has not failed yet and counts as ``Count``."""
    if pod.phase is PodPhase.FAILED:
        for index, rule in enumerate(rules or ()):
            if found := _found(rule, pod):
                message = f"{found} matching {rule.action} rule at index {index}"
                return PodVerdict(rule.action, index, rule.job_reason, message)
    return PodVerdict(PodAction.COUNT)


def _found(rule: PodRule, pod: Pod) -> str:
    """Say what a rule matches, word for word as the Job controller does; rules of job sets match these texts."""
    codes = rule.exit_codes
    if codes is None:
        matched = rule.conditions & pod.conditions
        return f"Pod {NAMESPACE}/{pod.name} has condition {min(matched)[0]}" if matched else ""
    for one in ContainerSelector(rule.container_name, init=True).of_containers(pod.containers):
        if (one.exit_code in codes.values) is (codes.operator is ExitCodeOperator.IN):
            return f"Container {one.name} for pod {NAMESPACE}/{pod.name} failed with exit code {one.exit_code}"
    return ""
