"""Which interruptions take a place away, and which make a difference to what is stopped already."""

from __future__ import annotations

from holdfast.domain.lifecycle.statuses import Interruption

EVICTIONS = frozenset({Interruption.EVICT, Interruption.EVICT_NOW})
OF_PLACE = frozenset({Interruption.DRAIN, Interruption.PREEMPT, *EVICTIONS})
"""Those that take a place away; what is stopping already gives it back anyway."""


def changes_nothing(why: Interruption, before: Interruption | None, *, stopping: bool) -> bool:
    """Whether it makes no difference to what is stopped already, or is no answer to why it is.

    Args:
        why: Why it is to be stopped now.
        before: Why it was told to stop, if it was.
        stopping: Whether it is being stopped.
    """
    if before is why or (why is Interruption.RELEASE and before is not Interruption.HOLD):
        return True
    sooner = why is Interruption.EVICT_NOW and before is Interruption.EVICT
    return why in OF_PLACE and stopping and not sooner
