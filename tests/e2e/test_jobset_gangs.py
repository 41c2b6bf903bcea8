"""How job sets with real processes restart, start in order and meet: the programs' own ledger says what ran when."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.jobset_stage import STOPPED, group, jobset, program
from tests.e2e.server import wait_until
from tests.reading import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.jobset_stage import Stage

IN_PLACE = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed"}
"""What a job needs whose programs restart in place."""
GROUPS = ("driver", "cache", "workers")
LINGER = "trap 'kill $! 2>/dev/null; await gone; leave 143' TERM; stay"
"""A program that, told to stop, waits for the test's word."""


def test_of_a_gang_of_eight_one_rank_fails_and_all_run_again_and_it_counts_once(stage: Stage) -> None:
    ledger = stage.ledger()
    command = program(ledger, {"gang/0/3@1": "meet 8; leave 7", "*@1": "stay"})
    name = stage.apply(jobset("eight", group("gang", command, pods=8), failurePolicy={"maxRestarts": 5}))
    view = stage.ended(name)
    job = stage.api.job("eight-gang-0")
    assert (view.terminal, view.restarts, view.restarts_counted) == ("Completed", 1, 1)
    assert ledger.started() == {f"gang/0/{rank}": [1, 2] for rank in range(8)}
    assert (ledger.ends(1), ledger.ends(2)) == (Counter({7: 1, STOPPED: 7}), Counter({0: 8}))
    assert [len(attempt.runs) for attempt in job.attempts] == [8, 8]
    first = {run.rank: (run.exit_code, run.ended_by) for run in job.attempts[0].runs}
    assert first.pop(3) == (7, "itself")
    assert set(first.values()) == {(STOPPED, "cascade")}
    assert stage.decisions(name) == [("RestartJobSet", True)]
    ledger.check()
    ledger.check_generations()  # it is one job, and a job's name is free once all of it has gone
    stage.delete(name)


@pytest.mark.parametrize("strategy", ["Recreate", "BlockingRecreate"])
def test_only_a_blocking_restart_waits_for_all_programs_of_the_attempt_before(stage: Stage, strategy: str) -> None:
    ledger = stage.ledger()
    plan = {"fails/0/0@1": "meet 3; leave 1", "quick/*@1": "stay", "slow/*@1": LINGER}
    command = program(ledger, plan)
    policy = {"maxRestarts": 1, "restartStrategy": strategy}
    groups = [group(each, command) for each in ("fails", "quick", "slow")]
    name = stage.apply(jobset("strategy", *groups, failurePolicy=policy))
    if strategy == "Recreate":
        wait_until(
            lambda: ledger.started().get("quick/0/0") == [1, 2], "a quick job that did not wait for the slow one"
        )
    else:
        wait_until(lambda: ledger.ends(1).total() == 2, "two jobs that have stopped")
    assert ledger.started()["slow/0/0"] == [1]
    ledger.say("gone")
    view = stage.ended(name)
    assert (view.terminal, view.restarts) == ("Completed", 1)
    assert ledger.started() == {f"{each}/0/0": [1, 2] for each in ("fails", "quick", "slow")}
    ledger.check()
    if strategy == "BlockingRecreate":
        ledger.check_generations()
    stage.delete(name)


