"""The one judge of a failed run: facts, policies and history in, the decision and what it changes out.

A failure is judged alike whatever kind of work it belongs to; only the unit that restarts differs: all runs of a gang
together, or one pod's program alone. A unit remembers what its earlier failures led to: the retries it was granted,
where it was tried, and where it is kept away from. The judge reads that history, and returns it as it is after the
decision. It never waits and never acts: when the next try is due, what it costs to stop the last one, and who is told,
are the unit's own affair, because they depend on what else runs with it.

A new unit has these five fields (``Unit``), says by which rulesets it is judged, and applies the verdict. Several
rulesets are asked, in order, where someone else may still restart what a policy gave up, as Kubernetes does with
``OnFailure``: the first that grants a retry, or leaves the unit to a person, decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.domain.failure import LOST, Cause
from holdfast.domain.placement.fit import Place, Shape, ever_fits, on_nodes, tried_in_words, why_not
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import add_tried, decide, delay_s
from holdfast.domain.policy.model import Action, Decision, RetryHistory, RetrySettings
from holdfast.domain.record import Struct, evolve
from holdfast.domain.shortage import shortage_decision, shortage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Run
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
    """Returns nodes that are gone and may come back; called only for a unit that is kept off other nodes."""
    any_cause: bool = False
    """Whether it restarts after any failure, as Kubernetes does: even what can never start, or is suspected."""


class Judgement(NamedTuple):
    """What a failure is judged by, besides its facts and its unit's history."""

    ruleset: Ruleset
    draw: float = 0.0
    """In [0, 1), for random jitter."""
    suspicion: Suspicion | None = None
    """The evidence against the job, if it was lost with its node."""
    refusals: int = 0
    """How often in a row its node was too short of something to start it."""


class Unit(Protocol):
    """What restarts as one, a gang's job or one pod, with what its earlier failures led to."""

    @property
    def counters(self) -> Mapping[str, int]:
        """Retries it was granted, by ``<policy>/<rule>``."""

    @property
    def tried(self) -> tuple[str, ...]:
        """Every node on which it was tried, in order."""

    @property
    def avoid_node(self) -> str | None:
        """The node its next try avoids."""

    @property
    def avoid_devices(self) -> tuple[str, ...]:
        """The GPUs its next try avoids, each as ``<id>@<node>``."""

    @property
    def avoid_nodes(self) -> tuple[str, ...]:
        """The nodes its next try must not use."""


class Try(NamedTuple):
    """The try of a unit that failed, and what would be placed next."""

    seed: str
    """Seeds the jitter of its delay: the id of its job, or of its session."""
    number: int
    """From 1."""
    shape: Shape
    """Of the next try."""
    runs: Sequence[Run] = ()
    """All runs of the try; the nodes where they may have run count as tried."""
    counters: tuple[tuple[str, int], ...] = ()
    """Counts that others keep for it, such as the restarts of its job set."""


class History(NamedTuple):
    """What a unit remembers once its failure is judged; its fields have the unit's names."""

    counters: Mapping[str, int]
    tried: tuple[str, ...]
    avoid_node: str | None
    avoid_devices: tuple[str, ...]
    avoid_nodes: tuple[str, ...]


class RetryVerdict(NamedTuple):
    """The decision about a failure, and what its unit remembers if it goes on."""

    decision: Decision
    history: History


def judge(
    failure: Failure, unit: Unit, failed: Try, judgement: Judgement, rulesets: Sequence[Ruleset] = ()
) -> RetryVerdict:
    """Judge the failure of one try of a unit.

    Args:
        failure: What went wrong.
        unit: What restarts, as it was when it failed.
        failed: The try that failed.
        judgement: What is in force, and what speaks against the job.
        rulesets: The rulesets that are asked, in order; by default only the judgement's own.
    """
    tried, counters = tried_by(unit, failed.runs, failure), unit.counters
    history = RetryHistory(
        failed.seed,
        failed.number,
        (*counters.items(), *failed.counters),
        sum(counters.values()),
        failed.shape.request.memory,
        judgement.refusals,
        tried,
    )
    first, *others = rulesets or (judgement.ruleset,)
    decision = decide_retry(failure, history, judgement._replace(ruleset=first), failed.shape)
    for ruleset in others:
        if decision.grants_retry or decision.action is Action.HOLD:
            break
        decision = decide_retry(failure, history, judgement._replace(ruleset=ruleset), failed.shape)
    if decision.counter is not None:
        counters = {**counters, decision.counter: counters.get(decision.counter, 0) + 1}
    # A try that met a shortage never ran where it was to run, so it still avoids what it avoided before.
    changes = decision.grants_retry and decision.code is not DecisionCode.SHORTAGE
    avoids: Unit | Decision = decision if changes else unit
    return RetryVerdict(decision, History(counters, tried, avoids.avoid_node, avoids.avoid_devices, avoids.avoid_nodes))


