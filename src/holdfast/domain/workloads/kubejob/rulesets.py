"""The rules of Kubernetes and JobSet about failed programs, as policies that are decided like any other.

They count what upstream counts: a Job its failed pods against ``backoffLimit``, or those of an index against
``backoffLimitPerIndex``; a set its restarts in place against ``maxRestarts``; ``OnFailure`` nothing, because its Job
counts restarts only after they have happened. A podFailurePolicy judges a failed pod as upstream does: exit codes are
looked up in app containers first, then in init containers; any failed container counts, and 0 never matches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause, Failure
from holdfast.domain.policy.compiled import CompiledRule, PolicySet, RuleIndex
from holdfast.domain.policy.matchers import ContainerSelector
from holdfast.domain.policy.model import Action, Backoff, ContainerScope, ExitCodeOperator, RetryPolicy, Rule
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.kubejob.model import PodAction, PodPhase, RestartPolicy

if TYPE_CHECKING:
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod, PodRule

FAILURE_POLICY = "podFailurePolicy"
RESTART_POLICY = "restartPolicy"
BACKOFF = "backoffLimit"
INDEX_BACKOFF = "backoffLimitPerIndex"
MAX_RESTARTS = "maxRestarts"
_NO_WAIT = Backoff(initial_s=0.0)
"""A Job has one back-off for all its pods, not one for each failure."""
NAMESPACE = "default"
"""The namespace in messages: Holdfast has none."""
_ACTIONS = {
    PodAction.COUNT: Action.RETRY,
    PodAction.IGNORE: Action.IGNORE,
    PodAction.FAIL_INDEX: Action.FAIL,
    PodAction.FAIL_JOB: Action.FAIL,
}
_REASONS = {Action.RETRY: "replaced", Action.IGNORE: "replaced, and counted against no limit", Action.FAIL: ""}


def of_job(spec: KubeJobSpec) -> PolicySet:
    """Return a Job's policies for failed pods: its rules, then its back-off limit."""
    if spec.backoff_limit_per_index is None or not spec.indexed:
        return _of_job(spec.failure_rules or (), BACKOFF, spec.backoff_limit)
    return _of_job(spec.failure_rules or (), INDEX_BACKOFF, spec.backoff_limit_per_index)


@lru_cache(maxsize=1024)
def _of_job(rules: tuple[PodRule, ...], counter: str, limit: int) -> PolicySet:
    compiled = PolicySet.compile([RetryPolicy(FAILURE_POLICY, tuple(map(_rule, rules)))])
    of_rules = tuple(
        evolve(rule, revision=None, counter=counter, limit=limit, reason=_REASONS[rule.action])
        for rule in compiled.rules
    )
    otherwise = evolve(_otherwise(counter, limit, "replaced"), position=len(rules), backoff=_NO_WAIT)
    return evolve(compiled, rules=of_rules, default=otherwise)


def _rule(rule: PodRule) -> Rule:
    codes = None if rule.exit_codes is None else evolve(rule.exit_codes, scope=ContainerScope.ANY_FAILED)
    return Rule(
        _ACTIONS[rule.action],
        rule.name,
        exit_codes=codes,
        conditions=None if codes is not None else frozenset(map("=".join, rule.conditions)),
        container_name=rule.container_name,
        include_init_containers=True,
        backoff=_NO_WAIT,
    )


def as_seen(pod: Pod) -> Failure:
    """Return what a Job's rules see of a pod: how it failed, or nothing while it is still terminating."""
    if pod.phase is not PodPhase.FAILED:
        return Failure(Cause.UNKNOWN, frozenset())
    return Failure(Cause.UNKNOWN, frozenset(map("=".join, pod.conditions)), pod.containers)


class PodVerdict(Struct, frozen=True):
    """The verdict of a podFailurePolicy about one pod."""

    action: PodAction
    rule: int | None = None
    reason: str = ""
    """The Job's reason, if it fails by this."""
    message: str = ""


def judge(spec: KubeJobSpec, pod: Pod) -> PodVerdict:
    """Judge one failed pod; one still terminating has not failed yet and counts as ``Count``."""
    index = of_job(spec).first_match(as_seen(pod)).index if spec.failure_rules else None
    if index is None or spec.failure_rules is None:
        return PodVerdict(PodAction.COUNT)
    rule = spec.failure_rules[index]
    message = f"{_found(rule, pod)} matching {rule.action} rule at index {index}"
    return PodVerdict(rule.action, index, rule.job_reason, message)


def _found(rule: PodRule, pod: Pod) -> str:
    """Describe the match in the exact words of the Job controller; rules of job sets match these texts."""
    codes = rule.exit_codes
    if codes is None:
        return f"Pod {NAMESPACE}/{pod.name} has condition {min(rule.conditions & pod.conditions)[0]}"
    failed = ContainerSelector(rule.container_name, init=True).of_containers(pod.containers)
    container = next(
        container
        for container in failed
        if (container.exit_code in codes.values) is (codes.operator is ExitCodeOperator.IN)
    )
    return f"Container {container.name} for pod {NAMESPACE}/{pod.name} failed with exit code {container.exit_code}"


def _otherwise(counter: str, limit: int | None, reason: str) -> CompiledRule:
    """Return the default: a counted retry."""
    return CompiledRule(
        policy=None,
        revision=None,
        name=None,
        index=None,
        position=0,
        action=Action.RETRY,
        counter=counter,
        reason=reason,
        limit=limit,
        backoff=_NO_WAIT,
    )


def in_place(limit: int) -> PolicySet:
    """Return the policies of a set that restarts in place, up to its limit."""
    default = _otherwise(MAX_RESTARTS, limit, "its job set restarts in place")
    return PolicySet((), default, may_ignore=False, index=RuleIndex(()))


@lru_cache(maxsize=16)
def on_failure(backoff: Backoff) -> PolicySet:
    """Return the policies of ``restartPolicy: OnFailure``: the program restarts in its pod."""
    return PolicySet.compile(
        [RetryPolicy(RESTART_POLICY, (Rule(Action.IGNORE, RestartPolicy.ON_FAILURE),), backoff=backoff)]
    )
