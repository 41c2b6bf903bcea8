"""Judges a failed pod by a podFailurePolicy: rules in order, the first that matches, else Count.

Exit codes are looked up in app containers first, then in init containers; any failed container will do, and a code
of 0 never matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import ContainerSelector, considered, matches
from holdfast.domain.policy.model import ExitCodeOperator
from holdfast.domain.workloads.kubejob.model import PodAction, PodPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import ContainerResult
    from holdfast.domain.policy.matchers import Matcher
    from holdfast.domain.policy.model import Considered, ExitCodes
    from holdfast.domain.workloads.kubejob.model import Pod, PodRule

NAMESPACE = "default"
"""What stands for the namespace in messages: Holdfast has none."""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What the policy says about one pod."""

    action: PodAction
    rule: int | None = None
    reason: str = ""
    """Of the Job, when it fails by this."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class _ExitCodes:
    codes: ExitCodes
    container: str | None

    def found(self, pod: Pod) -> ContainerResult | None:
        wanted = self.codes.operator is ExitCodeOperator.IN
        selector = ContainerSelector(self.container, init=True)
        failed = selector.of_containers(pod.containers)
        return next((one for one in failed if (one.exit_code in self.codes.values) is wanted), None)

    def holds(self, pod: Pod, /) -> bool:
        return self.found(pod) is not None

    def because(self, pod: Pod, /) -> str:
        whose = "" if self.container is None else f" of container {self.container!r}"
        codes = ", ".join(map(str, sorted(self.codes.values)))
        if found := self.found(pod):
            return f"container {found.name!r} failed with exit code {found.exit_code}"
        return f"no exit code{whose} is {self.codes.operator} {codes}"


@dataclass(frozen=True, slots=True)
class _Conditions:
    wanted: frozenset[tuple[str, str]]

    def holds(self, pod: Pod, /) -> bool:
        return not self.wanted.isdisjoint(pod.conditions)

    def because(self, pod: Pod, /) -> str:
        names = ", ".join(f"{type_}={status}" for type_, status in sorted(self.wanted & pod.conditions or self.wanted))
        return f"condition {names} {'holds' if self.holds(pod) else 'does not hold'}"


def judge(rules: Sequence[PodRule] | None, pod: Pod) -> PodVerdict:
    """Judge one failed pod; one still terminating has not failed yet and counts as ``Count``."""
    if pod.phase is PodPhase.FAILED:
        for index, rule in enumerate(rules or ()):
            if matches(_matchers(rule), pod):
                return PodVerdict(rule.action, index, rule.job_reason, _message(rule, index, pod))
    return PodVerdict(PodAction.COUNT)


def explain(rules: Sequence[PodRule], pod: Pod) -> tuple[Considered, ...]:
    """List every rule tried, up to the one that matches."""
    found: list[Considered] = []
    for index, rule in enumerate(rules):
        found.append(considered("podFailurePolicy", rule.name or f"rule{index}", _matchers(rule), pod))
        if found[-1].matched:
            break
    return tuple(found)


def _matchers(rule: PodRule) -> tuple[Matcher[Pod], ...]:
    if rule.exit_codes is not None:
        return (_ExitCodes(rule.exit_codes, rule.container_name),)
    return (_Conditions(rule.conditions),)


def _message(rule: PodRule, index: int, pod: Pod) -> str:
    """Say what matched, word for word as the Job controller does; rules of job sets match these texts."""
    where = f"matching {rule.action} rule at index {index}"
    if rule.exit_codes is not None:
        container = _ExitCodes(rule.exit_codes, rule.container_name).found(pod)
        name, code = (container.name, container.exit_code) if container else ("", None)
        return f"Container {name} for pod {NAMESPACE}/{pod.name} failed with exit code {code} {where}"
    type_ = min(rule.conditions & pod.conditions)[0]
    return f"Pod {NAMESPACE}/{pod.name} has condition {type_} {where}"
