"""Path parameters that several endpoints take."""

from typing import Annotated

from fastapi import Path, Query

LONGEST_NAME = 255
MOST_ATTEMPTS = 1 << 31

Ref = Annotated[
    str, Path(max_length=LONGEST_NAME, description="A job's id, its name (the newest), or a unique prefix of its id.")
]
Name = Annotated[str, Path(max_length=LONGEST_NAME)]
AttemptNumber = Annotated[int, Path(ge=1, le=MOST_ATTEMPTS, description="From 1.")]
WhichAttempt = Annotated[int | None, Query(ge=1, le=MOST_ATTEMPTS, description="From 1; absent: the last.")]
MustExist = Annotated[bool, Query(description="Only replace; 404 when there is nothing to replace.")]
