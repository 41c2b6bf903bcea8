"""What the tools of gRPC ask of any server, without saying who they are: whether it is well, and what it answers.

Of the health protocol there is only ``Check``. A client that finds no ``Watch`` takes a server to be well for as long
as it is connected, which is so here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.calls import SERVICES
from holdfast.api.connect import compression
from holdfast.api.connect.grpc_serving import handler, receive_message
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.serving import decode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.api.connect.grpc_serving import Context, GrpcSettings
    from holdfast.api.connect.serving import Setup

_HEALTH = "grpc.health.v1.Health"
_AT_A_TIME = 2
"""Calls of each kind whose messages are read at a time."""
_LARGEST = 1024
"""Bytes of a message about health."""


def health(setup: Setup, settings: GrpcSettings) -> grpc.GenericRpcHandler:
    """Return what says of each service that it is served."""
    arrivals = settings.arrivals(_AT_A_TIME)

    async def check(context: Context) -> None:
        with setup.budget.share() as share:
            await receive_message(context, share, arrivals)
            encoding = compression.encoding_of(share.body)
            request: Any = await asyncio.to_thread(decode, health_pb2.HealthCheckRequest, share, _LARGEST, encoding)
        if request.service not in {"", *SERVICES}:
            raise Rejected(Code.NOT_FOUND, f"there is no service {request.service!r}")
        await context.write(health_pb2.HealthCheckResponse(status="SERVING").SerializeToString())

    return grpc.method_handlers_generic_handler(_HEALTH, {"Check": handler(f"/{_HEALTH}/Check", check)})


def reflected() -> grpc.GenericRpcHandler:
    """Return what describes the services; each client may keep one of its places for long, so it has its own."""
    names = (*SERVICES, _HEALTH, reflection.SERVICE_NAME)
    servicer: Any = reflection.aio.ReflectionServicer(names, pool=PROTOCOL.pool)
    places = asyncio.Semaphore(_AT_A_TIME)

    async def describe(requests: object, context: object) -> AsyncIterator[object]:
        async with places:
            async for answer in servicer.ServerReflectionInfo(requests, context):
                yield answer

    methods = {
        "ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(
            describe,
            request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
            response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
    }
    return grpc.method_handlers_generic_handler(reflection.SERVICE_NAME, methods)
