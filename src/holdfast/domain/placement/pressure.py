"""A machine that runs out of memory or of disk: when it counts as that, and which of its runs is evicted for it.

After the kubelet's node-pressure eviction: thresholds are hard, or soft with a time for which they must have been
passed; runs are ranked by whether they use more than they requested, then by priority, then by how much more it is;
one is evicted at a time, and only once the machine has been looked at anew after the last one is gone is there another.
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
"""From SIGTERM to SIGKILL for what is evicted at once."""
PAUSE = Backoff(initial_s=5.0, max_s=300.0, multiplier=2.0)
"""After the end of a run that was evicted, before another one is: what it had is given back by then, and where evicting
did not help again and again it is not for want of trying."""
LOOKS_AFTER = 2
"""Looks at a machine that count after such an end, or after the first of a server: one may have begun before it."""
_WORTH = 100
"""A run that uses less than one part in so many of what is missing is left alone: its end would help nobody."""
DISK_REQUEST = "ephemeral-storage"
"""The named resource by which a run requests disk."""


class Threshold(Struct, frozen=True):
    """How much there must be of something."""

    of: Shortage
    least: int = 0
    """Bytes, or files, that must be available."""
    share: float = 0.0
    """The part of the whole instead, within 0 and 1."""
    for_s: float = 0.0
    """For how long less must have been available before anything is evicted; 0 is a hard threshold."""
    reclaim: int = 0
    """How much more than that must be available, once it was passed, before it counts as kept again."""

    @property
    def hard(self) -> bool:
        """Whether what is evicted for it ends at once, and not within its own grace."""
        return self.for_s == 0.0

    def floor(self, total: int) -> int:
        """Return what must be available of a whole."""
        return self.least or int(total * self.share)


class Level(Struct, frozen=True):
    """How much of something there is."""

    of: Shortage
    available: int
    total: int
    where: str = ""
    """The control group or the directory that this is true of; empty for the machine."""


class Lack(Struct, frozen=True):
    """A threshold that is passed."""

    of: Shortage
    available: int
    total: int
    floor: int
    """What must be available."""
    hard: bool = True
    due: bool = True
    """Whether that has lasted as long as a soft threshold demands."""
    where: str = ""

    def in_words(self) -> str:
        """Say so: ``412Mi of 16Gi available, and 800Mi is the least``."""
        place = f" in {self.where}" if self.where else ""
        left, whole, least = (_amount(self.of, amount) for amount in (self.available, self.total, self.floor))
        return f"{left} of {whole} available{place}, and {least} is the least"


def _amount(of: Shortage, amount: int) -> str:
    """Write files, or bytes to a tenth of the unit that is read most easily."""
    if of is Shortage.INODES:
        return str(amount)
    unit, size = next(((unit, size) for unit, size in _UNITS if amount >= size), ("", 1))
    return f"{amount / size:.1f}".removesuffix(".0") + unit


_UNITS = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class Pressure(Struct, frozen=True):
    """What a machine lacks, and what its runs use of that."""

    look: int
    """Which look at the machine this is of, counted since its executor began."""
    lacks: tuple[Lack, ...] = ()
    """Hard ones first, memory before disk."""
    uses: Mapping[str, Mapping[Shortage, int]] = field(default_factory=dict)
    """Bytes or files, by uid of each run that runs."""


class PressureVerdict(NamedTuple):
    """What thresholds say of the levels of one look."""

    lacks: tuple[Lack, ...]
    since: Mapping[Threshold, float]
    """When each that is passed was passed first."""


_ORDER = {Shortage.MEMORY: 0, Shortage.DISK: 1, Shortage.INODES: 2}


def judge(
    thresholds: Sequence[Threshold], levels: Sequence[Level], since: Mapping[Threshold, float], now: float
) -> PressureVerdict:
    """Say which thresholds are passed.

    Args:
        thresholds: All there are.
        levels: How much of everything there is now, perhaps at several places.
        since: When each that was passed at the last look was passed first.
        now: The time of the look, on a clock that nobody sets.
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
    """Bytes; nothing where it requested nothing."""
    started_at: float = 0.0
    node: str = ""


class Eviction(NamedTuple):
    """Which run is evicted, and why."""

    victim: Candidate
    hard: bool
    reason: str
    """For people: what is lacking, how much of it was left, what the run used and had requested."""


def choose(pressure: Pressure, candidates: Iterable[Candidate]) -> Eviction | None:
    """Choose the run that is evicted next; ``None`` where nothing is due, or no run's end would help.

    Args:
        pressure: What the machine lacks, and what each run uses of that.
        candidates: The runs there that are not being stopped.
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
    """Return what orders victims, the first one first; of equals the one that has done the least work."""
    over = _used(candidate, of, pressure) - candidate.requested.get(of, 0)
    return (over <= 0, candidate.priority, -over, -candidate.started_at, candidate.uid)


def _reason(lack: Lack, victim: Candidate, pressure: Pressure) -> str:
    used, requested = _used(victim, lack.of, pressure), victim.requested.get(lack.of, 0)
    message = f"had requested {_amount(lack.of, requested)}" if requested else "had requested nothing"
    return f"node {victim.node} was low on {lack.of}: {lack.in_words()}; it used {_amount(lack.of, used)} and {message}"


class Last(NamedTuple):
    """The last eviction on a machine, as far as a server knows."""

    going: bool = False
    """Whether what was evicted has not ended yet."""
    look: int = 0
    """The look after which that was known, or with which a server began."""
    at: float = float("-inf")
    """When it was known to have ended, on a clock that nobody sets."""
    times: int = 0
    """How many were evicted one after the other, and there still was too little."""

    def chosen(self, pressure: Pressure, now: float) -> Last:
        """Return it with one more, which may have ended before it is looked for."""
        return Last(going=True, look=pressure.look, at=now, times=self.times + 1)

    def seen(self, pressure: Pressure, now: float, *, going: bool) -> Last:
        """Return it after a look, by whether anything that was evicted there has not ended."""
        return self._replace(going=going, look=pressure.look, at=now) if going or self.going else self

    def allows(self, pressure: Pressure, now: float) -> bool:
        """Whether another run may be evicted for what a look has seen."""
        pause_s = delay_s(PAUSE, max(1, self.times), seed="")
        return not self.going and pressure.look >= self.look + LOOKS_AFTER and now - self.at >= pause_s
