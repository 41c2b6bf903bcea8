"""What a server makes of a machine of several accounts."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.app.entrance.accounts import other_people
from holdfast.app.entrance.pythons import Pythons
from holdfast.app.settings import Settings
from holdfast.domain.access import Principal
from tests.e2e.people import ABSENT, gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.server import Server


@pytest.fixture(scope="module")
def ann() -> Iterator[pwd.struct_passwd]:
    """Make an account whose group has another number than itself, and that is in a further group."""
    if os.geteuid() != 0 or not shutil.which("useradd"):
        pytest.skip(ABSENT)
    name = f"hf-ann-{os.getpid()}"
    groups = ("--gid", "users", "--groups", "games")
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", *groups, name], check=True)
    yield pwd.getpwnam(name)
    gone(name)


@pytest.mark.parametrize(("group", "is_let"), [("users", True), ("games", True), ("mail", False)])
def test_a_python_is_tried_with_the_groups_of_the_account(ann: pwd.struct_passwd, group: str, *, is_let: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:  # that of a test is closed to others
        Path(folder).chmod(0o755)
        python = Path(folder) / "python"
        python.write_text("#!/bin/sh\nexit 0\n")
        shutil.chown(python, "root", group)
        python.chmod(0o750)
        pythons = Pythons(Settings(fluster_python=python, run_as="submitter"))
        refusal = pythons.refusal(Principal(ann.pw_name, uid=ann.pw_uid))
    assert refusal is None if is_let else f"cannot be run as account {ann.pw_uid}" in str(refusal)


def test_a_server_warns_where_calls_without_a_token_could_be_those_of_several_people(
    ann: pwd.struct_passwd, server: Server
) -> None:
    assert ann.pw_name in other_people()
    server.environ = {
        **server.environ,
        "HOLDFAST_DOORS": "fluster",
        "HOLDFAST_DOOR_ANONYMOUS": "carl",
        "HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0",
    }
    server.start().close()
    assert "every account of this machine counts as carl at the doors" in server.log.read_text()
