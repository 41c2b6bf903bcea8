"""How far an array is, and the sentence that says so."""

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
"""Ends of reasons that say no more than the counts beside them."""


class Progress(Struct, frozen=True):
    """How far an array is."""

    array: Array
    spec: ArraySpec
    running: int
    """Tasks that run now."""
    eta_s: float | None = None
    """When the last would end if the others took as long as those that are over; ``None``: nobody knows, or it has."""
    left_alone: str = ""
    """Why nobody looks after it, if it is quarantined."""

    @property
    def waiting(self) -> int:
        """Count the tasks that have neither ended nor run now."""
        state = self.array.state
        over = state.succeeded + state.failed + state.cancelled
        return 0 if state.status else self.spec.total - over - self.running

    @property
    def state(self) -> str:
        """Say in a word where it is."""
        return self.array.phase(self.spec)

    @property
    def reason(self) -> str:
        """Say why it is where it is; that nobody looks after it goes before anything else."""
        return self.left_alone or self.array.reason(self.spec)

    @property
    def headline(self) -> str:
        """Say in a sentence where it is, and in another how many of its tasks are where."""
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
