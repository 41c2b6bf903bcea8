"""The query parameters of lists."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from holdfast.api.rest.context import Use
from holdfast.ports.store import JobFilter
from holdfast.service.api.cursors import read_number, write_cursor
from holdfast.service.api.filters import Wanted, mark_of, read_filter
from holdfast.service.query import LARGEST_PAGE

DEFAULT_PAGE = 100
LONGEST_TEXT = 255
MOST_FILTERS = 64

Word = Annotated[str | None, Query(max_length=LONGEST_TEXT)]


def job_filter(  # noqa: PLR0913 - the framework reads the query's parameters from it
    use: Use,
    *,
    state: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Any of these; case is ignored.")
    ] = None,
    queue: Word = None,
    name: Word = None,
    job_set: Annotated[
        str | None, Query(max_length=LONGEST_TEXT, description="Name or id of the job set they belong to.")
    ] = None,
    label: Annotated[
        list[str] | None, Query(max_length=MOST_FILTERS, description="Each as `key=value`; all must hold.")
    ] = None,
    quarantined: Annotated[bool, Query(description="Only jobs that are quarantined.")] = False,
) -> JobFilter:
    """Read which jobs a list is of.

    Raises:
        InvalidRequest: A state is unknown or a label is not ``key=value``; with all problems.
        NotFound: There is no such job set.
    """
    wanted = Wanted(
        states=state or (), queue=queue, name=name, job_set=job_set, labels=label or (), quarantined=quarantined
    )
    return read_filter(use.job_sets, wanted)


Where = Annotated[JobFilter, Depends(job_filter)]


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which part of a list is wanted."""

    where: JobFilter
    limit: int
    after: int

    def cursor(self, after: int | None) -> str | None:
        """Write the cursor of what follows ``after`` in this list."""
        return write_cursor(after, mark_of(self.where))


def page_query(
    where: Where, limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE, cursor: Word = None
) -> PageQuery:
    """Read which part of a list is wanted.

    Raises:
        InvalidRequest: The cursor is not one of this list's.
    """
    return PageQuery(where, limit, read_number(cursor, mark_of(where)))


Paging = Annotated[PageQuery, Depends(page_query)]
