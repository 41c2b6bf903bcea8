"""Messages of ``iris/controller.proto``; written by ``python -m tools.protos``."""

from holdfast.api.iris._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("iris/controller.proto"))
