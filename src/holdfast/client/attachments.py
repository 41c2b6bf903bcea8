"""The calls that send files, archives and secrets for work that is about to be submitted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.errors import Refused
from holdfast.wire.base import API
from holdfast.wire.jobs import BlobKept, SecretKept

if TYPE_CHECKING:
    from holdfast.client.connection import Connection

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


class AttachmentCalls:
    """Files and secrets, which can be sent but not read back: only programs get them."""

    _connection: Connection

    def keep_secret(self, value: str) -> str:
        """Send a secret for jobs that are submitted within an hour; returns its name for ``{secret: NAME}``.

        Raises:
            Refused: It would go to another machine unencrypted, or the server keeps no secrets.
        """
        server = urlsplit(self._connection.address)
        if server.scheme == "http" and server.hostname not in _HERE:
            msg = f"a secret is not sent to {self._connection.address}: everyone on the way could read it"
            raise Refused(msg, hint="reach the server by https://, or through a tunnel to 127.0.0.1")
        return self._connection.call(SecretKept, "POST", f"{API}/secrets", json={"value": value}).name

    def keep_blob(self, data: bytes, *, archive: bool = False) -> str:
        """Send a file for jobs that are submitted within an hour; returns its SHA-256, for ``inputs``.

        Args:
            data: The contents.
            archive: Whether it is a zip archive to unpack; the server refuses unsafe ones.
        """
        body = {"data": base64.b64encode(data).decode(), "unpack": archive}
        return self._connection.call(BlobKept, "POST", f"{API}/blobs", json=body).blob
