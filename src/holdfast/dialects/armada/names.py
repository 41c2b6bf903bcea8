"""Names that Armada gives to things, and the meaning of its annotations; users' scripts rely on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_POLICY_ANNOTATION = "armadaproject.io/retry-policy"


def pod_name(job_id: str, run_index: int, *, enabled: bool) -> str:
    """Name the pod of a run: the legacy name for the first run, or for all when retry policies are off."""
    legacy = f"armada-{job_id}-0"
    return f"{legacy}-{run_index}" if enabled and run_index > 0 else legacy


def annotated_policies(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """List the policies a job adds by annotation; they add to the queue's and can remove none."""
    names = annotations.get(RETRY_POLICY_ANNOTATION, "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
