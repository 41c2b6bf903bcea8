"""Path parameters that several endpoints take."""

from typing import Annotated

from fastapi import Header, Path, Query

from holdfast.service.submit import LONGEST_KEY

LONGEST_NAME = 255
MOST_ATTEMPTS = 1 << 31

Ref = Annotated[
    str, Path(max_length=LONGEST_NAME, description="A job's id, its name (the newest), or a unique prefix of its id.")
]
Name = Annotated[str, Path(max_length=LONGEST_NAME)]
AttemptNumber = Annotated[int, Path(ge=1, le=MOST_ATTEMPTS, description="From 1.")]
WhichAttempt = Annotated[int | None, Query(ge=1, le=MOST_ATTEMPTS, description="From 1; absent: the last.")]
MustExist = Annotated[bool, Query(description="Only replace; 404 when there is nothing to replace.")]
SetRef = Annotated[str, Path(max_length=LONGEST_NAME, description="A job set's name or its id.")]
DryRun = Annotated[bool, Query(description="Check everything and store nothing.")]
Lenient = Annotated[bool, Query(description="Accept what Kubernetes accepts in its kinds, with a warning for each.")]
Key = Annotated[str | None, Header(max_length=LONGEST_KEY, description="Sending the same again stores nothing.")]


def created(*, dry_run: bool) -> int:
    """Return the status of something created, or only checked."""
    return 200 if dry_run else 201
