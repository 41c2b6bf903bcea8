"""What an API asks of the controller, by way of the store."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct


class RequestKind(StrEnum):
    """What an API asks the controller to do with workloads of any kind, which are found by their ids."""

    SUBMIT = "submit"
    """They were appended, those made of jobs together with these; take them in."""
    UPDATE = "update"
    """Make one what ``payload`` says (``compiled.codec.SetChange``, already checked)."""
    CANCEL = "cancel"
    CANCEL_UNLESS_STARTED = "cancel-unless-started"
    """Cancel jobs of which no attempt has begun; the others are left alone."""
    HOLD = "hold"
    """Stop and keep it; ``payload`` is as for ``UPDATE`` where its manifest says so."""
    RELEASE = "release"
    """Let it go on; ``payload`` as above."""
    RESTART = "restart"
    """Restart all of it or a part, which its kind reads from ``payload``."""
    DELETE = "delete"
    RETRY = "retry"
    """Have a job that has ended or waits make another attempt; ``payload`` is its specification, if that changes."""
    PREEMPT = "preempt"
    """Take the place of what runs; ``payload`` is the node where it does, if it is not to be taken elsewhere."""
    REPRIORITIZE = "reprioritize"
    """Give a job another priority, which is ``payload``."""
    CORDON = "cordon"
    """Give devices to nobody; the targets are these, as ``EXECUTOR NODE DEVICE``."""
    UNCORDON = "uncordon"
    """Give them away again."""


CANCELS = frozenset({RequestKind.CANCEL, RequestKind.CANCEL_UNLESS_STARTED})
OF_DEVICES = frozenset({RequestKind.CORDON, RequestKind.UNCORDON})
"""What is not about workloads."""


class Request(Struct, frozen=True):
    """One request to the controller, kept until the tick that acted on it commits."""

    kind: RequestKind
    targets: tuple[str, ...]
    """Ids of workloads."""
    created_at: float
    actor: str = ""
    reason: str = ""
    id: int = 0
    """Given by the store; in order of arrival."""
    payload: str = ""
    """Further arguments of its kind, as JSON."""

    @property
    def cancel_reason(self) -> str:
        """Why a job is cancelled, in words even where nobody gave any."""
        return self.reason or (f"cancelled by {self.actor}" if self.actor else "cancelled")

    @property
    def preempt_reason(self) -> str:
        """Why a job is preempted: who asked, and what they said."""
        preemptor = f"asked by {self.actor}" if self.actor else "asked for"
        return f"{preemptor}: {self.reason}" if self.reason else preemptor
