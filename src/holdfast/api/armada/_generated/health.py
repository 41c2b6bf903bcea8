"""Messages of ``armada/health.proto``; written by ``python -m tools.protos``."""

from holdfast.api.armada._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("armada/health.proto"))
