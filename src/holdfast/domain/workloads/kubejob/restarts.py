"""Whether a failed program restarts in its pod: with its job set, by a policy, or as ``restartPolicy`` says.

A policy is consulted first: one that grants no retry leaves the pod failed, for its Job to judge. Nobody is asked about
a program that could not be started because its node was short of something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.policy.decide import GLOBAL_LIMIT, delay_s
from holdfast.domain.policy.model import Action, Decision, DecisionCode, LimitUse, RetryHistory
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import met, uncounted
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.kubejob.observed import is_disruption
from holdfast.domain.workloads.retry import decide_retry

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.placement.fit import Shape
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.policy.model import Backoff
    from holdfast.domain.workloads.kubejob.stored import PodRecord
    from holdfast.domain.workloads.retry import Ruleset


MAX_RESTARTS = "maxRestarts"


class RestartContext(Struct, frozen=True, kw_only=True):
    """What one decision depends on, besides the pod and its failure."""

    job_id: str
    ruleset: Ruleset
    """The pod's own policies, and the operator's settings."""
    has_policies: bool
    restart_policy: RestartPolicy
    backoff: Backoff
    """For ``OnFailure``."""
    in_place: int | None
    """Which restart in place its set has reached; ``None`` where sets do not restart so."""
    max_in_place: int = 0
    """The last restart in place its set may make: its ``maxRestarts``, and restarts that do not count."""
    shape: Shape
    """Of the pod's next program."""
    now: float
    draw: float = 0.0
    suspicion: Suspicion | None = None
    refusals: int = 0
    """How often in a row its node was short of something when the program was to be started."""


class Restart(NamedTuple):
    """What happens to a pod whose program failed."""

    record: PodRecord | None
    """As it waits for its next program; ``None`` when the pod has failed."""
    decision: Decision | None
    """``None`` where nothing was asked: its Job decides."""


def after_failure(record: PodRecord, outcome: RunOutcome, failure: Failure, at: RestartContext) -> Restart:
    """Decide whether a pod's program starts again in it."""
    short_of = met(failure)
    if short_of is not None:
        refused = uncounted(short_of, failure.node, at.refusals)
        return Restart(evolve(record, due=at.now + refused.delay_s if refused.delay_s else None), refused)
    if at.in_place is not None:
        moved = evolve(record, in_place=max(record.in_place, at.in_place) + 1, due=None)
        if moved.in_place <= at.max_in_place:
            return Restart(moved, Decision(Action.RETRY, DecisionCode.RETRY, "its job set restarts in place"))
        # Its set sees that it is one too many, and fails.
        limits = (LimitUse(MAX_RESTARTS, at.max_in_place, at.max_in_place),)
        reason = f"all {at.max_in_place} restarts in place of its job set are used ({MAX_RESTARTS})"
        return Restart(moved, Decision(Action.FAIL, DecisionCode.POLICY_LIMIT, reason, limits=limits))
    asked = _by_policy(record, failure, at) if at.has_policies else Restart(None, None)
    if asked.record is not None or at.restart_policy is not RestartPolicy.ON_FAILURE or is_disruption(outcome):
        return asked
    cap = at.ruleset.settings.global_max_retries
    if cap == 0:
        limits = (LimitUse(GLOBAL_LIMIT, record.restarts, cap),)
        return Restart(None, Decision(Action.FAIL, DecisionCode.GLOBAL_LIMIT, f"{GLOBAL_LIMIT} is 0", limits=limits))
    restarts = record.restarts + 1
    wait_s = delay_s(at.backoff, restarts, seed=record.name)
    reason = f"restartPolicy {RestartPolicy.ON_FAILURE}: restart {restarts} in its pod"
    return Restart(
        evolve(record, restarts=restarts, due=at.now + wait_s),
        Decision(Action.RETRY, DecisionCode.RETRY, reason, delay_s=wait_s),
    )


def _by_policy(record: PodRecord, failure: Failure, at: RestartContext) -> Restart:
    history = RetryHistory(
        job_id=at.job_id,
        attempt=1 + record.restarts,
        counters=tuple(record.counters.items()),
        total=sum(record.counters.values()),
        memory=at.shape.request.memory,
    )
    decision = decide_retry(failure, history, at.ruleset, at.shape, draw=at.draw, suspicion=at.suspicion)
    if decision.action is Action.HOLD:
        return Restart(evolve(record, restarts=record.restarts + 1, due=None, held=decision.reason), decision)
    if not decision.grants_retry:
        return Restart(None, decision)
    counters = dict(record.counters)
    if decision.counter is not None:
        counters[decision.counter] = counters.get(decision.counter, 0) + 1
    again = evolve(
        record,
        restarts=record.restarts + 1,
        due=at.now + decision.delay_s,
        counters=counters,
        avoid_node=decision.avoid_node,
        avoid_devices=decision.avoid_devices,
        memory=decision.memory or record.memory,
    )
    return Restart(again, decision)
