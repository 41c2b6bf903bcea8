"""Conditions shared by queries: visibility, groups and prefixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, false, or_, true

from holdfast.compiled.records import storable
from holdfast.storage.sql import tables

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped
    from holdfast.domain.access.places import WorkScope

_LAST = "\U0010ffff"
_SURROGATES, _AFTER = 0xD800, 0xE000
"""There are no characters between these code points."""


def seen_by(seen: Seen, table: Table = tables.jobs) -> ColumnElement[bool]:
    """Match the jobs or workloads that a caller may know of."""
    return and_(_whose(seen, table), _where(seen, table))


def _whose(seen: Seen, table: Table) -> ColumnElement[bool]:
    if seen.everyones:
        return true()
    own = table.c.submitted_by == storable(seen.owner)
    if seen.uid is not None:
        own = and_(own, or_(table.c.submitter_uid.is_(None), table.c.submitter_uid == seen.uid))
    return or_(own, table.c.queue.in_(sorted(seen.queues))) if seen.queues else own


def _where(seen: Seen, table: Table) -> ColumnElement[bool]:
    if seen.places is None:
        return true()
    return or_(false(), *(_in_place(place, table) for place in seen.places))


def _in_place(place: WorkScope, table: Table) -> ColumnElement[bool]:
    if place.job:
        key = table.c.id if "id" in table.c else table.c.job_id  # Events have a ``job_id`` instead.
        return key == storable(place.job)
    in_queue = table.c.queue == storable(place.queue) if place.queue else true()
    group = place.grouped
    return in_queue if group is None else and_(in_queue, in_group(table.c.group_name, group))


def in_group(column: ColumnElement[str], group: Grouped) -> ColumnElement[bool]:
    """Match rows of a group, and of the groups below it if those are selected, too."""
    same = column == storable(group.name)
    if not group.below:
        return same
    return or_(same, and_(column >= storable(group.begins), column < storable(group.beyond)))


def begins_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Match texts with a prefix, as a range that the index answers."""
    begins = storable(prefix)
    kept = begins.rstrip(_LAST)
    if not kept:
        return column >= begins
    following = ord(kept[-1]) + 1
    beyond = kept[:-1] + chr(_AFTER if following == _SURROGATES else following)
    return and_(column >= begins, column < beyond)
