"""Finds the work that names an entry of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from holdfast.compiled.codec import load_spec
from holdfast.compiled.records import dump_json
from holdfast.storage.references import names_policy, user
from holdfast.storage.sql import tables
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.query import ACTIVE_STATES, owners

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection


def work_with_policy(connection: Connection, policy: str) -> Iterator[str]:
    """Yield what has not ended and names a retry policy itself; jobs of what was yielded are left out."""
    jobs, specs, workloads = tables.jobs.c, tables.specs.c, tables.workloads.c
    written = dump_json(policy)  # as it is in what is stored, where it may mean other things, too
    owners_named = set[str]()
    for owner in owners(connection, workloads.spec.contains(written, autoescape=True)):
        if names_policy(owner, policy):
            owners_named.add(owner.id)
            yield user(owner.noun, owner.name, owner.id)
    query = select(jobs.id, jobs.name, specs.body).join_from(tables.jobs, tables.specs)
    query = query.where(jobs.state.in_(ACTIVE_STATES), specs.body.contains(written, autoescape=True))
    query = query.where(or_(jobs.set_id.is_(None), jobs.set_id.not_in(owners_named))).order_by(jobs.seq)
    for key, name, names in sound(
        connection.execute(query), lambda row: (row.id, row.name, load_spec(row.body).retry_policies)
    ):
        if policy in names:
            yield user("job", name, key)
