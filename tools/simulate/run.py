"""Runs one seed and reports what happened and how to replay it."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.storage.sql import open_store
from tools.memory_store import MemoryStore
from tools.simulate.device_world import DEVICES_EVERY, FIRST_WITH_DEVICES, DeviceWorld
from tools.simulate.promises import INVARIANTS
from tools.simulate.told_world import FIRST_TOLD, TOLD_EVERY, ToldWorld
from tools.simulate.trace import BrokenInvariant
from tools.simulate.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.ports.store import Store

ON_DISK_EVERY = 25
"""One seed of this many keeps its store in a SQLite file, closed and opened anew for each life of the controller."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one seed."""

    seed: int
    steps: int
    simulated_s: float
    checksum: int
    jobs: int
    attempts: int
    programs: int
    decisions: int
    sets: int
    set_decisions: int
    lives: int
    """Of the controller."""
    faults: Mapping[str, int] = field(default_factory=Counter)
    reached: Mapping[tuple[str, str, str], int] = field(default_factory=Counter)
    """By fault, kind and state: how often it struck while something was in that state."""
    broken: str = ""
    """The invariant that was broken, by name; empty when all held."""
    message: str = ""
    """How it was broken, and the last steps."""
    last: Sequence[str] = ()

    @property
    def replay(self) -> str:
        """The command that runs this seed again."""
        return f"./dev simulate --seed {self.seed}"


def simulate(seed: int) -> Report:
    """Run one world from beginning to end."""
    with _stores(seed) as open_one:
        world = _kind_of(seed)(seed, open_one)
        broken = message = ""
        try:
            world.run()
        except BrokenInvariant as error:
            broken, message = error.name, str(error)
        except Exception:  # noqa: BLE001 - whatever the code under test raises is a finding
            broken, message = "never-raises", f"{INVARIANTS['never-raises']} BUT\n{traceback.format_exc()}"
        finally:
            world.close()
    return Report(
        seed=seed,
        steps=world.agenda.steps,
        simulated_s=world.agenda.elapsed,
        checksum=world.trace.checksum,
        jobs=len(world.record.jobs),
        attempts=sum(len(attempts) for attempts in world.record.attempts.values()),
        programs=len(world.programs.by_uid),
        decisions=world.record.decisions,
        sets=len(world.sets.accepted),
        set_decisions=world.set_checks.decisions,
        lives=world.lives,
        faults=world.trace.faults,
        reached=world.reached.counts,
        broken=broken,
        message=message,
        last=world.trace.last(),
    )


def _kind_of(seed: int) -> type[World]:
    """Say which kind of world a seed has."""
    told, devices = seed % TOLD_EVERY == FIRST_TOLD, seed % DEVICES_EVERY == FIRST_WITH_DEVICES
    if told and devices:
        return _ToldDeviceWorld
    if devices:
        return DeviceWorld
    return ToldWorld if told else World


class _ToldDeviceWorld(DeviceWorld, ToldWorld):
    """A world with devices whose jobs have people told."""


@contextmanager
def _stores(seed: int) -> Iterator[Callable[[], Store]]:
    if seed % ON_DISK_EVERY:
        kept = MemoryStore()
        yield lambda: kept
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-sim-") as folder:
        yield lambda: open_store(Path(folder) / "holdfast.db")
