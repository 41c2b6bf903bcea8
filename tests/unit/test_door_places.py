"""Where commands look for a door, and whether it speaks TLS there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.app.settings import Settings
from holdfast.app.whereabouts import door

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("listens", "asked", "address", "secure"),
    [
        ("0.0.0.0:5", None, "localhost:5", True),
        ("[::]:5", None, "localhost:5", True),
        ("127.0.0.1:5", None, "127.0.0.1:5", False),
        ("10.0.0.1:5", None, "10.0.0.1:5", False),
        ("0.0.0.0:5", "lab.example:5", "lab.example:5", False),
        ("0.0.0.0:5", "0.0.0.0:6", "localhost:6", True),
    ],
)
def test_a_door_for_all_addresses_of_this_machine_is_reached_by_its_own_name_and_tls(
    tmp_path: Path, listens: str, asked: str | None, address: str, *, secure: bool
) -> None:
    found = door(Settings(data=tmp_path / "none", armada_listen=listens), "armada", "localhost:50051", asked)
    assert (found.address, found.secure) == (address, secure)
