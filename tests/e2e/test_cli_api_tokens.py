"""``holdfast token``: a program on another machine is let in, keeps to its scope, and is let in no more."""

from __future__ import annotations

import json
import time

import pytest

from holdfast.app.data.datadir import DataDir
from holdfast.app.entrance import accounts
from tests.e2e.test_cli_shell import Shell, served, shell

__all__ = ["served", "shell"]
WITHIN_S = 1.0
"""How long a revoked token may open something."""


def test_a_token_opens_what_its_scope_says_until_it_is_revoked(served: Shell) -> None:
    server = DataDir(served.folder / "data").server()
    assert server is not None
    made = served.run("token", "create", "ci", "--scope", "watch@job", "--expires", "30d", "-o", "json")
    assert made.code == 0, made.err
    found = json.loads(made.out)
    assert found.keys() == {"name", "token"}
    elsewhere = {"HOLDFAST_URL": server.url, "HOLDFAST_TOKEN": found["token"], "HOLDFAST_DATA": "/nonexistent"}
    ci = Shell(served.folder, elsewhere)
    assert ci.run("get", "jobs").code == 0
    refused = ci.run("cancel", "x")
    assert (refused.code, "with this token: its scope is watch@job" in refused.err) == (4, True), refused.err
    listed = served.run("token", "list").out
    assert listed.split()[:7] == ["NAME", "USER", "ROLE", "SCOPE", "STATE", "EXPIRES", "USED"]
    assert ["ci", accounts.account().name, "admin", "watch@job", "Valid"] == listed.splitlines()[1].split()[:5]
    assert found["token"] not in listed
    assert served.run("token", "revoke", "ci").err == "token ci is revoked\n"
    until = time.monotonic() + WITHIN_S
    said = ci.run("get", "jobs")
    while said.code == 0 and time.monotonic() < until:
        said = ci.run("get", "jobs")
    assert (said.code, "token 'ci' of" in said.err, "was revoked" in said.err) == (4, True, True), said.err


def test_a_token_in_a_file_is_shown_whatever_server_is_found_and_whatever_the_environment_says(served: Shell) -> None:
    server = DataDir(served.folder / "data").server()
    assert server is not None
    kept = served.folder / "sweep.token"
    kept.touch(0o600)
    kept.write_text(served.run("token", "create", "sweep", "--scope", "watch@job:group=sweeps/").out)
    flag = ("--token-file", str(kept))
    at_address = Shell(served.folder, {**served.environ, "HOLDFAST_URL": server.url, "HOLDFAST_TOKEN": "another"})
    for by in (served, at_address):
        assert by.run(*flag, "get", "jobs").code == 0
        refused = by.run(*flag, "get", "queues")
        assert (refused.code, "its scope is watch@job:group=sweeps/" in refused.err) == (4, True), refused.err
    kept.chmod(0o640)
    refused = served.run(*flag, "get", "jobs")
    assert (refused.code, f"{kept} can be read by other users (mode 0640)" in refused.err) == (4, True), refused.err
    kept.chmod(0o600)
    kept.write_text("two words\n\n of it \x01")
    refused = served.run(*flag, "get", "jobs")
    assert (refused.code, f"--token-file: {kept} has no token" in refused.err) == (2, True), refused.err
    missing = served.run("--token-file", str(kept.with_suffix(".none")), "get", "jobs")
    assert (missing.code, "--token-file: cannot read" in missing.err) == (2, True), missing.err


def test_a_token_in_a_file_is_for_a_server_and_not_for_who_opens_the_data_directory(shell: Shell) -> None:
    kept = shell.folder / "any.token"
    kept.touch(0o600)
    kept.write_text("any")
    refused = shell.run("--token-file", str(kept), "get", "jobs")
    assert (refused.code, "--token-file: is for a server, and none is running here" in refused.err) == (2, True)


@pytest.mark.slow
def test_a_token_is_made_without_a_server_too_and_shown_once(shell: Shell) -> None:
    made = shell.run("token", "create", "later")
    assert (made.code, made.out[:4], "this is the only time it is shown" in made.err) == (0, "hft_", True), made.err
    assert made.out.strip() not in shell.run("token", "list", "-o", "json").out


def test_what_is_wrong_with_a_token_command_is_said_together(shell: Shell) -> None:
    said = shell.run("token", "revoke", "--user", "ann")
    assert said.code == 2
    assert "revoke takes only names" in said.err
    assert "revoke needs a name" in said.err
    said = shell.run("token", "create", "X", "--role", "boss", "--scope", "run@job")
    assert said.code == 2
    for path in ("name", "role", "scopes[0]"):
        assert f"- {path}: " in said.err, said.err
