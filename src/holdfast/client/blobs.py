"""The call that sends a file or an archive along with work that is about to be submitted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from holdfast.wire.attachments import BlobKept
from holdfast.wire.base import API

if TYPE_CHECKING:
    from holdfast.client.connection import Connection


class BlobCalls:
    """What runs find in their work directories."""

    _connection: Connection

    def keep_blob(self, data: bytes, *, archive: bool = False) -> str:
        """Have something kept for jobs that are submitted within an hour; returns its SHA-256, for ``inputs``.

        Args:
            data: What is sent.
            archive: Whether it is a zip archive that is to be unpacked, and refused if it must not be.
        """
        body = {"data": base64.b64encode(data).decode(), "unpack": archive}
        return self._connection.call(BlobKept, "POST", f"{API}/blobs", json=body).blob
