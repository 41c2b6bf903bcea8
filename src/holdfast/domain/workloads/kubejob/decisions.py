"""The consequence of each failed pod, as the same record that any retry leaves: the rule, the limits, the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.decide import SPENT, decide, in_short
from holdfast.domain.policy.model import Considered, DecisionCode, RetryHistory, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.judge import refused
from holdfast.domain.workloads.kubejob.model import PodAction, PodDecision
from holdfast.domain.workloads.kubejob.rulesets import BACKOFF, INDEX_BACKOFF, as_seen, of_job
from holdfast.domain.workloads.kubejob.tally import remaining_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, KubeJobState, Pod
    from holdfast.domain.workloads.kubejob.rulesets import PodVerdict
    from holdfast.domain.workloads.kubejob.tally import Tally


def decisions_about(spec: KubeJobSpec, tally: Tally, now: float, *, cap: int | None) -> Iterator[PodDecision]:
    """Say of each pod that has just failed what follows if its Job goes on; each counts for those after it.

    Args:
        spec: Of its Job.
        tally: The Job with these pods counted.
        now: The time.
        cap: ``globalMaxRetries``.
    """
    policies, settings = of_job(spec), RetrySettings(global_max_retries=cap)
    used = tally.state.failed - (len(tally.failures) - tally.ignored)
    for pod, verdict in tally.failures:
        counters = ((BACKOFF, used), (INDEX_BACKOFF, pod.index_failures))
        decision = decide(policies, as_seen(pod), RetryHistory(pod.name, counters=counters, total=used), settings)
        if decision.grants_retry:
            decision = evolve(decision, delay_s=_wait_s(spec, tally.state, pod, now))
        elif not _is_jobs_limit(decision):
            told = verdict.message if verdict.action is PodAction.FAIL_JOB else f"index {pod.index} has failed"
            decision = evolve(decision, reason=told)
        yield PodDecision(pod.name, _named(decision, spec, verdict))
        used += verdict.action is not PodAction.IGNORE


def _named(decision: Decision, spec: KubeJobSpec, verdict: PodVerdict) -> Decision:
    """Name the rule that matched, whichever limit decided in the end."""
    if decision.rule is not None or verdict.rule is None or spec.failure_rules is None:
        return decision
    rule = of_job(spec).rules[verdict.rule]
    return evolve(decision, policy=rule.policy, rule=rule.name, rule_index=rule.index)


def _wait_s(spec: KubeJobSpec, state: KubeJobState, pod: Pod, now: float) -> float:
    """Return how long a Job, or an index that is delayed by itself, still waits before it replaces a pod."""
    if spec.backoff_limit_per_index is None or pod.index is None:
        failures, last = state.backoff.failures, state.backoff.last_failure_at
    else:
        counted, ignored, last = state.index_failures.get(pod.index, (0, 0, 0.0))
        failures = counted + ignored
    return remaining_s(spec.backoff, failures, elapsed_s=now - last)


def as_it_ends(decided: Iterable[PodDecision], because: str) -> Iterator[PodDecision]:
    """Replace no pod of a Job that ends with this look."""
    for pod, decision in decided:
        if decision.grants_retry:
            yield PodDecision(pod, refused(decision, DecisionCode.FAIL_DEFAULT, because))
        else:
            yield PodDecision(pod, evolve(decision, reason=because) if _is_jobs_limit(decision) else decision)


def _is_jobs_limit(decision: Decision) -> bool:
    """Whether a limit of the whole Job was used up, which ends it."""
    return decision.code in SPENT and decision.limits[-1].name != INDEX_BACKOFF


def after_its_pod(decision: Decision, declined: Decision) -> Decision:
    """Keep with a Job's decision what was asked before it, and would not start the program again in its pod."""
    if declined.code is DecisionCode.GLOBAL_LIMIT:
        return decision  # its Job has the same limit
    asked = Considered(declined.policy or "", declined.rule or "", matched=True, because=in_short(declined))
    return evolve(decision, considered=(asked, *decision.considered))
