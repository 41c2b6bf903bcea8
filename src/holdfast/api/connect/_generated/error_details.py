"""Messages of ``google/rpc/error_details.proto``; written by ``python -m tools.protos``."""

from holdfast.api.connect._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("google/rpc/error_details.proto"))