def tried_by(unit: Unit, runs: Iterable[Run], failure: Failure | None) -> tuple[str, ...]:
    """Add the nodes of a try to those on which its unit was tried before.

    These are nodes where a program started, or could not start for another reason than a shortage.
    """
    nodes = [run.node for run in runs if run.may_have_run]
    if failure is not None and shortage_of(failure) is None:
        nodes.append(failure.node or "")
    return add_tried(unit.tried, *nodes)


def decide_retry(failure: Failure, history: RetryHistory, judgement: Judgement, shape: Shape) -> Decision:
    """Decide about the failure of any run: by policy, then by what speaks against a granted retry.

    A run that met a shortage of its node is always retried. A run that waited for an untried node fails if there is no
    such node any more.

    Args:
        failure: What went wrong.
        history: Retries granted before.
        judgement: What is in force, and what speaks against the job.
        shape: What would be placed next.
    """
    short_of = shortage_of(failure)
    if short_of is not None:
        return shortage_decision(short_of, failure.node, history.refusals)
    ruleset, suspicion = judgement.ruleset, judgement.suspicion
    if ruleset.any_cause:
        failure, suspicion = evolve(failure, cause=Cause.UNKNOWN), None
    of_cluster = ruleset.settings.resources
    local = on_nodes(shape, dict(of_cluster)) if of_cluster else shape
    waited = failure.cause is Cause.SCHEDULER_TIMEOUT and failure.node is None
    if waited and local.avoid_nodes and nothing_untried(local, ruleset.places, ruleset.away()):
        return Decision(Action.FAIL, DecisionCode.UNSCHEDULABLE, _nothing_left(shape.avoid_nodes))
    decision = decide(ruleset.policies, failure, history, ruleset.settings, draw=judgement.draw)
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
        return turned_down(decision, DecisionCode.UNSCHEDULABLE, _nothing_left(decision.avoid_nodes))
    return decision


def nothing_untried(shape: Shape, places: Sequence[Place], away: Sequence[Place]) -> bool:
    """Whether a shape is kept off nodes, and no other node, present or possibly returning, could ever take it."""
    if not shape.avoid_nodes or not places:
        return False
    anywhere = evolve(shape, avoid=None, avoid_devices=())
    return not ever_fits(anywhere, places) and not (away and ever_fits(anywhere, (*places, *away)))


def _nothing_left(tried: Collection[str]) -> str:
    return f"retry granted, but no untried node fits the job: {tried_in_words(tried)}"


def _suspected(decision: Decision, history: RetryHistory, suspicion: Suspicion) -> Decision:
    """Delay a job that seems to take its node down, or hold it if chance is ruled out."""
    if not suspicion.is_to_blame:
        away_s = max(decision.delay_s, delay_s(suspicion.absence, len(suspicion.others), seed=history.seed))
        reason = f"{decision.reason}; it {suspicion.in_words()}, and is kept away to see whether it happens again"
        return evolve(decision, delay_s=away_s, reason=reason)
    reason = f"{suspicion.in_words()}, {suspicion.evidence()}; release it if it is not to blame"
    held = turned_down(decision, DecisionCode.SUSPECTED, reason)
    return evolve(held, action=Action.HOLD)


def _that_still_fits(decision: Decision, grown: Shape, places: Sequence[Place]) -> Decision:
    """Refuse a retry whose grown request fits no node."""
    if ever_fits(grown, places):
        return decision
    free = {place.key: place.capacity for place in places}
    reason = f"retry granted, but with more memory it {why_not(grown, places, free)}"
    return turned_down(decision, DecisionCode.UNSCHEDULABLE, reason)


def turned_down(decision: Decision, code: DecisionCode, reason: str) -> Decision:
    """Turn a granted retry into a failure."""
    ended = evolve(decision, action=Action.FAIL, code=code, reason=reason, counter=None, delay_s=0.0)
    return evolve(ended, avoid_node=None, avoid_devices=(), avoid_nodes=(), memory=None)
