"""What holds for every job set, whatever its policies are and however its jobs end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.policy.model import Backoff, SetAction, SetRule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import Child, ChildPhase, CreateChild, DeleteChild
from holdfast.domain.workloads.jobset.children import is_previous
from holdfast.domain.workloads.jobset.model import (
    DependencyStatus,
    DependsOn,
    FailurePolicy,
    JobSetSpec,
    Operator,
    ReplicatedJob,
    RestartStrategy,
    StartupOrder,
    SuccessPolicy,
)
from holdfast.domain.workloads.jobset.reconcile import ReconcileInput, converge
from holdfast.domain.workloads.jobset.state import JobSetState, SetDecision
from holdfast.domain.workloads.kubejob.model import KubeJobSpec

UNCOUNTED = {
    SetAction.RESTART_JOB_SET_UNCOUNTED,
    SetAction.RESTART_GROUP_UNCOUNTED,
    SetAction.RESTART_JOB_UNCOUNTED,
}
COUNTED = {SetAction.RESTART_JOB_SET, SetAction.RESTART_GROUP, SetAction.RESTART_JOB}
WHOLE_SET = {SetAction.RESTART_JOB_SET, SetAction.RESTART_JOB_SET_UNCOUNTED}
NAMES = ("a", "b", "c")
REASONS = ("BackoffLimitExceeded", "PodFailurePolicy")
MOST_FAILURES = 12
"""In all of one set; afterwards its jobs succeed, so that uncounted restarts come to an end."""

RULES = st.builds(
    SetRule,
    st.sampled_from(SetAction),
    st.just(""),
    reasons=st.frozensets(st.sampled_from(REASONS), max_size=1),
    replicated_jobs=st.frozensets(st.sampled_from(NAMES), max_size=2),
    limit=st.none() | st.integers(0, 2),
)
POLICIES = st.builds(
    FailurePolicy,
    max_restarts=st.integers(0, 4),
    strategy=st.sampled_from([RestartStrategy.RECREATE, RestartStrategy.BLOCKING_RECREATE]),
    rules=st.lists(RULES, max_size=4).map(lambda rules: tuple(evolve(r, name=f"r{i}") for i, r in enumerate(rules))),
    backoff=st.none() | st.just(Backoff(initial_s=3.0)),
)
SUCCESS = st.builds(SuccessPolicy, st.sampled_from(Operator), st.lists(st.sampled_from(NAMES), max_size=2).map(tuple))


@st.composite
def specs(draw: st.DrawFn) -> JobSetSpec:
    """Draw a set of one to three replicated jobs, started in any way."""
    count = draw(st.integers(1, 3))
    in_order = draw(st.booleans())
    groups = []
    for place, name in enumerate(NAMES[:count]):
        earlier = st.sampled_from(NAMES[:place]) if place and not in_order else st.nothing()
        needs = st.builds(DependsOn, earlier, st.sampled_from(DependencyStatus))
        groups.append(
            ReplicatedJob(
                name=name,
                replicas=draw(st.integers(0, 3)),
                job=KubeJobSpec(parallelism=1),
                depends_on=draw(st.lists(needs, max_size=1).map(tuple)) if place and not in_order else (),
                max_restarts=draw(st.none() | st.integers(0, 2)),
            )
        )
    success = draw(SUCCESS)
    return JobSetSpec(
        name="js",
        replicated_jobs=tuple(groups),
        success=evolve(success, targets=tuple(name for name in success.targets if name in NAMES[:count])),
        failure=draw(st.none() | POLICIES),
        startup=StartupOrder.IN_ORDER if in_order else StartupOrder.ANY_ORDER,
    )


LONG_ENOUGH = 1000
GETS_ON = 7


@dataclass
class World:
    """A set whose jobs end the way a list of numbers says."""

    spec: JobSetSpec
    fates: list[int]
    state: JobSetState = field(default_factory=JobSetState)
    children: dict[str, Child] = field(default_factory=dict)
    decisions: list[SetDecision] = field(default_factory=list)
    now: float = 0.0
    failures: int = 0
    turn: int = 0

    def fate(self) -> int:
        self.turn += 1
        # Fates as many as jobs would let one job idle for ever: in the end every job gets on.
        return self.fates[self.turn % len(self.fates)] if self.turn < LONG_ENOUGH else GETS_ON

    def step(self) -> None:
        """Look at the set, do what it asks for, then let something happen to its jobs."""
        passed = converge(self.spec, self.state, list(self.children.values()), ReconcileInput(self.now))
        self.state = passed.state
        self.decisions += passed.decisions
        blocking = self.spec.failure is not None and self.spec.failure.strategy is RestartStrategy.BLOCKING_RECREATE
        for order in passed.orders:
            if isinstance(order, DeleteChild):
                self.children[order.name] = evolve(self.children[order.name], deleting_since=self.now)
            elif isinstance(order, CreateChild):
                assert order.name not in self.children
                assert not (blocking and any(is_previous(self.state, child) for child in self.children.values()))
                self.children[order.name] = Child(
                    name=order.name,
                    group=order.group,
                    index=order.index,
                    global_index=order.global_index,
                    restart=order.restart,
                    job_restart=order.job_restart,
                )
        self.now += 5.0
        if not self.children and passed.wake_at is not None:
            self.now = max(self.now, passed.wake_at)
        for child in list(self.children.values()):
            self._happen(child)

    def _happen(self, child: Child) -> None:
        fate = self.fate()
        if child.deleting_since is not None:
            if fate % 3:
                del self.children[child.name]
        elif child.phase is not ChildPhase.ACTIVE or fate % 4 == 0:
            return
        elif fate % 4 == 1 and self.failures < MOST_FAILURES:
            self.failures += 1
            reason = REASONS[fate % len(REASONS)]
            self._change(child, phase=ChildPhase.FAILED, reason=reason, failed_at=self.now)
        elif fate % 4 == 2:
            self._change(child, ready_pods=1, active_pods=1)
        else:
            self._change(child, phase=ChildPhase.SUCCEEDED)

    def _change(self, child: Child, **fields: object) -> None:
        self.children[child.name] = evolve(child, **fields)  # type: ignore[arg-type]  # the names above

    def run(self) -> None:
        for _ in range(400):
            self.step()
            if self.state.terminal:
                return


FATES = st.lists(st.integers(0, 23), min_size=7, max_size=40).filter(lambda fates: any(fate % 4 == 3 for fate in fates))


@settings(max_examples=150, deadline=None)
@given(specs(), FATES)
def test_a_set_always_ends_and_stays_ended(spec: JobSetSpec, fates: list[int]) -> None:
    world = World(spec, [*fates, 3, 7, 11])
    world.run()
    assert world.state.terminal
    ended = world.state
    world.step()
    assert (world.state.terminal, world.state.ended_at) == (ended.terminal, ended.ended_at)


@settings(max_examples=150, deadline=None)
@given(specs(), FATES)
def test_every_failure_is_judged_at_most_once(spec: JobSetSpec, fates: list[int]) -> None:
    world = World(spec, [*fates, 3])
    world.run()
    judged = Counter((decision.job, decision.attempt) for decision in world.decisions)
    assert all(times == 1 for times in judged.values())
    assert len(judged) <= world.failures


@settings(max_examples=150, deadline=None)
@given(specs(), FATES)
def test_counters_are_what_was_granted_and_never_exceed_their_limits(spec: JobSetSpec, fates: list[int]) -> None:
    world = World(spec, [*fates, 3])
    world.run()
    granted = [one for one in world.decisions if one.granted and one.action in COUNTED | UNCOUNTED]
    counted = [one for one in granted if one.action in COUNTED]
    assert world.state.counted == len(counted)
    assert world.state.restarts == sum(one.action in WHOLE_SET for one in granted)
    policy = spec.failure
    if policy is None:
        assert not granted
        return
    assert len(counted) <= policy.max_restarts
    by_rule = Counter(one.rule for one in granted)
    assert all(rule.limit is None or by_rule[rule.name] <= rule.limit for rule in policy.rules)
    for group in spec.replicated_jobs:
        assert group.max_restarts is None or world.state.blamed.get(group.name, 0) <= group.max_restarts


@settings(max_examples=100, deadline=None)
@given(specs(), FATES)
def test_a_pass_is_idempotent(spec: JobSetSpec, fates: list[int]) -> None:
    world = World(spec, [*fates, 3])
    for _ in range(6):
        world.step()
        look = ReconcileInput(world.now)
        first = converge(spec, world.state, list(world.children.values()), look)
        again = converge(spec, first.state, list(world.children.values()), look)
        assert again.decisions == ()
        assert again.events == ()
        assert again.state == first.state
        assert set(again.orders) <= set(first.orders)
