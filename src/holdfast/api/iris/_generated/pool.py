"""What ``protocol`` describes; written by ``python -m tools.protos``."""

from holdfast.api.protobuf import Protocol

PROTOCOL = Protocol(__package__)