def test_in_place_programs_restart_behind_a_barrier_and_keep_their_places_from_others(stage: Stage) -> None:
    ledger = stage.ledger()
    plan = {"pair/1/1@*": "nth 1 && await go && leave 1; await end; ok", "pair/*": "nth 1 && stay; await end; ok"}
    command = program(ledger, plan)
    policy = {"maxRestarts": 1, "restartStrategy": "InPlaceRestart"}
    pair = group("pair", command, replicas=5, pods=2, cpu="15", job=IN_PLACE)
    name = stage.apply(jobset("meeting", pair, failurePolicy=policy))
    wait_until(lambda: len(ledger.started()) == 10, "ten programs that fill ten nodes")
    greedy = stage.api.submit(
        {
            "name": "greedy",
            "command": program(ledger, {}),
            "env": {"JOB_COMPLETION_INDEX": "0", "REPLICATED_JOB_NAME": "greedy"},
            "priority": 100,
            "resources": {"cpu": 15},
        }
    )
    wait_until(lambda: stage.api.job(greedy.id).reason, "one that waits for a place, and why")
    ledger.say("go")
    wait_until(lambda: len(ledger.lines()) == 30, "ten programs that started again")
    assert stage.api.job(greedy.id).state == "Queued"
    ledger.say("end")
    view = stage.ended(name)
    assert (view.terminal, view.restarts, view.max_restarts) == ("Completed", 0, 1)
    wait_until(lambda: stage.api.job(greedy.id).state == "Succeeded", "the end of the one that waited")
    lines = ledger.lines()
    assert [line.what for line in lines[:30]] == ["start"] * 10 + ["end"] * 10 + ["start"] * 10  # a barrier, all meet
    assert Counter(line.code for line in lines[10:20]) == Counter({1: 1, STOPPED: 9})
    assert Counter(map(len, ledger.started().values())) == Counter({2: 10, 1: 1})
    ledger.check()
    stage.delete(name)


def test_in_place_restarts_are_limited_too(stage: Stage) -> None:
    ledger = stage.ledger()
    command = program(ledger, {"pair/0/1@*": "leave 1", "*": "stay"})
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    pair = group("pair", command, pods=2, job=IN_PLACE)
    name = stage.apply(jobset("hopeless", pair, failurePolicy=policy))
    view = stage.ended(name)
    assert (view.terminal, view.reason) == ("Failed", "ReachedMaxRestarts")
    assert ledger.started()["pair/0/1"] == [1, 1, 1]
    ledger.check()
    stage.delete(name)


READY = {each: {"dependsOn": [{"name": other, "status": "Ready"}]} for other, each in pairwise(GROUPS)}


@pytest.mark.parametrize(
    ("order", "depends"),
    [({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}), ({}, READY)],
    ids=["InOrder", "dependsOn Ready"],
)
def test_replicated_jobs_start_each_once_the_one_before_is_ready(
    stage: Stage, order: Mapping[str, Any], depends: Mapping[str, Mapping[str, Any]]
) -> None:
    ledger = stage.ledger()
    command = program(ledger, {"*": "await end; ok"})
    groups = [group(each, command, replicas=2, **depends.get(each, {})) for each in GROUPS]
    name = stage.apply(jobset("ordered", *groups, **order))
    wait_until(lambda: len(ledger.started()) == 6, "six programs")
    began: dict[str, list[float]] = {each: [] for each in GROUPS}

    def all_began() -> bool:
        """Read when each began; the server is told of it a little after the program has said so."""
        for each in GROUPS:
            began[each] = []
        for job in stage.api.job_set_jobs(name):
            runs = stage.api.job(job.name).attempts[0].runs
            began[job.replicated_job] += [seconds_of(run.started_at) for run in runs if run.started_at]
        return sum(map(len, began.values())) == 6

    wait_until(all_began, "six programs that the server has seen")
    assert max(began["driver"]) <= min(began["cache"]) <= max(began["cache"]) <= min(began["workers"])
    ledger.say("end")
    assert stage.ended(name).terminal == "Completed"
    stage.delete(name)


def test_what_depends_on_a_replicated_job_starts_when_that_is_complete(stage: Stage) -> None:
    ledger = stage.ledger()
    command = program(ledger, {})
    groups = [
        group("prepare", command, replicas=2),
        group("train", command, pods=2, dependsOn=[{"name": "prepare", "status": "Complete"}]),
        group("report", command, dependsOn=[{"name": "train", "status": "Complete"}]),
    ]
    name = stage.apply(jobset("chain", *groups))
    assert stage.ended(name).terminal == "Completed"
    lines = [(line.what, line.job.partition("/")[0]) for line in ledger.lines()]
    for earlier, later in (("prepare", "train"), ("train", "report")):
        last = max(place for place, line in enumerate(lines) if line == ("end", earlier))
        assert last < lines.index(("start", later))
    assert len(lines) == 10
    stage.delete(name)
