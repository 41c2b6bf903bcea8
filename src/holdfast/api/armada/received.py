"""The message of a call, as it came: decompressed and decoded by the thread that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError, Message

from holdfast.api.armada.refusals import ArmadaRefusal, refuse
from holdfast.api.connect import compression
from holdfast.api.connect.refusals import Rejected
from holdfast.api.entries import read_message
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.api.budget import MemoryShare

LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes, sent or received."""
LARGEST_OF_STREAM = 16 * 1024
"""Bytes of a message that is kept for as long as somebody follows."""


class Received(Struct, frozen=True):
    """A message that has yet to be decoded."""

    share: MemoryShare
    kind: type[Message]

    def message(self, largest: int = LARGEST_MESSAGE) -> Message:
        """Decode it.

        Raises:
            ArmadaRefusal: It is broken or too large.
            HoldfastError: Decoding it takes more memory than there is.
        """
        encoding = compression.encoding_of(self.share.body)
        try:
            with self.share.turn(is_packed=encoding != compression.IDENTITY):
                compression.decompress(encoding, self.share, largest)
                if len(self.share.body) > largest:
                    raise compression.too_large(largest)
                return read_message(self.kind, self.share)
        except Rejected as error:
            refuse(error.message)
        except DecodeError as error:
            text = f"grpc: error unmarshalling request: {error}"
            raise ArmadaRefusal(grpc.StatusCode.INTERNAL, text) from error
