"""What capacity a run asks for and a place offers."""

from __future__ import annotations

from holdfast.domain.record import Struct

Amounts = tuple[tuple[str, int], ...]
"""Thousandths by name, in order of name."""


class Resources(Struct, frozen=True, order=True):
    """An amount of capacity, requested by one run or offered by one node."""

    cpu_m: int = 1000
    """Millicores."""
    memory: int = 0
    """Bytes; as a request 0 means no limit and none reserved."""
    gpu: int = 0
    """Whole GPUs."""
    share_m: int = 0
    """Thousandths of one more GPU; a request for a share of one has no whole ones."""
    named: Amounts = ()
    """Whatever else is counted, by name and in order of it, in thousandths: ``(("licence/matlab", 1000),)``."""

    @property
    def gpus(self) -> float:
        """GPUs with shares of them; exact in thousandths."""
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
        """Return how much there is of what is counted by a name, in thousandths."""
        for key, amount in self.named:
            if key == name:
                return amount
        return 0

    def beside(self, request: Resources) -> Resources:
        """Return what is left beside a request; nothing of GPUs if it wants any, as they may not be alike."""
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
        """Sum, per dimension."""
        return Resources(
            self.cpu_m + other.cpu_m,
            self.memory + other.memory,
            self.gpu + other.gpu,
            self.share_m + other.share_m,
            _sum(self.named, other.named, 1) if self.named or other.named else (),
        )

    def __sub__(self, other: Resources) -> Resources:
        """Difference, per dimension; may be negative when a node shrank under its load."""
        return Resources(
            self.cpu_m - other.cpu_m,
            self.memory - other.memory,
            self.gpu - other.gpu,
            self.share_m - other.share_m,
            _sum(self.named, other.named, -1) if self.named or other.named else (),
        )


def _sum(amounts: Amounts, other: Amounts, sign: int) -> Amounts:
    if len(amounts) == len(other) == 1 and amounts[0][0] == other[0][0]:
        # Most pods and nodes have nothing by name but the number of pods.
        (name, before), (_, amount) = amounts[0], other[0]
        after = before + sign * amount
        return ((name, after),) if after else ()
    total = dict(amounts)
    for name, amount in other:
        total[name] = total.get(name, 0) + sign * amount
    return tuple(sorted((name, amount) for name, amount in total.items() if amount))


PODS = "pods"
"""Counts the pods of job sets and Kubernetes Jobs, whatever else they request: a node takes only so many at a time."""
DEFAULT_MAX_PODS = 110
"""What a node takes that does not say how many: the kubelet's ``maxPods``."""
ONE_POD = Resources(0, named=((PODS, 1000),))
UNLIMITED = Resources(10**12, 1 << 60, 10**9, named=((PODS, 10**12),))
"""What a place offers that takes whatever comes, because an engine behind it has a queue of its own."""


def with_max_pods(capacity: Resources) -> Resources:
    """Return a node's capacity with how many pods it takes, the default unless it says that itself."""
    if any(name == PODS for name, _ in capacity.named):
        return capacity
    return capacity + Resources(0, named=((PODS, DEFAULT_MAX_PODS * 1000),))
