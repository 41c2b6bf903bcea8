"""Signatures of calls at Backend.AI's door: what a client signs, with which key, and how it is sent.

Clients sign the method, the path with its query, the date, the host, the bare media type and the version of the API,
but not the body. The key is made from the keypair's secret, the day of the date, and the host.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME = "BackendAI"
METHOD = "HMAC-SHA256"
API_VERSION = "v9.20250722"
"""The version of the API that the door speaks."""
_NO_BODY = sha256(b"").hexdigest()
_NO_TYPE = "application/octet-stream"
"""What is signed where no content type is sent."""


class SignedCall(Struct, frozen=True):
    """The parts of a call that its client signs."""

    method: str
    target: str
    """The raw path with its query."""
    date: str
    """As sent."""
    host: str
    """``HOST[:PORT]``."""
    content_type: str
    """The media type, without parameters."""
    version: str
    """The version of the API that the client speaks."""

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str]) -> SignedCall:
        """Return what was signed of a request; names of headers are in lower case."""
        return cls(
            method,
            target,
            headers.get("date") or headers.get("x-backendai-date", ""),
            headers.get("host", ""),
            headers.get("content-type", "").partition(";")[0].strip().lower() or _NO_TYPE,
            headers.get("x-backendai-version", ""),
        )

    def text(self) -> str:
        """Return the text that is signed."""
        return (
            f"{self.method}\n{self.target}\n{self.date}\nhost:{self.host}\ncontent-type:{self.content_type}\n"
            f"x-backendai-version:{self.version}\n{_NO_BODY}"
        )

    def signature(self, secret: str, day: str) -> str:
        """Return the signature by a secret, in hexadecimal digits; ``day`` is that of the date, as YYYYMMDD."""
        key = hmac.digest(secret.encode(), day.encode(), "sha256")
        key = hmac.digest(key, self.host.encode(), "sha256")
        return hmac.digest(key, self.text().encode("utf-8", "surrogateescape"), "sha256").hex()


def authorization(access_key: str, signature: str) -> str:
    """Return the ``Authorization`` header of a signed call."""
    return f"{SCHEME} signMethod={METHOD}, credential={access_key}:{signature}"
