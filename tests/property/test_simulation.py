"""Two hundred worlds in virtual time, each with its own faults; what must hold is ``tools.simulate.promises``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.events.workloads import JobSetChanged, JobSetDeleted
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import SetAction
from tools.memory_store import MemoryStore
from tools.simulate.faults.reached import COLUMNS, table
from tools.simulate.run import simulate
from tools.simulate.world import SETS_EVERY, World

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 10
FEW = 10
"""Worlds that are lived in the default run; the others are in the long one."""
MANY = 200
FIRST_OF_SETS = 895
"""Worlds with job sets from this one on soon see everything; the rarest action comes about in one of seventy."""
NOWHERE = {("job", JobState.QUEUED), ("job", JobState.BACKOFF), ("job", JobState.HELD), ("attempt", "PENDING")}
ONCE_BROKEN = (
    *(200_444, 219, 201_135, 201_203, 661, 11_566, 1_100_247, 2_018_707, 2_001_144, 2_006_142),
    *(2_001_667, 2_003_011, 2_006_098, 2_009_122, 2_009_878),
)
"""Seeds that found a fault, or would have found it sooner; one stays worth replaying while its world stays the same."""


@pytest.mark.parametrize(
    "first",
    [pytest.param(first, marks=pytest.mark.slow if first > FEW else ()) for first in range(1, 201, CHUNK)],
    ids=lambda first: f"seeds {first}-{first + CHUNK - 1}",
)
def test_everything_that_was_promised_holds_in_every_world(first: int) -> None:
    for seed in range(first, first + CHUNK):
        report = simulate(seed)
        story = "\n".join([*report.last, report.message, f"replay: {report.replay}"])
        assert not report.broken, story


@pytest.mark.parametrize("seed", ONCE_BROKEN)
def test_a_world_that_once_broke_a_promise_keeps_it(seed: int) -> None:
    report = simulate(seed)
    assert not report.broken, "\n".join([*report.last, report.message])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(10_001, 10_401, MANY))
def test_everything_that_was_promised_holds_in_many_more_worlds(first: int) -> None:
    broken = {report.replay: report.message for report in map(simulate, range(first, first + MANY)) if report.broken}
    assert broken == {}


def test_worlds_see_every_kind_of_fault_and_much_work_and_no_promise_is_broken() -> None:
    faults: Counter[str] = Counter()
    reports = [simulate(seed) for seed in range(301, 341)]
    assert {report.replay: report.message for report in reports if report.broken} == {}
    for report in reports:
        faults.update(report.faults)
    expected = {
        *("controller crash", "controller crash before commit", "controller crash after commit"),
        *("controller crash in tick", "controller replaced", "executor crash", "executor crash in step"),
        *("machine lost", "node lost", "connection cut", "answers do not pass", "disk full", "write refused"),
        *("database locked", "read refused", "disk slow", "slow commit", "message lost", "message late"),
        *("message twice", "message answer lost", "message answer slow", "message answer overtaken"),
        *("controller's clock set", "executor's clock set", "controller stalls", "controller stalls in commit"),
        *("engine slow", "start hangs", "shim killed", "journal torn", "journal refuses", "commit unanswered"),
        *("node short", "watchers lost"),
    }
    assert faults.keys() == expected
    assert sum(report.decisions for report in reports) > 400
    assert sum(report.lives for report in reports) > 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_fault_strikes_everything_that_it_can_strike_and_no_promise_is_broken() -> None:
    reached: Counter[tuple[str, str, str]] = Counter()
    broken = {}
    for seed in range(20_001, 20_801):
        report = simulate(seed)
        reached.update(report.reached)
        if report.broken:
            broken[report.replay] = report.message
    assert broken == {}
    everywhere = {fault for fault, kind, state in reached if (kind, state) == ("job", JobState.QUEUED)}
    missing = [
        (fault, *column)
        for fault in {fault for fault, _, _ in reached}
        for column in COLUMNS
        # What strikes one executor strikes what is there: pending attempts, and their jobs, are nowhere.
        if (fault in everywhere or column not in NOWHERE) and not reached[fault, *column]
    ]
    assert missing == [], "\n".join(table(reached))


def test_worlds_with_job_sets_see_every_action_and_every_way_to_restart() -> None:
    missing = {str(action) for action in SetAction}
    missing |= {"spent", "suspended", "resumed", "updated", "restarted", "deleted", "in place"}
    for seed in range(FIRST_OF_SETS, FIRST_OF_SETS + 100 * SETS_EVERY, SETS_EVERY):
        missing.difference_update(what_happened_to_sets(seed))
        if not missing:
            return
    pytest.fail(f"never seen: {missing}")


def what_happened_to_sets(seed: int) -> Iterator[str]:
    """Live a world with job sets, and tell what was decided and asked for in it."""
    store = MemoryStore()
    world = World(seed, lambda: store)
    world.run()
    for set_id in world.sets.accepted:
        for decision in world.sets.decisions(set_id):
            yield str(decision.action) if decision.granted else "spent"
    for stored in store.events(limit=100_000):
        if isinstance(stored.event, JobSetChanged):
            yield stored.event.change
        elif isinstance(stored.event, JobSetDeleted):
            yield "deleted"
    yield from ("in place" for times in world.sets.in_place.values() if times)


def test_a_seed_is_the_same_world_in_every_process() -> None:
    def checksums(hash_seed: str) -> str:
        code = "from tools.simulate.run import simulate; print([simulate(seed).checksum for seed in range(401, 409)])"
        command = [sys.executable, "-c", code]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()[-1]

    assert checksums("1") == checksums("2")


def test_a_replay_ends_well_and_tells_its_last_steps() -> None:
    command = [sys.executable, "-m", "tools.simulate", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "checksum of all steps" in done.stdout
