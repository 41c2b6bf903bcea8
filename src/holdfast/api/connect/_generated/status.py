"""Messages of ``google/rpc/status.proto``; written by ``python -m tools.protos``."""

from holdfast.api.connect._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("google/rpc/status.proto"))
