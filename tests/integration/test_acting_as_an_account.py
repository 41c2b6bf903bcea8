"""What is done as an account has that account's rights, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ACTS = """
import os, pwd, sys
from holdfast.engines.process.shim.account import Account, acting

nobody = Account("nobody", pwd.getpwnam("nobody").pw_uid)
nobody.look_up()
try:
    with acting(nobody):
        print(os.geteuid() == nobody.uid, os.getegid() == nobody.gid, set(os.getgroups()) == set(nobody.groups))
        open(sys.argv[1])
except PermissionError:
    print("refused")
print(os.geteuid(), open(sys.argv[1]).read())
"""


def test_a_file_of_roots_is_closed_to_what_is_done_as_an_account_and_open_again_afterwards(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another account")
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    ran = subprocess.run([sys.executable, "-c", ACTS, str(secret)], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["True True True", "refused", "0 of root"]
