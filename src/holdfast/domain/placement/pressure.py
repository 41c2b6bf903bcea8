"""Decides when a machine is running out of memory or disk, and which of its runs is evicted.

Modelled on the kubelet's node-pressure eviction: thresholds are hard, or soft with a time for which they must have been
passed; runs are ranked by whether they use more than they requested, then by priority, then by how much more. Runs are
evicted one at a time, the next one only after the machine has been measured again without the last one.
Source: Kubernetes, "Node-pressure Eviction"; pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of the exchange looks it up
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.policy.decide import delay_s
from holdfast.domain.policy.model import Backoff
from holdfast.domain.record import Struct, field
from holdfast.domain.shortage import Shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HARD_GRACE_S = 1.0
"""From SIGTERM to SIGKILL for a run that is evicted at once."""
PAUSE = Backoff(initial_s=5.0, max_s=300.0, multiplier=2.0)
"""Between the end of an evicted run and the next eviction: its memory is released by then. It grows while evicting does
not help."""
LOOKS_AFTER = 2
"""How many measurements must follow such an end, or a server's start: the first may have begun before it."""
_WORTH = 100
"""A run that uses less than this fraction of what is missing is not evicted: its end would not help."""
DISK_REQUEST = "ephemeral-storage"
"""The named resource by which runs request disk."""


class Threshold(Struct, frozen=True):
    """How much of a resource must be available."""

    of: Shortage
    least: int = 0
    """Bytes, or files, that must be available."""
    share: float = 0.0
    """The same as a fraction of the total, between 0 and 1."""
    for_s: float = 0.0
    """How long it must have been passed before anything is evicted; 0 is a hard threshold."""
    reclaim: int = 0
    """How much more must be available, once it was passed, until it counts as no longer passed."""

    @property
    def hard(self) -> bool:
        """Whether a run evicted for it ends at once instead of within its own grace."""
        return self.for_s == 0.0

    def floor(self, total: int) -> int:
        """Return what must be available of a total."""
        return self.least or int(total * self.share)


class Level(Struct, frozen=True):
    """How much of a resource is available."""

    of: Shortage
    available: int
    total: int
    where: str = ""
    """The control group or directory that was measured; empty for the machine."""


class Lack(Struct, frozen=True):
    """A threshold that is passed."""

    of: Shortage
    available: int
    total: int
    floor: int
    """What must be available."""
    hard: bool = True
    due: bool = True
    """Whether it has been passed for as long as a soft threshold demands."""
    where: str = ""

    def in_words(self) -> str:
        """Return ``412Mi of 16Gi available, and the minimum is 800Mi``."""
        place = f" in {self.where}" if self.where else ""
        left, whole, least = (_amount(self.of, amount) for amount in (self.available, self.total, self.floor))
        return f"{left} of {whole} available{place}, and the minimum is {least}"


def _amount(of: Shortage, amount: int) -> str:
    """Write a number of files, or bytes to a tenth of a suitable unit."""
    if of is Shortage.INODES:
        return str(amount)
    unit, size = next(((unit, size) for unit, size in _UNITS if amount >= size), ("", 1))
    return f"{amount / size:.1f}".removesuffix(".0") + unit


_UNITS = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class Pressure(Struct, frozen=True):
    """What a machine lacks, and how much of that its runs use."""

    look: int
    """The number of the measurement, counted since its executor started."""
    lacks: tuple[Lack, ...] = ()
    """Hard thresholds first, memory before disk."""
    uses: Mapping[str, Mapping[Shortage, int]] = field(default_factory=dict)
    """Bytes or files, by uid of each running run."""


class PressureVerdict(NamedTuple):
    """The thresholds that are passed at one measurement."""

    lacks: tuple[Lack, ...]
    since: Mapping[Threshold, float]
    """When each of them was first passed."""


_ORDER = {Shortage.MEMORY: 0, Shortage.DISK: 1, Shortage.INODES: 2}


