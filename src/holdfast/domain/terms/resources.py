"""The capacity that a run requests and a node offers."""

from __future__ import annotations

from holdfast.domain.record import Struct

Amounts = tuple[tuple[str, int], ...]
"""Thousandths by name, sorted by name."""


class Resources(Struct, frozen=True, order=True):
    """An amount of capacity, requested by one run or offered by one node."""

    cpu_m: int = 1000
    """Millicores."""
    memory: int = 0
    """Bytes; in a request, 0 reserves none and sets no limit."""
    gpu: int = 0
    """Whole GPUs."""
    share_m: int = 0
    """Thousandths of one more GPU; a request for a share has no whole GPUs."""
    named: Amounts = ()
    """Other resources in thousandths, sorted by name: ``(("licence/matlab", 1000),)``."""

    @property
    def gpus(self) -> float:
        """GPUs including shares; exact in thousandths."""
        return self.gpu + self.share_m / 1000

    def fits(self, free: Resources) -> bool:
        """Whether this request fits into what is free."""
        return (
            self.cpu_m <= free.cpu_m
            and self.memory <= free.memory
            and self.gpu * 1000 + self.share_m <= free.gpu * 1000 + free.share_m
            and (not self.named or all(amount <= free.amount_of(name) for name, amount in self.named))
        )

    def amount_of(self, name: str) -> int:
        """Return the amount of a named resource, in thousandths."""
        for key, amount in self.named:
            if key == name:
                return amount
        return 0

    def beside(self, request: Resources) -> Resources:
        """Return what a request leaves; no GPUs if it wants any, because they may not be equal."""
        gpus = request.gpu or request.share_m
        left = ((name, amount - request.amount_of(name)) for name, amount in self.named)
        return Resources(
            max(0, self.cpu_m - request.cpu_m),
            max(0, self.memory - request.memory),
            0 if gpus else self.gpu,
            0 if gpus else self.share_m,
            tuple([(name, amount) for name, amount in left if amount > 0]),
        )

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_m + other.cpu_m,
            self.memory + other.memory,
            self.gpu + other.gpu,
            self.share_m + other.share_m,
            _sum(self.named, other.named, 1) if self.named or other.named else (),
        )

    def __sub__(self, other: Resources) -> Resources:
        # The difference is negative if a node shrank under its load.
        return Resources(
            self.cpu_m - other.cpu_m,
            self.memory - other.memory,
            self.gpu - other.gpu,
            self.share_m - other.share_m,
            _sum(self.named, other.named, -1) if self.named or other.named else (),
        )


def _sum(amounts: Amounts, other: Amounts, sign: int) -> Amounts:
    if len(amounts) == len(other) == 1 and amounts[0][0] == other[0][0]:
        # The only named resource of most pods and nodes is the number of pods.
        (name, before), (_, amount) = amounts[0], other[0]
        after = before + sign * amount
        return ((name, after),) if after else ()
    total = dict(amounts)
    for name, amount in other:
        total[name] = total.get(name, 0) + sign * amount
    return tuple(sorted((name, amount) for name, amount in total.items() if amount))


PODS = "pods"
"""The named resource that counts the pods of job sets and Kubernetes Jobs: a node takes only so many at a time."""
DEFAULT_MAX_PODS = 110
"""The number of pods of a node that reports none: the kubelet's ``maxPods``."""
ONE_POD = Resources(0, named=((PODS, 1000),))
UNLIMITED = Resources(10**12, 1 << 60, 10**9, named=((PODS, 10**12),))
"""The capacity of a place that accepts everything, because its engine has a queue of its own."""


def with_max_pods(capacity: Resources) -> Resources:
    """Return a node's capacity with its number of pods, by default ``DEFAULT_MAX_PODS``."""
    if any(name == PODS for name, _ in capacity.named):
        return capacity
    return capacity + Resources(0, named=((PODS, DEFAULT_MAX_PODS * 1000),))
