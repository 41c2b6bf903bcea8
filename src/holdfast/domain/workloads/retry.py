"""The one way to retry: classifies how a run failed, and decides what to do by the policies in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import LOST, Cause
from holdfast.domain.placement.fit import Place, Shape, ever_fits, on_nodes, tried_in_words, why_not
from holdfast.domain.policy.decide import decide, delay_s
from holdfast.domain.policy.model import Action, Decision, DecisionCode, RetryHistory, RetrySettings
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import met, uncounted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.failure import Failure
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.policy.compiled import PolicySet


class Ruleset(Struct, frozen=True):
    """Everything in force when a failure is judged."""

    policies: PolicySet
    categories: CompiledCategories
    settings: RetrySettings
    places: Sequence[Place] = ()
    """All nodes, to see whether a grown job could ever fit."""
    away: Callable[[], Sequence[Place]] = tuple
    """Finds nodes that are gone and may come back; asked only about what is kept off others."""


def decide_retry(
    failure: Failure,
    history: RetryHistory,
    ruleset: Ruleset,
    shape: Shape,
    *,
    draw: float = 0.0,
    suspicion: Suspicion | None = None,
) -> Decision:
    """Decide about the failure of any run: by policy, then by what speaks against a retry that was granted.

    A run that met a shortage of its node is retried whatever they say; one that waits for a node on which it was not
    tried, of which there is none any more, has had its retry.

    Args:
        failure: What went wrong.
        history: Retries granted before.
        ruleset: What is in force.
        shape: What would be placed next.
        draw: In [0, 1), for random jitter.
        suspicion: The evidence against the job, if the run was lost with its place.
    """
    short_of = None if failure.started else met(failure)
    if short_of is not None:
        return uncounted(short_of, failure.node, history.refusals)
    of_cluster = ruleset.settings.resources
    local = on_nodes(shape, dict(of_cluster)) if of_cluster else shape
    waited = failure.cause is Cause.SCHEDULER_TIMEOUT and failure.node is None
    if waited and local.avoid_nodes and nothing_untried(local, ruleset.places, ruleset.away()):
        return Decision(Action.FAIL, DecisionCode.UNSCHEDULABLE, _nothing_left(shape.avoid_nodes))
    decision = decide(ruleset.policies, failure, history, ruleset.settings, draw=draw)
    if suspicion is not None and decision.grants_retry and failure.conditions & LOST:
        decision = _suspected(decision, history, suspicion)
    if not decision.grants_retry or not ruleset.places:
        return decision
    anywhere = evolve(local, avoid=None, avoid_devices=(), avoid_nodes=frozenset())
    if decision.memory is not None:
        anywhere = evolve(anywhere, request=evolve(local.request, memory=decision.memory))
        decision = _that_still_fits(decision, anywhere, ruleset.places)
    anywhere = evolve(anywhere, avoid_nodes=frozenset(decision.avoid_nodes))
    if anywhere.avoid_nodes and nothing_untried(anywhere, ruleset.places, ruleset.away()):
        return refused(decision, DecisionCode.UNSCHEDULABLE, _nothing_left(decision.avoid_nodes))
    return decision


def nothing_untried(shape: Shape, places: Sequence[Place], away: Sequence[Place]) -> bool:
    """Whether a shape is kept off nodes, and no other that there is, or that may come back, could ever take it."""
    if not shape.avoid_nodes or not places:
        return False
    anywhere = evolve(shape, avoid=None, avoid_devices=())
    return not ever_fits(anywhere, places) and not (away and ever_fits(anywhere, (*places, *away)))


def _nothing_left(tried: Collection[str]) -> str:
    return f"retry granted, but no untried node fits the job: {tried_in_words(tried)}"


def _suspected(decision: Decision, history: RetryHistory, suspicion: Suspicion) -> Decision:
    """Keep a job that takes its place down away from others: for a while if that may be chance, else for good."""
    if not suspicion.is_to_blame:
        away_s = max(decision.delay_s, delay_s(suspicion.absence, len(suspicion.others), seed=history.job_id))
        reason = f"{decision.reason}; it {suspicion.in_words()}, and is kept away to see whether it happens again"
        return evolve(decision, delay_s=away_s, reason=reason)
    reason = f"{suspicion.in_words()}, {suspicion.evidence()}; release it if it is not to blame"
    held = refused(decision, DecisionCode.SUSPECTED, reason)
    return evolve(held, action=Action.HOLD)


def _that_still_fits(decision: Decision, grown: Shape, places: Sequence[Place]) -> Decision:
    """Refuse a retry whose grown request fits no existing node (semantics 4)."""
    if ever_fits(grown, places):
        return decision
    free = {place.key: place.capacity for place in places}
    reason = f"retry granted, but with more memory it {why_not(grown, places, free)}"
    return refused(decision, DecisionCode.UNSCHEDULABLE, reason)


def refused(decision: Decision, code: DecisionCode, reason: str) -> Decision:
    """Turn a retry that was granted down."""
    ended = evolve(decision, action=Action.FAIL, code=code, reason=reason, counter=None, delay_s=0.0)
    return evolve(ended, avoid_node=None, avoid_devices=(), avoid_nodes=(), memory=None)