def judge(
    thresholds: Sequence[Threshold], levels: Sequence[Level], since: Mapping[Threshold, float], now: float
) -> PressureVerdict:
    """Find the thresholds that are passed.

    Args:
        thresholds: All thresholds.
        levels: What is available now, perhaps of several control groups or directories.
        since: When each threshold passed at the last measurement was first passed.
        now: The time of the measurement, on a monotonic clock.
    """
    lacks, passed = [], {}
    for threshold in thresholds:
        of = [_lack(threshold, level, again=threshold in since) for level in levels if level.of is threshold.of]
        worst = min(filter(None, of), key=lambda lack: lack.available - lack.floor, default=None)
        if worst is not None:
            passed[threshold] = since.get(threshold, now)
            due = now - passed[threshold] >= threshold.for_s
            lacks.append(Lack(worst.of, worst.available, worst.total, worst.floor, threshold.hard, due, worst.where))
    lacks.sort(key=lambda lack: (not lack.due, not lack.hard, _ORDER[lack.of]))
    return PressureVerdict(tuple(lacks), passed)


def _lack(threshold: Threshold, level: Level, *, again: bool) -> Lack | None:
    floor = threshold.floor(level.total)
    if level.available >= floor + (threshold.reclaim if again else 0):
        return None
    return Lack(level.of, level.available, level.total, floor, where=level.where)


class Candidate(NamedTuple):
    """A run that could be evicted."""

    uid: str
    job_id: str
    priority: int
    requested: Mapping[Shortage, int]
    """Bytes; empty if it requested nothing."""
    started_at: float = 0.0
    node: str = ""


class Eviction(NamedTuple):
    """The run that is evicted, and why."""

    victim: Candidate
    hard: bool
    reason: str
    """For people: what the node lacked, how much was left, and what the run used and had requested."""


def choose_victim(pressure: Pressure, candidates: Iterable[Candidate]) -> Eviction | None:
    """Choose the run to evict next; ``None`` if nothing is due, or no run's end would help.

    Args:
        pressure: What the machine lacks, and how much of that each run uses.
        candidates: Its runs that are not being stopped.
    """
    running = list(candidates)
    for lack in pressure.lacks:
        if not lack.due:
            continue
        ranked = sorted(
            (_rank(candidate, lack.of, pressure), candidate)
            for candidate in running
            if _is_worth(candidate, lack, pressure)
        )
        if ranked:
            victim = ranked[0][1]
            return Eviction(victim, lack.hard, _reason(lack, victim, pressure))
    return None


def _used(candidate: Candidate, of: Shortage, pressure: Pressure) -> int:
    return pressure.uses.get(candidate.uid, {}).get(of, 0)


def _is_worth(candidate: Candidate, lack: Lack, pressure: Pressure) -> bool:
    used = _used(candidate, lack.of, pressure)
    return used > 0 and used * _WORTH >= lack.floor - lack.available


def _rank(candidate: Candidate, of: Shortage, pressure: Pressure) -> tuple[bool, int, int, float, str]:
    """Return the sort key of victims; of equals, the run that started last comes first."""
    over = _used(candidate, of, pressure) - candidate.requested.get(of, 0)
    return (over <= 0, candidate.priority, -over, -candidate.started_at, candidate.uid)


def _reason(lack: Lack, victim: Candidate, pressure: Pressure) -> str:
    used, requested = _used(victim, lack.of, pressure), victim.requested.get(lack.of, 0)
    message = f"had requested {_amount(lack.of, requested)}" if requested else "had requested nothing"
    return f"node {victim.node} was low on {lack.of}: {lack.in_words()}; it used {_amount(lack.of, used)} and {message}"


class LastEviction(NamedTuple):
    """The last eviction on a machine, as far as the server knows."""

    going: bool = False
    """Whether the evicted run has not ended yet."""
    look: int = 0
    """The measurement after which its end was known, or the server's first."""
    at: float = float("-inf")
    """When it was known to have ended, on a monotonic clock."""
    times: int = 0
    """How many evictions in a row did not help."""

    def after_eviction(self, pressure: Pressure, now: float) -> LastEviction:
        """Count one more eviction, whose run may end before it is next observed."""
        return LastEviction(going=True, look=pressure.look, at=now, times=self.times + 1)

    def after_measurement(self, pressure: Pressure, now: float, *, going: bool) -> LastEviction:
        """Update it after a measurement; ``going`` is whether any evicted run has not ended."""
        return self._replace(going=going, look=pressure.look, at=now) if going or self.going else self

    def allows(self, pressure: Pressure, now: float) -> bool:
        """Whether another run may be evicted for what was measured."""
        pause_s = delay_s(PAUSE, max(1, self.times), seed="")
        return not self.going and pressure.look >= self.look + LOOKS_AFTER and now - self.at >= pause_s
