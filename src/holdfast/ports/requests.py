"""The requests that APIs send to the controller through the store."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct


class RequestKind(StrEnum):
    """The kinds of requests, about workloads of any kind by their ids."""

    SUBMIT = "submit"
    """Take in workloads that were stored, with their jobs if they have any."""
    UPDATE = "update"
    """Change a workload as ``payload`` says (``compiled.codec.SetChange``, already checked)."""
    CANCEL = "cancel"
    CANCEL_UNLESS_STARTED = "cancel-unless-started"
    """Cancel jobs without a started attempt; others are left alone."""
    HOLD = "hold"
    """Stop and keep it; ``payload`` is as for ``UPDATE`` where its manifest says so."""
    RELEASE = "release"
    """Let it go on; ``payload`` as above."""
    RESTART = "restart"
    """Restart all of it or a part, which its kind reads from ``payload``."""
    DELETE = "delete"
    RETRY = "retry"
    """Start another attempt of a job that has ended or waits; ``payload`` is its specification, if that changes."""
    PREEMPT = "preempt"
    """Preempt running jobs; ``payload`` is a node if only runs on that node are preempted."""
    REPRIORITIZE = "reprioritize"
    """Change a job's priority to ``payload``."""
    CORDON = "cordon"
    """Cordon devices; the targets are these, as ``EXECUTOR NODE DEVICE``."""
    UNCORDON = "uncordon"
    """Uncordon devices."""


CANCELS = frozenset({RequestKind.CANCEL, RequestKind.CANCEL_UNLESS_STARTED})
OF_DEVICES = frozenset({RequestKind.CORDON, RequestKind.UNCORDON})
"""The kinds that are not about workloads."""


class Request(Struct, frozen=True):
    """One request to the controller, kept until the tick that acted on it commits."""

    kind: RequestKind
    targets: tuple[str, ...]
    """Ids of workloads."""
    created_at: float
    actor: str = ""
    reason: str = ""
    id: int = 0
    """Assigned by the store, in order of arrival."""
    payload: str = ""
    """Further arguments of its kind, as JSON."""

    @property
    def cancel_reason(self) -> str:
        """The reason for cancelling a job, with a default."""
        return self.reason or (f"cancelled by {self.actor}" if self.actor else "cancelled")

    @property
    def preempt_reason(self) -> str:
        """The reason for preempting a job: who asked, and why."""
        preemptor = f"asked by {self.actor}" if self.actor else "asked for"
        return f"{preemptor}: {self.reason}" if self.reason else preemptor
