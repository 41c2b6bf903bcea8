"""Jobs whose runs are watched: they limit their silence and ask for a warning, and their programs need both.

What a program does follows from its order alone, whose job is named after the world's seed, so that the checks know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import Action, RetryPolicy
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.domain.workloads.watching import CHECKPOINTED, EarlyWarning, StallLimits
from holdfast.engines.simulated.life import SimulatedRun
from tools.simulate.chance import Chance

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

WATCHED_EVERY, FIRST_WATCHED = 11, 3
"""One seed of this many has such jobs, from this one on."""
NAMED = "watched-"
_MOST_BAD_ATTEMPTS = 4


def watched_specs(seed: int) -> list[JobSpec]:
    """Draw the watched jobs of a world, if it has any."""
    if seed % WATCHED_EVERY != FIRST_WATCHED:
        return []
    chance = Chance(f"{seed}/watched")
    return [_spec(chance, f"{NAMED}{seed}-{number}") for number in range(chance.randint(2, 5))]


def _spec(chance: Chance, name: str) -> JobSpec:
    deadline_s = chance.choice((None, 8.0, 20.0))
    return JobSpec(
        name=name,
        command=("work",),
        resources=Resources(500),
        gang=chance.choice((1, 1, 2)),
        deadline_s=deadline_s,
        grace_s=chance.choice((0.0, 1.0, 5.0)),
        stall=StallLimits(chance.choice((2.0, 5.0)), chance.choice((None, 3.0))),
        warning=None if deadline_s is None else EarlyWarning(chance.choice((1.0, 4.0))),
        checkpointed_exit_code=None if deadline_s is None else CHECKPOINTED,
        inline_policies=(RetryPolicy("inline", retry_limit=8, default_action=Action.RETRY),),
    )


def watched_script(order: RunOrder) -> SimulatedRun:
    """Say what a watched program does: talk, fall silent, save when it is warned, and end well in the end."""
    chance = Chance(f"{order.job_name}/{order.uid}")
    well = RunOutcome(containers=(ContainerResult(0, reason="Completed"),))
    talks = SimulatedRun(0.0, chance.moment(0.0, 6.0), well, term_delay_s=chance.choice((0.0, 0.5, 8.0)))
    if order.attempt > _MOST_BAD_ATTEMPTS or chance.happens(0.2):
        return talks
    if order.deadline_s is None or chance.happens(0.5):
        return evolve(talks, duration_s=None, silent_after_s=chance.moment(0.0, 6.0))
    return evolve(talks, duration_s=None, saves_s=chance.choice((None, 0.2, 3.0)))
