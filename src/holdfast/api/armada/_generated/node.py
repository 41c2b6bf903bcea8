"""Messages of ``armada/node.proto``; written by ``python -m tools.protos``."""

from holdfast.api.armada._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("armada/node.proto"))
