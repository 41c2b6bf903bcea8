"""What answers here and whether it works: /healthz, /readyz, /metrics, /api/v1/version; and /nodes."""

from holdfast import __version__
from holdfast.errors import Unavailable
from holdfast.service.api.endpoint import Backend, Endpoints
from holdfast.wire.base import API
from holdfast.wire.catalogue import Health, NodePage, VersionView
from holdfast.wire.render_catalogue import node_views

_SYSTEM = Endpoints("system", "")
_NODES = Endpoints("nodes")
ENDPOINTS = (_SYSTEM, _NODES)


@_SYSTEM.add("GET", "/healthz", Health, summary="Is the process alive?")
def healthz(_: Backend) -> Health:
    """Answer; needs no token."""
    return Health(status="ok")


@_SYSTEM.add("GET", "/readyz", Health, summary="Can the server work?")
def readyz(backend: Backend) -> Health:
    """Answer 503 with the reason when the store or a loop cannot work; needs no token."""
    if why := backend.ready():
        raise Unavailable(why)
    backend.store.catalogue_version()  # asked last: a database that hangs would keep what is known from being told
    return Health(status="ok")


@_SYSTEM.add("GET", "/metrics", None, summary="Read metrics")
def metrics(backend: Backend) -> bytes:
    """Read metrics as Prometheus text."""
    return backend.metrics()


@_SYSTEM.add("GET", f"{API}/version", VersionView, summary="Read the version")
def version(_: Backend) -> VersionView:
    """Read what answers here."""
    return VersionView(version=__version__)


@_NODES.add("GET", "/nodes", NodePage, summary="List nodes")
def list_nodes(backend: Backend) -> NodePage:
    """List nodes and what is in use on them."""
    return NodePage(items=node_views(backend.store.nodes(), backend.store.running()))
