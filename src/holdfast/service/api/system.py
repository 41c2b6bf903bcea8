"""What answers here and whether it works: /healthz, /readyz, /metrics, /api/v1/version; and /nodes."""

from collections.abc import Sequence

from holdfast import __version__
from holdfast.domain.audit import Caller
from holdfast.domain.job import Node
from holdfast.errors import Unavailable
from holdfast.service.api.endpoint import Backend, Endpoints, Name
from holdfast.service.catalogue.nodes import Nodes
from holdfast.wire.base import API, REVISION
from holdfast.wire.catalogue import Health, NodePage, NodeView, VersionView
from holdfast.wire.jobs import Reason
from holdfast.wire.render_catalogue import node_views

_SYSTEM = Endpoints("system", "")
_NODES = Endpoints("nodes")
ENDPOINTS = (_SYSTEM, _NODES)


@_SYSTEM.add("GET", "/healthz", Health, summary="Check that the process is alive")
def healthz(_: Backend) -> Health:
    """Answer; needs no token."""
    return Health(status="ok")


@_SYSTEM.add("GET", "/readyz", Health, summary="Check that the server is ready")
def readyz(backend: Backend) -> Health:
    """Answer 503 with the reason when the store or a loop cannot work, or a node is short; needs no token."""
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
    return VersionView(version=__version__, revision=REVISION)


@_NODES.add("GET", "/nodes", NodePage, summary="List nodes")
def list_nodes(backend: Backend) -> NodePage:
    """List nodes and what is in use on them."""
    return NodePage(items=_views(backend, backend.store.nodes()))


def _views(backend: Backend, nodes: Sequence[Node]) -> list[NodeView]:
    return node_views(nodes, backend.store.running(), backend.store.catalogue().cordons)


@_NODES.add("POST", "/nodes/{name}/cordon", NodePage, 404, 413, summary="Cordon a node")
def cordon(backend: Backend, by: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Place nothing on the nodes of a name any more; what runs there goes on."""
    return NodePage(items=_views(backend, _nodes(backend).cordon(name, _text(reason), by=by)))


@_NODES.add("POST", "/nodes/{name}/drain", NodePage, 404, 413, summary="Drain a node")
def drain(backend: Backend, by: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Cordon the nodes of a name, and have what runs there stopped, to go on elsewhere."""
    return NodePage(items=_views(backend, _nodes(backend).cordon(name, _text(reason), drain=True, by=by)))


@_NODES.add("POST", "/nodes/{name}/uncordon", NodePage, 404, summary="Uncordon a node")
def uncordon(backend: Backend, by: Caller, name: Name) -> NodePage:
    """Let work onto the nodes of a name again."""
    return NodePage(items=_views(backend, _nodes(backend).uncordon(name, by=by)))


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""


def _nodes(backend: Backend) -> Nodes:
    return Nodes(backend.store, backend.clock)
