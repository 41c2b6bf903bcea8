"""Webhooks, signed as https://www.standardwebhooks.com says, and those that take a text as Slack's do."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from holdfast.notify.exchange import WebRequest, exchange
from holdfast.notify.guard import Undelivered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.notify.guard import Guard

_SUCCESS, _REDIRECTION = range(200, 300), range(300, 400)
_GONE = 410
_MOST_READ = 65_536
_MOST_SHOWN = 200
SHORTEST_KEY, LONGEST_KEY = 24, 64
"""Bytes of a signing secret, as Standard Webhooks says."""


def signing_key(secret: str) -> bytes:
    """Return the key in a signing secret.

    Raises:
        Undelivered: It is not one as Standard Webhooks says.
    """
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        message = f"the signing secret is not whsec_ and {SHORTEST_KEY} to {LONGEST_KEY} bytes in base64"
        raise Undelivered(message, final=True)
    return key


def signed(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message."""
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def encoded(value: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def post(guard: Guard, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> None:
    """Send a message once; redirects are not followed, because their targets are not checked.

    Raises:
        Undelivered: It was not accepted.
    """
    all_headers = {"Content-Type": "application/json", **headers}
    request = WebRequest("POST", url, all_headers, body)
    _judge(*exchange(guard, request, timeout_s, most=_MOST_READ, reads=lambda status: status not in _SUCCESS))


def _judge(status: int, body: bytes) -> None:
    if status in _SUCCESS:
        return
    if status in _REDIRECTION:
        message = f"the server answered {status}; redirects are not followed: use its present URL"
        raise Undelivered(message, final=True)
    text = " ".join(body.decode("utf-8", "replace").split())[:_MOST_SHOWN]
    printable = "".join(letter for letter in text if letter.isprintable())
    msg = f"the server answered {status}{f': {printable}' if printable else ''}"
    raise Undelivered(msg, final=status == _GONE)
