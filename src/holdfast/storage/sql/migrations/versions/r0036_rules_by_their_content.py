"""Rules without a name are called by their content, no longer by their place.

A policy gets another revision with the new names, since decisions name the one that they were made by. What was counted
for jobs and pods by the old names is counted by the new ones. Policies that stand in a job keep their names: they are
stored with it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from alembic import op

from holdfast.compiled.codec import dump_entry, load_entry
from holdfast.domain.policy.identity import named
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import evolve
from holdfast.errors import UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
_PAGE = 1000
_POLICIES = sa.table("policies", sa.column("name"), sa.column("revision"))
_REVISIONS = sa.table("policy_revisions", sa.column("name"), sa.column("revision"), sa.column("body"))
_JOBS = sa.table("jobs", sa.column("id"), sa.column("spec"), sa.column("counters"))
_SPECS = sa.table("specs", sa.column("digest"), sa.column("body"))
_WORKLOADS = sa.table("workloads", sa.column("id"), sa.column("state"))


def upgrade() -> None:
    """Bring a database to 0036; a policy that cannot be read stays as it is."""
    connection = op.get_bind()
    renamed = dict(_renamed_policies(connection))
    if renamed:
        _rename_counters(connection, _JOBS, "counters", renamed)
        _rename_counters(connection, _WORKLOADS, "state", renamed)


def _renamed_policies(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    """Give policies their next revision; yields counters, each with what it is called from now on."""
    same = sa.and_(_POLICIES.c.name == _REVISIONS.c.name, _POLICIES.c.revision == _REVISIONS.c.revision)
    rows = connection.execute(sa.select(_REVISIONS.c.name, _REVISIONS.c.revision, _REVISIONS.c.body).where(same)).all()
    for name, number, body in rows:
        try:
            policy = load_entry(RetryPolicy, body)
        except UnreadableSpec:
            continue
        bare = [evolve(rule, name="") if rule.name == f"rule{at}" else rule for at, rule in enumerate(policy.rules)]
        rules = named(bare)
        if rules == policy.rules:
            continue
        newest = sa.select(sa.func.max(_REVISIONS.c.revision)).where(_REVISIONS.c.name == name)
        following = max(number, connection.execute(newest).scalar_one()) + 1
        fresh = dump_entry(evolve(policy, rules=rules, revision=following))
        connection.execute(_REVISIONS.insert().values(name=name, revision=following, body=fresh))
        connection.execute(_POLICIES.update().where(_POLICIES.c.name == name).values(revision=following))
        for old, new in zip(policy.rules, rules, strict=True):
            if old.name != new.name:
                yield f"{name}/{old.name}", f"{name}/{new.name}"


def _rename_counters(connection: sa.Connection, table: sa.TableClause, column: str, renamed: Mapping[str, str]) -> None:
    """Rename what the rows of a table count, page by page."""
    ids, texts, after = table.c.id, table.c[column], ""
    asked = sa.select(ids, texts, sa.literal("{}")).where(texts.like("%/rule%"))
    if table is _JOBS:
        own = _JOBS.join(_SPECS, _JOBS.c.spec == _SPECS.c.digest)
        asked = sa.select(ids, texts, _SPECS.c.body).select_from(own).where(texts.like("%/rule%"))
    change = table.update().where(ids == sa.bindparam("row")).values({column: sa.bindparam("fresh")})
    while rows := connection.execute(asked.where(ids > after).order_by(ids).limit(_PAGE)).all():
        after = rows[-1].id
        fresh = [(row.id, row[1], _fresh(row[1], _without(renamed, row[2]))) for row in rows]
        changed = [{"row": key, "fresh": new} for key, old, new in fresh if new != old]
        if changed:
            connection.execute(change, changed)


def _without(renamed: Mapping[str, str], spec: str) -> Mapping[str, str]:
    """Leave out the policies that a job has of its own."""
    try:
        own = {one["name"] for one in json.loads(spec)["spec"].get("inline_policies", ())}
    except (ValueError, KeyError, TypeError, AttributeError):
        return renamed
    return {old: new for old, new in renamed.items() if old.partition("/")[0] not in own} if own else renamed


def _fresh(text: str, renamed: Mapping[str, str]) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_with_names(found, renamed), separators=(",", ":"), ensure_ascii=False)


def _with_names(value: Any, renamed: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Rename the keys of mappings, which nothing but counters has with a slash."""
    if isinstance(value, dict):
        return {renamed.get(key, key): _with_names(one, renamed) for key, one in value.items()}
    return [_with_names(one, renamed) for one in value] if isinstance(value, list) else value
