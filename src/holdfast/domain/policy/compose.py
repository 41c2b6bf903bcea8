"""Which named policies apply to a job, and in what order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def effective_policies(queue: Sequence[str], job: Sequence[str], default: str | None) -> tuple[str, ...]:
    """Compose the names of the policies that apply to a job.

    Args:
        queue: The queue's, which always apply and come first.
        job: The job's own, which add to them and can take none away.
        default: The one that applies when neither names any.

    Returns:
        The names in order of evaluation, each once, at its first place.
    """
    names = tuple(dict.fromkeys(name for name in (*queue, *job) if name))
    if names or not default:
        return names
    return (default,)
