"""GET /jobs/{ref}/logs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Use
from holdfast.api.rest.parameters import MOST_ATTEMPTS, Ref, WhichAttempt
from holdfast.service.logs import LARGEST_PART, MOST_LINES, LogQuery
from holdfast.wire.base import API
from holdfast.wire.jobs import LogChunk

router = APIRouter(prefix=API, tags=["jobs"])

_LARGEST_OFFSET = 1 << 62


def _log_query(
    attempt: WhichAttempt = None,
    rank: Annotated[int, Query(ge=0, le=MOST_ATTEMPTS)] = 0,
    offset: Annotated[int | None, Query(ge=0, le=_LARGEST_OFFSET, description="Bytes.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PART, description="Bytes.")] = LARGEST_PART,
    tail: Annotated[
        int | None,
        Query(ge=0, le=MOST_LINES, description="The last lines of the newest run, instead of offset."),
    ] = None,
    newest: Annotated[  # noqa: FBT002 - a query parameter
        bool, Query(description="Begin no earlier than the newest of the runs that followed each other in the rank.")
    ] = False,
) -> LogQuery:
    return LogQuery(attempt=attempt, rank=rank, offset=offset, limit=limit, tail=tail, newest=newest)


@router.get("/jobs/{ref}/logs", summary="Read a run's log", response_model=LogChunk, responses=refusals(404))
def get_logs(use: Use, ref: Ref, query: Annotated[LogQuery, Depends(_log_query)]) -> Response:
    """Read a part of a log; to follow, ask again from `next_offset` until `finished`.

    A part is of one run: where runs followed each other in one rank, the next part is of the next.
    """
    part = use.logs.read(ref, query)
    return answer(
        LogChunk(
            attempt=part.attempt,
            rank=part.rank,
            offset=part.offset,
            next_offset=part.next_offset,
            text=part.text,
            finished=part.finished,
            run=part.run,
        )
    )
