"""A group that the machine has not is said where it gets rights, and nothing is lost: it may come."""

from __future__ import annotations

import json

import pytest

from holdfast.domain.access.grants import Access, Permission, Right
from holdfast.domain.access.people import Role
from holdfast.service.naming import unknown_groups_in_permissions, unknown_groups_in_roles
from tests.e2e.test_cli_shell import Shell, shell

__all__ = ["shell"]
NONE = "hf-no-such-group"
QUEUE = {
    "apiVersion": "holdfast.dev/v1",
    "kind": "Queue",
    "metadata": {"name": "gpu"},
    "spec": {"permissions": [{"subjects": ["user:root", f"group:{NONE}"], "verbs": ["submit"]}]},
}


def test_groups_that_are_not_there_are_named_with_their_place() -> None:
    subjects = ("user:ann", "group:ml", "group:none", "group:oidc:none")
    access = Access(((Role.ADMIN, ()), (Role.USER, subjects)))
    [strange] = unknown_groups_in_roles(access, {"ml"}.__contains__)
    assert (strange.path, strange.message) == ("access.user[2]", "there is no group 'none' on the server's machine")
    [strange] = unknown_groups_in_permissions(
        (Permission((), ()), Permission(subjects, (Right.WATCH,))), {"ml"}.__contains__
    )
    assert strange.path == "spec.permissions[1].subjects[2]"
    assert unknown_groups_in_roles(Access(), {"ml"}.__contains__) == []


@pytest.mark.slow
def test_a_role_of_a_group_that_is_not_there_is_given_and_warned_of(shell: Shell) -> None:
    said = shell.run("update", "settings", "--access", f"operator=group:{NONE},group:root")
    assert (said.code, f"group:{NONE}, group:root" in said.out) == (0, True), said
    assert f"warning: access.operator[0]: there is no group '{NONE}' on the server's machine" in said.err
    assert "group:root" not in said.err
    again = shell.run("update", "settings", "--global-max-retries", "3", "--dry-run")
    assert (again.code, "warning: access.operator[0]" in again.err) == (0, True), again
    assert "warnings" not in again.out
    found = shell.run("get", "settings", "-o", "json").json
    assert found["access"] == {"operator": [f"group:{NONE}", "group:root"]}


@pytest.mark.slow
def test_a_queue_of_a_group_that_is_not_there_is_made_and_warned_of(shell: Shell) -> None:
    (shell.folder / "queue.json").write_text(json.dumps(QUEUE))
    for words in (("create", "--dry-run"), ("create",), ("apply",)):
        said = shell.run(*words, "-f", "queue.json")
        assert said.code == 0, said
        assert f"subjects[1] (line 1): there is no group '{NONE}' on the server's machine" in said.err
