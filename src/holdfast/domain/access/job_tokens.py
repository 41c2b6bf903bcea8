"""Tokens of jobs: what a run may do in the name of its job's owner, for as long as it runs."""

from __future__ import annotations

from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import Limit, Role, Scope
from holdfast.domain.access.places import WorkScope

BEGINS = "hfj_"
"""What the text of one begins with: then come the uid of the run, an underscore and the secret."""
WORK = "job"
"""The kind in a scope that is all work."""
BELOW_IT = (Right.SUBMIT, Right.WATCH, Right.LOGS, Right.CANCEL)
"""What it is for below its job."""
OF_ITSELF = (Right.WATCH, Right.LOGS)
"""What it is for of the job itself, which ends by returning."""


def limit_of(job_id: str, group: str, *, submits: bool) -> Limit:
    """Return what the token of a job keeps to.

    Args:
        job_id: The job.
        group: That of what it submits.
        submits: Whether it may submit more: not where it is about to be ended, with all there is below it.
    """
    below = tuple(right.value for right in BELOW_IT if submits or right is not Right.SUBMIT)
    own = tuple(right.value for right in OF_ITSELF)
    return Limit(
        Role.USER,
        (
            Scope(below, WORK, WorkScope(group=f"{group}/")),
            Scope(own, WORK, WorkScope(job=job_id)),
        ),
    )
