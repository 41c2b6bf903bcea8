"""For programs written for Fluster: its client, by the door that a server opens with ``--door fluster``.

Everything is imported when it is first used; none of it needs gRPC.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.api.fluster._generated import cluster as cluster_pb2
    from holdfast.fluster.client import FlusterClient, JobId, RpcClusterClient
    from holdfast.fluster.context import FlusterContext, fluster_ctx
    from holdfast.fluster.launching import Entrypoint, RetryConfig, create_environment

__all__ = [
    "Entrypoint",
    "FlusterClient",
    "FlusterContext",
    "JobId",
    "RetryConfig",
    "RpcClusterClient",
    "cluster_pb2",
    "create_environment",
    "fluster_ctx",
]

_PLACES = {
    "Entrypoint": "launching",
    "FlusterClient": "client",
    "FlusterContext": "context",
    "JobId": "client",
    "RetryConfig": "launching",
    "RpcClusterClient": "client",
    "create_environment": "launching",
    "fluster_ctx": "context",
}


def __getattr__(name: str) -> object:
    """Import what is asked for."""
    from importlib import import_module

    if name == "cluster_pb2":
        return import_module("holdfast.api.fluster._generated.cluster")
    if name not in _PLACES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
