"""Every operation as every role by the Unix socket, where the operating system says who calls: as over HTTP."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pytest

from holdfast.domain.access.people import ROLES, Role
from tests.e2e.people import machine
from tests.e2e.server import wait_until
from tests.integration.test_every_operation import CALLS, request_of, require_as_the_table_says

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.e2e.people import Person

pytestmark = pytest.mark.slow  # over HTTP it is tried each time

ASKING = """
import http.client, json, socket, sys

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(sys.argv[1])

answers = []
for method, address, body in json.load(sys.stdin):
    connection = Connection("localhost")
    connection.request(method, address, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    answers.append((answer.status, answer.read().decode()))
    connection.close()
print(json.dumps(answers))
"""
CHANGE_SETTINGS = "PUT /api/v1/settings"
Answers: TypeAlias = "dict[str, tuple[int, str]]"


def told(caller: Person, calls: Sequence[str]) -> Answers:
    """What an account is answered, which shows nothing but that it is that account."""
    asked = json.dumps([request_of(call) for call in calls])
    found = json.loads(caller.python(ASKING, str(caller.socket), text=asked))
    return dict(zip(calls, map(tuple, found), strict=True))


def has(caller: Person, role: Role) -> bool:
    """Whether an account has a role by now."""
    status, text = told(caller, [CHANGE_SETTINGS])[CHANGE_SETTINGS]
    return status == 200 if role is Role.ADMIN else f"whose role here is {role}," in text


Entries: TypeAlias = "list[dict[str, object]]"


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[dict[Role, Answers], dict[Role, tuple[Entries, Entries]]]]:
    """What one account is answered in each role, one after the other, and the audit log before and after."""
    for lab in machine():
        found, kept = {}, {}
        with lab.server.client() as root:
            for role in ROLES:
                root.put_settings({"access": {role: [f"user:{lab.ann.name}"]}})
                wait_until(partial(has, lab.ann, role), f"the role {role}")
                before = [one.model_dump() for one in root.audit()]
                found[role] = told(lab.ann, CALLS)
                kept[role] = before, [one.model_dump() for one in root.audit()]
        yield found, kept


@pytest.fixture(scope="module")
def answers(asked: tuple[dict[Role, Answers], object]) -> dict[Role, Answers]:
    return asked[0]


@pytest.mark.parametrize("role", ROLES)
def test_no_call_by_the_socket_changes_an_entry_of_the_audit_log(
    role: Role, asked: tuple[object, dict[Role, tuple[Entries, Entries]]]
) -> None:
    before, after = asked[1][role]
    assert before
    assert after[: len(before)] == before
    assert len(after) > len(before)


@pytest.mark.parametrize("call", CALLS)
def test_each_call_by_the_socket_is_refused_to_the_roles_the_table_says(
    call: str, answers: dict[Role, Answers]
) -> None:
    for role in ROLES:
        require_as_the_table_says(call, role, *answers[role][call])
