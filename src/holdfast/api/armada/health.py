"""Answers whether the door is open, which anybody may ask: load balancers show nothing.

Of the calls of gRPC's protocol for it there is ``Check``. Who finds no ``Watch`` takes a server to be well for as long
as it is connected, which is so here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2

from holdfast.api.armada.calls import SERVICES
from holdfast.api.armada.refusals import ArmadaRefusal
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.api.armada.answering import Answer
    from holdfast.api.armada.received import Received

SERVICE = "grpc.health.v1.Health"
REQUEST = health_pb2.HealthCheckRequest
_LARGEST = 1024
"""Bytes."""


class Check(Struct, frozen=True):
    """Says of a service that it is served."""

    async def answer(self, received: Received, answer: Answer) -> None:
        """Answer a call of anybody."""
        request: Any = received.message(_LARGEST)
        name = request.service
        if name not in {"", *SERVICES}:
            raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, f"there is no service {name!r}")
        await answer.send([health_pb2.HealthCheckResponse(status="SERVING").SerializeToString()])
