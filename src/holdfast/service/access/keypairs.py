"""Keypairs of callers that sign: secrets are made from a key, so that none is stored.

The key is a file of the server's. Whoever reads the database learns no secret; servers that share a database need the
same key.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b32encode, urlsafe_b64encode

from holdfast.domain.record import Struct

ACCESS_KEY_PREFIX = "AKIA"
_ACCESS_KEY_BYTES, _SECRET_BYTES = 10, 30


def new_access_key() -> str:
    """Make an access key that nobody has."""
    return _access_key(secrets.token_bytes(_ACCESS_KEY_BYTES))


def _access_key(text: bytes) -> str:
    return f"{ACCESS_KEY_PREFIX}{b32encode(text).decode()}"


class KeypairSecrets(Struct, frozen=True):
    """Makes keypairs from a key."""

    key: bytes

    def access_key(self, owner: str) -> str:
        """Return the access key that a user has without an entry of its own."""
        return _access_key(self._digest("owner", owner)[:_ACCESS_KEY_BYTES])

    def secret(self, access_key: str, owner: str) -> str:
        """Return the secret of an access key, which is another one once the key has another owner."""
        return urlsafe_b64encode(self._digest("secret", access_key, owner)[:_SECRET_BYTES]).decode()

    def _digest(self, *words: str) -> bytes:
        return hmac.digest(self.key, "\0".join(words).encode(), "sha256")
