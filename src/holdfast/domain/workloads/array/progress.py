"""The progress of an array, and the sentence that describes it."""

from __future__ import annotations

from holdfast.domain.record import Struct
from holdfast.domain.terms.states import ArrayPhase
from holdfast.domain.workloads.array.model import Array, ArraySpec

_VERBS: dict[str, str] = {
    ArrayPhase.QUEUED: "waits",
    ArrayPhase.RUNNING: "is running",
    ArrayPhase.HELD: "is held",
    ArrayPhase.STOPPING: "is stopping",
    ArrayPhase.DELETING: "is being deleted",
}
_COUNTED = ("tasks succeeded", "tasks did not succeed")
"""Ends of reasons that only repeat the counts beside them."""


class Progress(Struct, frozen=True):
    """The progress of an array."""

    array: Array
    spec: ArraySpec
    running: int
    """The number of running tasks."""
    eta_s: float | None = None
    """When the last task would end if it took as long as those that have ended; ``None`` if unknown or over."""
    left_alone: str = ""
    """Why it is not reconciled, if it is quarantined."""

    @property
    def waiting(self) -> int:
        """The number of tasks that neither run nor have ended."""
        state = self.array.state
        over = state.succeeded + state.failed + state.cancelled
        return 0 if state.status else self.spec.total - over - self.running

    @property
    def state(self) -> str:
        """Its phase."""
        return self.array.phase(self.spec)

    @property
    def reason(self) -> str:
        """Why it is in its phase; a quarantine comes before any other reason."""
        return self.left_alone or self.array.reason(self.spec)

    @property
    def headline(self) -> str:
        """Its phase in one sentence, and the counts of its tasks in another."""
        array, state, total = self.array, self.array.state, self.spec.total
        counts = {"running": self.running, "waiting": self.waiting, "succeeded": state.succeeded}
        counts |= {"failed": state.failed, "cancelled": state.cancelled}
        summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none yet"
        tasks = f"{total} tasks rerun of {array.origins[0].name}" if array.origins else f"{total} tasks"
        if self.state == ArrayPhase.WAITING:
            return f"Array {array.name} {self.reason}. Of {tasks}: {summary}."
        why = f": {self.reason}" if self.reason and not self.reason.endswith(_COUNTED) else ""
        ended = "been cancelled" if self.state == ArrayPhase.CANCELLED else self.state.lower()
        verb = _VERBS.get(self.state, f"has {ended}")
        return f"Array {array.name} {verb}{why}. Of {tasks}: {summary}."
