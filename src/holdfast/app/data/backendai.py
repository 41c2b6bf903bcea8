"""Finds Backend.AI's door: by the variables of its clients, or by what the server left in the data directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.app.data.datadir import KEYPAIR_FILE
from holdfast.app.data.trust import read_private
from holdfast.app.reach import read_reach
from holdfast.client.backendai.calls import DoorReach
from holdfast.errors import InvalidSetting, Problem, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_VARIABLES = ("BACKEND_ENDPOINT", "BACKEND_ACCESS_KEY", "BACKEND_SECRET_KEY")
_HINT = "start the server with: holdfast up --door backendai; or set " + ", ".join(_VARIABLES)


def find_door(
    endpoint: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> DoorReach:
    """Find the door and a keypair.

    Args:
        endpoint: The address of the server; default ``BACKEND_ENDPOINT``.
        access_key: Default ``BACKEND_ACCESS_KEY``.
        secret_key: Default ``BACKEND_SECRET_KEY``.
        environ: The variables, if they are not those of this process.

    Raises:
        InvalidSetting: Some of the three are set, but not all.
        Unavailable: None is, and no server left them in the data directory.
        Refused: Others could read or write what is there.
    """
    variables = os.environ if environ is None else environ
    arguments = (endpoint, access_key, secret_key)
    named = {name: value or variables.get(name, "") for name, value in zip(_VARIABLES, arguments, strict=True)}
    if not any(named.values()):
        named = _kept(read_reach().data / KEYPAIR_FILE)
    missing = [name for name in _VARIABLES if not named.get(name)]
    if missing:
        raise InvalidSetting(problems=[Problem(name, "is not set, but others are", hint=_HINT) for name in missing])
    return DoorReach(*(named[name] for name in _VARIABLES))


def _kept(path: Path) -> dict[str, str]:
    try:
        text = read_private(path)
    except OSError as error:
        msg = f"the address of Backend.AI's door is not known: there is no {path}"
        raise Unavailable(msg, hint=_HINT) from error
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}
