"""A server killed around each of twenty decisions about job sets: every restart happens exactly once, and counts once.

One set restarts its jobs one by one as their programs have gone, the other only when all have, so that a server killed
as soon as its decision is committed has certainly carried it out no further than telling programs to stop.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.e2e.jobset_stage import OVER, PATIENCE_S, STOPPED, Stage, group, job_spec, jobset, program
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.jobset_stage import Ledger

pytestmark = pytest.mark.slow  # ten deaths of a server around programs that start again

SEED = 20
KILLS = 10
"""Of each set."""
LAST = KILLS + 1
WHOLE = 6
"""Programs of each attempt: two jobs of three."""
AROUND_S = 0.2
"""From when the failing program is told to fail to when a random kill comes, at most."""
SETTLES_S = 0.05
"""After a kill: by then what the dead server began is there."""
LINGER_S = 0.4
"""How long the other job takes to stop; with ``BlockingRecreate`` no program of the next attempt starts before."""


class Restarting:
    """One job set that is to restart ten times, and the ledger of its programs."""

    def __init__(self, stage: Stage, name: str, strategy: str, linger_s: float) -> None:
        self.stage = stage
        self.name = name
        self.strategy = strategy
        self.linger_s = linger_s
        self.ledger: Ledger = stage.ledger()

    def create(self) -> None:
        plan = {
            f"*@{LAST}": "ok",
            "train/0/1@*": f'meet {WHOLE}; await "fail$HOLDFAST_ATTEMPT"; leave 1',
            "train/1/*": f"trap 'kill $! 2>/dev/null; sleep {self.linger_s}; leave 143' TERM; stay",
            "*": "stay",
        }
        jobs = group("train", program(self.ledger, plan), replicas=2, pods=3)
        policy = {"maxRestarts": KILLS, "restartStrategy": self.strategy}
        with self.stage.client() as api:
            api.create_job_set(jobset(self.name, jobs, failurePolicy=policy))

    def begun(self, attempt: int) -> int:
        return sum(attempt in numbers for numbers in self.ledger.started().values())

    def check(self) -> None:
        with self.stage.client() as self.stage.api:
            view = self.stage.ended(self.name)
            decisions = self.stage.decisions(self.name)
            attempts = [self.stage.api.attempts(job.name) for job in view.children]
        every = list(range(1, LAST + 1))
        assert (view.terminal, view.restarts, view.restarts_counted) == ("Completed", KILLS, KILLS)
        assert decisions == [("RestartJobSet", True)] * KILLS
        assert [[attempt.number for attempt in each] for each in attempts] == [every] * 2
        assert self.ledger.started() == {f"train/{job}/{rank}": every for job in range(2) for rank in range(3)}
        assert all(self.ledger.ends(number) == Counter({1: 1, STOPPED: WHOLE - 1}) for number in every[:-1])
        self.ledger.check()
        if self.strategy == "BlockingRecreate":
            self.ledger.check_generations()


class Story:
    """Servers that come and go."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.dice = random.Random(SEED)  # noqa: S311 - to be repeatable
        self.pause = threading.Event()
        self.database = sqlite3.connect(f"file:{stage.data}/holdfast.db?mode=ro", uri=True)

    def decided(self, one: Restarting) -> int:
        """Count a set's decisions that are committed."""
        query = (
            "SELECT count(*) FROM set_log JOIN workloads ON id = set_id WHERE set_log.kind = 'decision' AND name = ?"
        )
        return int(self.database.execute(query, (one.name,)).fetchone()[0])

    def kill(self, one: Restarting, attempt: int, *, at_random: bool = False) -> bool:
        """Kill the server around the decision about an attempt, and start the next.

        Returns:
            Whether the decision was there and no program of the next attempt.
        """
        wait_until(lambda: one.begun(attempt) == WHOLE, f"all programs of attempt {attempt}", within_s=PATIENCE_S)
        one.ledger.say(f"fail{attempt}")
        if at_random:
            self.pause.wait(self.dice.uniform(0.0, AROUND_S))
        else:
            self.watch(one, attempt)
        self.stage.end()
        self.pause.wait(SETTLES_S)
        between = self.decided(one) == attempt and not one.begun(attempt + 1)
        self.stage.spawn()
        return between

    def watch(self, one: Restarting, attempt: int) -> None:
        """Look for a decision without a pause: the next thing its server does is to carry it out."""
        deadline = time.monotonic() + PATIENCE_S
        while self.decided(one) < attempt:
            assert time.monotonic() < deadline, f"attempt {attempt} was never judged"


def test_twenty_kills_between_decision_and_action_restart_sets_exactly_once_each(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    eager = Restarting(stage, "eager", "Recreate", 0.05)
    patient = Restarting(stage, "patient", "BlockingRecreate", LINGER_S)
    try:
        stage.spawn()
        wait_until(stage.serves, "a server that serves")
        story = Story(stage)
        eager.create()
        for attempt in range(1, LAST):
            story.kill(eager, attempt, at_random=attempt % 2 == 0)
        wait_until(stage.serves, "a server that serves")
        patient.create()
        assert all(story.kill(patient, attempt) for attempt in range(1, LAST))
        wait_until(stage.serves, "a server that is left alone")
        eager.check()
        patient.check()
        story.database.close()
    finally:
        stage.clean_up()


AGAIN = f"""n=$(grep -c "^start 0 $me " "$ledger"); [ "$n" = {LAST} ] && ok"""
TOGETHER = f"""until [ "$(grep -c ^start "$ledger")" -ge $(({WHOLE} * n)) ]; do sleep 0.02; done"""
IN_PLACE = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed"}


def test_ten_kills_around_programs_that_start_again_in_their_pods_count_each_once(tmp_path: Path) -> None:
    """Of a set that restarts in place, and of a Job whose programs do one by one, with no restart to spare."""
    stage = Stage(tmp_path)
    dice, pause = random.Random(SEED), threading.Event()  # noqa: S311 - to be repeatable
    gang, lone = stage.ledger(), stage.ledger()
    fails = f'{AGAIN}; {TOGETHER}; await "fail$n"; leave 1'
    jobs = group("train", program(gang, {"*/0/1@*": fails, "*": f"{AGAIN}; stay"}), replicas=2, pods=3, job=IN_PLACE)
    policy = {"maxRestarts": KILLS, "restartStrategy": "InPlaceRestart"}
    again = job_spec(program(lone, {"*": f'{AGAIN}; await "fail$n"; leave 1'}), restart="OnFailure")
    plain = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}}
    try:
        stage.spawn()
        wait_until(stage.serves, "a server that serves")
        with stage.client() as api:
            api.create_job_set(jobset("train", jobs, failurePolicy=policy))
            api.submit({**plain, "spec": {**again, "backoffLimit": LAST}})
        for number in range(1, LAST):
            gang.wait_for(WHOLE * number)
            lone.wait_for(number)
            gang.say(f"fail{number}")
            lone.say(f"fail{number}")
            pause.wait(dice.uniform(0.0, AROUND_S))
            stage.end()
            stage.spawn()
        wait_until(stage.serves, "a server that is left alone")
        with stage.client() as stage.api:
            view = stage.ended("train")
            wait_until(lambda: stage.api.job("plain").state in OVER, "the end of the Job")
            job = stage.api.job("plain")
    finally:
        stage.clean_up()
    assert (view.terminal, job.state) == ("Completed", "Succeeded"), (view.message, job.reason)
    assert gang.started() == {f"train/{job}/{rank}": [1] * LAST for job in range(2) for rank in range(3)}
    assert lone.started() == {"//0": [1] * LAST}
    gang.check()
    lone.check()
