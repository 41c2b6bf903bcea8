"""The client for programs written for Fluster, which uses the door that a server opens with ``--door fluster``.

Everything is imported when it is first used. None of it needs gRPC.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.api.fluster._generated import cluster as cluster_pb2
    from holdfast.fluster.calling import ClusterError
    from holdfast.fluster.client import FlusterClient
    from holdfast.fluster.context import (
        FlusterContext,
        create_context_from_env,
        fluster_ctx,
        fluster_ctx_scope,
        get_fluster_ctx,
    )
    from holdfast.fluster.endpoints import EndpointRegistry, ResolvedEndpoint, Resolver, ResolveResult
    from holdfast.fluster.inside import JobId
    from holdfast.fluster.launching import Entrypoint, RetryConfig, create_environment
    from holdfast.fluster.logs import LogEntry
    from holdfast.fluster.poller import LogPoller
    from holdfast.fluster.rpc_client import RpcClusterClient

__all__ = [
    "ClusterError",
    "EndpointRegistry",
    "Entrypoint",
    "FlusterClient",
    "FlusterContext",
    "JobId",
    "LogEntry",
    "LogPoller",
    "ResolveResult",
    "ResolvedEndpoint",
    "Resolver",
    "RetryConfig",
    "RpcClusterClient",
    "cluster_pb2",
    "create_context_from_env",
    "create_environment",
    "fluster_ctx",
    "fluster_ctx_scope",
    "get_fluster_ctx",
]

_PLACES = {
    "calling": ("ClusterError",),
    "client": ("FlusterClient",),
    "context": (
        "FlusterContext",
        "create_context_from_env",
        "fluster_ctx",
        "fluster_ctx_scope",
        "get_fluster_ctx",
    ),
    "endpoints": ("EndpointRegistry", "ResolveResult", "ResolvedEndpoint", "Resolver"),
    "inside": ("JobId",),
    "launching": ("Entrypoint", "RetryConfig", "create_environment"),
    "logs": ("LogEntry",),
    "poller": ("LogPoller",),
    "rpc_client": ("RpcClusterClient",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}
_ACTORS = frozenset({"ActorClient", "ActorContext", "ActorPool", "ActorServer", "FixedResolver", "GcsResolver"})
_POOLS = frozenset({"WorkerPool", "WorkerPoolConfig"})


def __getattr__(name: str) -> object:
    """Import a name on first use.

    Raises:
        ImportError: It is a part of Fluster's that Holdfast does not have.
        AttributeError: There is no such name.
    """
    from importlib import import_module

    if name == "cluster_pb2":
        return import_module("holdfast.api.fluster._generated.cluster")
    if name in _ACTORS:
        import_module(f"{__name__}.actor")
    if name in _POOLS:
        msg = f"{name} is not available: Holdfast has no worker pools; submit a job for each piece of work"
        raise ImportError(msg)
    if name not in _PLACE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
