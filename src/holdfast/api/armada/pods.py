"""The names of pods."""

from __future__ import annotations

NAMESPACE = "default"


def pod_name(job_id: str, attempt: int) -> str:
    """Return what the pod of an attempt is called; attempts count from 1 (the document, "Pod Naming")."""
    name = f"armada-{job_id}-0"
    return name if attempt <= 1 else f"{name}-{attempt - 1}"
