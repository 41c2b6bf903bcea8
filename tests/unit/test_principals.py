"""Who callers are taken for."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from holdfast.app import wiring
from holdfast.domain.access import Principal

if TYPE_CHECKING:
    import pytest


def test_a_process_is_its_account_whatever_its_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("USER", "somebody")
    uid = os.geteuid()
    assert wiring.account() == Principal(pwd.getpwuid(uid).pw_name, uid=uid)


def test_an_account_without_a_name_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_001)
    assert wiring.account() == Principal("4000000001", uid=4_000_000_001)
