"""A server in the background: it outlives the command that started it, says where its log is, and can be stopped."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # servers in the background that start, stop and are examined


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell whose servers end with the test."""
    found = Shell(tmp_path)
    yield found
    found.run("down")


def address(shell: Shell) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shell.folder / "data" / "server.json").read_text())
    return found


def test_a_server_in_the_background_serves_until_it_is_told_to_stop(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ARMADA_LISTEN", "127.0.0.1:0")
    up = shell.run("up", "--daemon", "--port", "0", "--door", "armada")
    found = address(shell)
    log = shell.folder / "data" / "server.log"
    assert (up.code, up.out) == (0, "")
    assert f"holdfast is up at {found['url']}, for Armada's clients at {found['doors']['armada']}" in up.err
    assert f"log: {log}" in up.err
    assert os.getsid(found["pid"]) != found["pid"], "a leader of a session could get a terminal again"
    assert psutil.Process(found["pid"]).terminal() is None
    again = shell.run("up", "--daemon", "--port", "0")
    assert (again.code, again.out) == (5, "")
    assert f"is held by holdfast up, process {found['pid']}" in again.err
    assert address(shell) == found
    job = shell.run("run", "--detach", "--", "sleep", "1000").out.strip()
    assert shell.run("wait", job, "--for", "Running").code == 0
    down = shell.run("down")
    assert (down.code, down.err) == (0, "")
    assert down.out == f"stopped the server at {found['url']}; 1 job keeps running without it\n"
    assert not psutil.pid_exists(found["pid"]) or psutil.Process(found["pid"]).status() == psutil.STATUS_ZOMBIE
    assert shell.run("cancel", job).code == 0
    nothing = shell.run("down")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no server is running\n")
    assert log.stat().st_mode & 0o077 == 0


def test_what_keeps_a_server_from_starting_in_the_background_is_told_as_in_the_foreground(shell: Shell) -> None:
    front, back = shell.run("up", "--host", "0.0.0.0"), shell.run("up", "--daemon", "--host", "0.0.0.0")  # noqa: S104 - refused
    assert "only a loopback address is safe" in back.err
    assert (back.code, back.err) == (front.code, front.err)
    assert not (shell.folder / "data" / "server.json").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("HOLDFAST_NOTIFY_ALLOW", "nonsense"), ("HOLDFAST_TLS_CERT", "/nosuch"), ("HOLDFAST_DOORS", "nosuch")],
)
def test_a_setting_that_keeps_a_server_from_starting_in_the_background_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    front, back = shell.run("up", "--port", "0"), shell.run("up", "--daemon", "--port", "0")
    assert (back.code, back.err) == (front.code, front.err)
    assert "HOLDFAST_" in back.err
    assert "server.log" not in back.err


def test_what_a_server_warns_of_while_it_starts_in_the_background_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ARMADA_CONFIG", "/nosuch")
    up = shell.run("up", "--daemon", "--port", "0")
    assert "warning: /nosuch cannot be read: No such file or directory" in up.err
    assert "holdfast is up at" in up.err


def test_a_server_that_is_named_by_its_address_is_not_stopped(shell: Shell) -> None:
    said = Shell(shell.folder, {"HOLDFAST_URL": "http://127.0.0.1:1"}).run("down")
    assert said.code == 4
    assert "unset HOLDFAST_URL" in said.err


def test_the_doctor_finds_the_server_and_fails_when_nobody_answers(shell: Shell) -> None:
    before = shell.run("doctor", "-o", "json")
    assert {check["verdict"] for check in before.json["checks"] if check["name"] == "server"} == {"warn"}
    assert (before.code, before.json["ok"], before.err) == (0, True, "")
    assert not (shell.folder / "data").exists()
    assert shell.run("up", "--daemon", "--port", "0").code == 0
    served = shell.run("doctor")
    assert f"{address(shell)['url']}, process {address(shell)['pid']}, version" in served.out
    nobody = Shell(shell.folder, {"HOLDFAST_URL": "http://127.0.0.1:1"}).run("doctor")
    assert nobody.code == 1
    assert "fail  server" in nobody.out
