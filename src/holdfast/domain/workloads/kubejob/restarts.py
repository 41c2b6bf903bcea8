"""Whether a failed program restarts in its pod: with its job set, by a policy, or as ``restartPolicy`` says.

A policy is consulted first, then ``OnFailure``: where neither grants a retry, the pod has failed, for its Job to judge.
Nobody is asked about a program that could not be started because its node was short of something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.failure import Cause
from holdfast.domain.policy.decide import and_tried
from holdfast.domain.policy.model import Action, DecisionCode, RetryHistory
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import met
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.kubejob.observed import is_disruption
from holdfast.domain.workloads.kubejob.rulesets import MAX_RESTARTS, RESTART_POLICY, in_place, on_failure
from holdfast.domain.workloads.retry import decide_retry

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.placement.fit import Shape
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.policy.model import Backoff, Decision
    from holdfast.domain.workloads.kubejob.stored import PodRecord
    from holdfast.domain.workloads.retry import Ruleset


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
    if met(failure) is None:
        record = evolve(record, tried=and_tried(record.tried, outcome.node))
    decision = _decided(record, outcome, failure, at)
    if decision is None:
        return Restart(None, None)
    if decision.code is DecisionCode.SHORTAGE:
        return Restart(evolve(record, due=at.now + decision.delay_s if decision.delay_s else None), decision)
    if at.in_place is not None:
        moved = evolve(record, in_place=max(record.in_place, at.in_place) + 1, due=None)
        if decision.code is DecisionCode.POLICY_LIMIT:  # its set sees that it is one too many, and fails
            reason = f"all {at.max_in_place} restarts in place of its job set are used ({MAX_RESTARTS})"
            decision = evolve(decision, reason=reason)
        return Restart(moved, decision)
    restarts = record.restarts + 1
    if decision.action is Action.HOLD:
        return Restart(evolve(record, restarts=restarts, due=None, held=decision.reason), decision)
    if not decision.grants_retry:
        return Restart(None, decision)
    again = evolve(record, restarts=restarts, due=at.now + decision.delay_s)
    by_kubernetes = decision.policy == RESTART_POLICY
    return Restart(evolve(again, avoid_nodes=()) if by_kubernetes else _as_decided(again, decision), decision)


def _decided(record: PodRecord, outcome: RunOutcome, failure: Failure, at: RestartContext) -> Decision | None:
    """Ask in turn who may start it again, until one does or leaves it to a person; ``None`` where nobody is asked."""
    counters, reached = record.counters, max(record.in_place, -1 if at.in_place is None else at.in_place)
    history = RetryHistory(
        job_id=at.job_id,
        attempt=1 + record.restarts,
        counters=(*counters.items(), (MAX_RESTARTS, min(reached, at.max_in_place))),
        total=sum(counters.values()),
        memory=at.shape.request.memory,
        refusals=at.refusals,
        tried=record.tried,
    )
    decision = None
    for ruleset in _asked(outcome, at) or ((at.ruleset,) if met(failure) else ()):
        if ruleset is at.ruleset:
            decision = decide_retry(failure, history, ruleset, at.shape, draw=at.draw, suspicion=at.suspicion)
        else:  # upstream starts again whatever failed, even what can never start
            decision = decide_retry(evolve(failure, cause=Cause.UNKNOWN), history, ruleset, at.shape)
        if decision.grants_retry or decision.action is Action.HOLD:
            break
    return decision


def _asked(outcome: RunOutcome, at: RestartContext) -> tuple[Ruleset, ...]:
    if at.in_place is not None:
        uncapped = evolve(at.ruleset.settings, global_max_retries=None)  # a set's own limit counts its restarts
        return (evolve(at.ruleset, policies=in_place(at.max_in_place), settings=uncapped),)
    asked: tuple[Ruleset, ...] = (at.ruleset,) if at.has_policies else ()
    if at.restart_policy is RestartPolicy.ON_FAILURE and not is_disruption(outcome):
        asked += (evolve(at.ruleset, policies=on_failure(at.backoff)),)
    return asked


def _as_decided(record: PodRecord, decision: Decision) -> PodRecord:
    """Return a pod as its policy has it go on: counted, elsewhere, or with more memory."""
    counters = dict(record.counters)
    if decision.counter is not None:
        counters[decision.counter] = counters.get(decision.counter, 0) + 1
    return evolve(
        record,
        counters=counters,
        avoid_node=decision.avoid_node,
        avoid_devices=decision.avoid_devices,
        avoid_nodes=decision.avoid_nodes,
        memory=decision.memory or record.memory,
    )
