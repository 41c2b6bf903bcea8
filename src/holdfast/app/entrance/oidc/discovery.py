"""Asks an issuer for its keys, as OpenID Connect Discovery says: first where they are, then for them."""

from __future__ import annotations

import json
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.notify.exchange import WebRequest, exchange
from holdfast.notify.guard import Guard
from holdfast.notify.trouble import Undelivered

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_S = 5.0
"""For each of the two answers."""
_LARGEST = 512 * 1024
_OK = 200
_PATH = "/.well-known/openid-configuration"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ANYWHERE = Guard(tuple(map(ip_network, ("0.0.0.0/0", "::/0"))))
"""The operator says which issuer, and it may be in the own network."""


def is_safe(url: object) -> bool:
    """Whether nobody on the way can change what a web server of that address says."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = parts.hostname if parts is not None else None
    except ValueError:
        return False
    return (
        parts is not None and bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))
    )


def keys_of(issuer: str) -> Sequence[Any]:
    """Return the keys of an issuer, as it writes them.

    Raises:
        Undelivered: It does not answer, or something else.
    """
    described = _read(issuer.rstrip("/") + _PATH)
    if described.get("issuer") != issuer:
        msg = f"it calls itself {described.get('issuer')!r}, and not {issuer!r}, to the letter"
        raise Undelivered(msg)
    place = described.get("jwks_uri")
    if not is_safe(place):
        msg = f"its keys are at {place!r}, which is no https:// address"
        raise Undelivered(msg)
    keys = _read(str(place)).get("keys")
    if not isinstance(keys, list):
        msg = f"there are no keys at {place}"
        raise Undelivered(msg)
    return keys


def _read(url: str) -> dict[str, Any]:
    request = WebRequest("GET", url, {"Accept": "application/json"})
    status, said = exchange(_ANYWHERE, request, TIMEOUT_S, most=_LARGEST, reads=lambda status: status == _OK)
    if status != _OK:
        msg = f"{url} is answered with {status}"
        raise Undelivered(msg)
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        msg = f"{url} is answered with something else than a JSON object of up to {_LARGEST} bytes"
        raise Undelivered(msg)
    return found
