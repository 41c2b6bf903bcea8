"""Random jobs, and what their programs do: scripts that fail in every way there is, and succeed in the end.

A program's fate follows from the seed and its uid alone, so it does not depend on when or where it is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.domain.terms.resources import DEFAULT_MAX_PODS, PODS
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from tools.simulate.chance import Chance
from tools.simulate.policies import GIB, POLICIES, QUEUES, random_policy
from tools.simulate.watched import NAMED, watched_script

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

_MOST_BAD_ATTEMPTS = 4
_MOST_BAD_PODS = 12


def _exit(code: int, *, message: str = "", signal: int | None = None) -> RunOutcome:
    reason = "Completed" if code == 0 else "Error"
    return RunOutcome(containers=(ContainerResult(code, signal=signal, reason=reason, message=message),))


def _forced(condition: FailureCondition, by: EndedBy) -> RunOutcome:
    killed = ContainerResult(137, signal=9, reason=str(condition))
    return RunOutcome(containers=(killed,), conditions=frozenset({str(condition)}), ended_by=by)


_NOT_LAUNCHED = RunOutcome(
    conditions=frozenset({str(FailureCondition.LAUNCH_FAILED)}), started=False, message="no such file or directory"
)
_BAD_ENDS = (
    _exit(1),
    _exit(2, message="Connection refused by peer"),
    _exit(3, message="timeout"),
    _exit(139, signal=11),
    _exit(137, signal=9),
    _forced(FailureCondition.OOM_KILLED, EndedBy.MEMORY),
    _forced(FailureCondition.PREEMPTED, EndedBy.PREEMPTION),
    _forced(FailureCondition.EVICTED, EndedBy.PREEMPTION),
    _NOT_LAUNCHED,
)


def most_pods(seed: str) -> Resources:
    """Draw how many pods a node takes."""
    return Resources(0, named=((PODS, Chance(seed).choice((4, 12, DEFAULT_MAX_PODS)) * 1000),))


def random_spec(chance: Chance, number: int) -> JobSpec:
    """Draw a job."""
    gang = chance.choice((1, 1, 1, 2, 3, 4))
    inline = (random_policy(chance, "inline"),) if chance.happens(0.4) else ()
    return JobSpec(
        name=f"job{number}",
        command=("work",),
        queue=chance.choice(QUEUES),
        priority=chance.randint(0, 2),
        resources=Resources(chance.choice((500, 1000, 2000)), chance.choice((0, GIB, 2 * GIB)), 0),
        gang=gang,
        deadline_s=chance.choice((None, None, None, 4.0, 10.0)),
        total_deadline_s=chance.choice((None,) * 8 + (30.0, 90.0)),
        scheduling_timeout_s=chance.choice((None,) * 4 + (5.0, 40.0)),
        grace_s=chance.choice((0.0, 1.0, 5.0, 60.0)),
        node_selector={"zone": chance.choice("ab")} if gang == 1 and chance.happens(0.1) else {},
        retry_policies=tuple(chance.sample(POLICIES, chance.randint(0, 1))),
        inline_policies=inline,
    )


def script(seed: int, order: RunOrder) -> SimulatedRun:
    """Say what a program does."""
    if order.job_name.startswith(NAMED):
        return watched_script(order)
    bad_attempts = Chance(f"{seed}/{order.job_id}").randint(0, _MOST_BAD_ATTEMPTS)
    chance = Chance(f"{seed}/{order.uid}")
    plan = SimulatedRun(
        start_delay_s=chance.choice((0.0, 0.0, chance.moment(0.0, 2.0))),
        duration_s=chance.choice((0.0, chance.moment(0.0, 3.0), chance.moment(0.0, 20.0), chance.moment(0.0, 90.0))),
        outcome=_exit(0),
        term_delay_s=chance.choice((0.0, 0.0, chance.moment(0.0, 8.0), 40.0)),
    )
    if order.attempt > bad_attempts and order.deadline_s is not None:
        return evolve(plan, duration_s=chance.moment(0.0, 3.0))
    if order.attempt > bad_attempts or chance.happens(0.5 if order.size > 1 else 0.1):
        return plan
    if order.deadline_s is not None and chance.happens(0.3):
        return evolve(plan, duration_s=None)
    return evolve(plan, outcome=chance.choice(_BAD_ENDS))


def pod_script(seed: int, order: RunOrder) -> SimulatedRun:
    """Say what a pod's program does: however often its job and its pods run again, it ends well in the end."""
    bad_attempts = Chance(f"{seed}/{order.job_id}").randint(0, _MOST_BAD_ATTEMPTS)
    chance = Chance(f"{seed}/{order.uid}")
    plan = SimulatedRun(
        start_delay_s=chance.choice((0.0, 0.0, chance.moment(0.0, 2.0))),
        duration_s=chance.choice((0.0, chance.moment(0.0, 3.0), chance.moment(0.0, 10.0), chance.moment(0.0, 40.0))),
        outcome=_exit(0),
        term_delay_s=chance.choice((0.0, 0.0, chance.moment(0.0, 8.0), 40.0)),
    )
    if order.attempt > 2 * _MOST_BAD_ATTEMPTS:
        # However short the deadline is: a set may restart its jobs for that, and count it against nothing.
        return evolve(plan, start_delay_s=0.0, duration_s=0.0)
    _, _, dispatch = order.uid.rpartition("-")
    if order.attempt > bad_attempts or int(dispatch) > _MOST_BAD_PODS or chance.happens(0.6):
        return plan
    return evolve(plan, outcome=chance.choice(_BAD_ENDS))
