"""The audit log is only added to: no operation of any role, admins' too, changes an entry or takes one away."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

import holdfast
from holdfast.api.http.endpoints.endpoint import groups
from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import ROLES, Role
from holdfast.domain.audit import Subject
from holdfast.domain.rights import TABLE
from tests.integration.test_every_operation import CALLS, request_of, server

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

__all__ = ["server"]
SOURCE = Path(holdfast.__file__).parent


@contextmanager
def statements() -> Iterator[list[str]]:
    """Note every statement that is sent to a database meanwhile."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def _entries(admin: httpx.Client) -> list[Any]:
    found: list[Any] = admin.get("/api/v1/audit", params={"limit": 1000}).json()["items"]
    return found


@pytest.mark.slow
def test_no_operation_of_any_role_changes_or_deletes_an_entry(server: dict[Role, httpx.Client]) -> None:
    admin = server[Role.ADMIN]
    admin.post("/api/v1/jobs", json={"name": "first", "command": ["true"]})
    before = _entries(admin)
    assert before
    with statements() as sent:
        for call in CALLS:
            method, address, body = request_of(call)
            headers = {"Content-Type": "application/json"} if body else {}
            for role in ROLES:
                server[role].request(method, address, content=body, headers=headers)
    after = _entries(admin)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    of_audit = {statement.split(maxsplit=1)[0].upper() for statement in sent if " audit" in statement.lower()}
    assert of_audit == {"SELECT", "INSERT"}


def test_the_log_has_no_operation_but_reading_and_no_right_but_watching() -> None:
    about = [one for each in groups() for one in each if "audit" in one.path]
    assert [(one.method, one.path) for one in about] == [("GET", "/api/v1/audit")]
    assert set(TABLE[Subject.AUDIT]) == {Right.WATCH}


def test_only_what_appends_and_retention_touch_the_table() -> None:
    touching, given = {}, {}
    for path in sorted(SOURCE.rglob("*.py")):
        nodes, name = [*ast.walk(ast.parse(path.read_text()))], path.relative_to(SOURCE).as_posix()
        if any(isinstance(node, ast.Attribute) and ast.unparse(node) == "tables.audit" for node in nodes):
            touching[name] = {node.id for node in nodes if isinstance(node, ast.Name)} & {"update", "delete"}
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            given[name] = {ast.unparse(each.func) for each in calls if "tables.audit" in map(ast.unparse, each.args)}
    # Batches update rows of other tables.
    batches = "storage/sql/batch.py"
    assert (touching.pop(batches), given[batches]) == ({"update"}, {"_insert"})
    assert touching == {"storage/sql/logs.py": set(), "storage/sql/retention.py": {"delete"}}
