"""The call that sends a secret along with work that is about to be submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.errors import Refused
from holdfast.wire.attachments import SecretKept
from holdfast.wire.base import API

if TYPE_CHECKING:
    from holdfast.client.connection import Connection

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


class SecretCalls:
    """What can be done with secrets: they go in, and only programs get them."""

    _connection: Connection

    def keep_secret(self, value: str) -> str:
        """Have a secret kept for jobs that are submitted within an hour; returns its name for ``{secret: NAME}``.

        Raises:
            Refused: It would go to another machine in clear, or the server keeps none.
        """
        server = urlsplit(self._connection.address)
        if server.scheme == "http" and server.hostname not in _HERE:
            msg = f"a secret is not sent to {self._connection.address}: everyone on the way could read it"
            raise Refused(msg, hint="reach the server by https://, or through a tunnel to 127.0.0.1")
        return self._connection.call(SecretKept, "POST", f"{API}/secrets", json={"value": value}).name
