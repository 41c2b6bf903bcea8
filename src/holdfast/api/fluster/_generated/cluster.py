"""Messages of ``fluster/cluster.proto``; written by ``python -m tools.protos``."""

from holdfast.api.fluster._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("fluster/cluster.proto"))
