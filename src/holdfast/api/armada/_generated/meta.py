"""Messages of ``k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto``; written by ``python -m tools.protos``."""

from holdfast.api.armada._generated.pool import PROTOCOL

globals().update(PROTOCOL.exported("k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto"))
