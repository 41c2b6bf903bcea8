"""The Python that runs the pickled calls of doors' clients, and whether it can."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.settings import Settings
    from holdfast.domain.access import Principal

RUNNER = Path(__file__).parents[2] / "sdk" / "calls" / "entrypoint.py"
_KNOWN_S, _LIMIT_S = 60.0, 20.0
_LONGEST = 300


class Pythons:
    """Checks the configured Python, at most once a minute for each account that programs run as."""

    def __init__(self, settings: Settings) -> None:
        self.python = str(settings.fluster_python or sys.executable)
        self.index = settings.fluster_index
        self.installer = settings.fluster_installer or ""
        self.limit_s = settings.fluster_prepare_timeout
        self._as_submitters = settings.run_as == "submitter"
        self._checked: dict[int | None, tuple[float, str | None]] = {}

    @property
    def command(self) -> Sequence[str]:
        """The command that makes the call in a file, whose name follows."""
        return (self.python, "-u", str(RUNNER))

    def refusal(self, principal: Principal) -> str | None:
        """Return why it cannot run as a principal's account, or ``None``."""
        uid = principal.uid if self._as_submitters else None
        cached = self._checked.get(uid)
        if cached is None or not 0 <= time.monotonic() - cached[0] < _KNOWN_S:
            cached = self._checked[uid] = time.monotonic(), self._check(uid)
        return cached[1]

    def _check(self, uid: int | None) -> str | None:
        as_whom: dict[str, Any] = {}
        message = "" if uid is None else f" as account {uid}"
        try:
            if uid is not None:
                account = pwd.getpwuid(uid)
                groups = os.getgrouplist(account.pw_name, account.pw_gid)
                as_whom = {"user": uid, "group": account.pw_gid, "extra_groups": groups}
            done = subprocess.run(  # noqa: S603 - what the operator set
                [self.python, "-I", str(RUNNER), "--check"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT_S,
                check=False,
                cwd="/",
                env={},
                **as_whom,
            )
        except KeyError:
            return f"there is no account with the number {uid}"
        except (OSError, subprocess.SubprocessError) as error:
            return f"{self.python} cannot be run{message}: {error}"
        if done.returncode == 0:
            return None
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:_LONGEST]
        return f"{self.python} cannot run calls{message}: {last}"
