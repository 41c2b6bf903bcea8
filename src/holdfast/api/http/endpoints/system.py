"""What answers here and whether it works: /healthz, /readyz, /metrics, /api/v1/version; and /nodes."""

from holdfast import __version__
from holdfast.api.http.endpoints.endpoint import Endpoints, Name
from holdfast.domain.audit import Caller
from holdfast.errors import Unavailable
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.nodes import Nodes, NodesInUse
from holdfast.service.operations.overview import Overview
from holdfast.wire.base import API, REVISION
from holdfast.wire.catalogue import Health, MeView, NodePage, VersionView
from holdfast.wire.jobs import JobPage, Reason
from holdfast.wire.render_catalogue import node_views
from holdfast.wire.render_jobs import job_summary

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
def metrics(backend: Backend, caller: Caller) -> bytes:
    """Read metrics as Prometheus text."""
    return Overview(backend).metrics(caller)


@_SYSTEM.add("GET", f"{API}/version", VersionView, summary="Read the version")
def version(_: Backend) -> VersionView:
    """Read what answers here."""
    return VersionView(version=__version__, revision=REVISION)


@_SYSTEM.add("GET", f"{API}/me", MeView, summary="Read who asks")
def me(_: Backend, asking: Caller) -> MeView:
    """Read who asks, as the server knows them."""
    caller = asking.principal
    return MeView(name=caller.name, groups=list(caller.groups), via=caller.via)


@_NODES.add("GET", "/nodes", NodePage, summary="List nodes")
def list_nodes(backend: Backend, caller: Caller) -> NodePage:
    """List nodes and what is in use on them."""
    return _page(_nodes(backend).list(caller))


def _page(nodes_in_use: NodesInUse) -> NodePage:
    return NodePage(items=node_views(nodes_in_use.nodes, nodes_in_use.running, nodes_in_use.cordons))


@_NODES.add("POST", "/nodes/{name}/cordon", NodePage, 404, 413, summary="Cordon a node")
def cordon(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Place nothing on the nodes of a name any more; what runs there goes on."""
    return _page(_nodes(backend).cordon(caller, name, _text(reason)))


@_NODES.add("POST", "/nodes/{name}/drain", NodePage, 404, 413, summary="Drain a node")
def drain(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Cordon the nodes of a name, and have what runs there stopped, to go on elsewhere."""
    return _page(_nodes(backend).cordon(caller, name, _text(reason), drain=True))


@_NODES.add("POST", "/nodes/{name}/uncordon", NodePage, 404, summary="Uncordon a node")
def uncordon(backend: Backend, caller: Caller, name: Name) -> NodePage:
    """Let work onto the nodes of a name again."""
    return _page(_nodes(backend).uncordon(caller, name))


@_NODES.add("POST", "/nodes/{name}/preempt", JobPage, 404, 413, summary="Preempt what runs on a node", status=202)
def preempt_node(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> JobPage:
    """Ask for the places of all that runs on the nodes of a name; returns the jobs."""
    return JobPage(items=list(map(job_summary, JobBatches(backend).preempt_node(caller, name, _text(reason)))))


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""


def _nodes(backend: Backend) -> Nodes:
    return Nodes(backend.store, backend.clock)
