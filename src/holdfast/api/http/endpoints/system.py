"""The server itself (/healthz, /readyz, /metrics, /version, /me), its nodes, and their GPUs (/devices)."""

from typing import Annotated

from holdfast import __version__
from holdfast.api.http.endpoints.endpoint import LONGEST_NAME, Endpoints, Name, Param
from holdfast.domain.audit import Caller
from holdfast.domain.devices import Device
from holdfast.domain.job import Node
from holdfast.errors import Unavailable
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.devices import DeviceOperations
from holdfast.service.operations.nodes import Nodes, NodesInUse
from holdfast.service.operations.overview import Overview
from holdfast.wire.base import API, REVISION
from holdfast.wire.catalogue import DevicePage, DeviceView, Health, MeView, NodePage, VersionView
from holdfast.wire.jobs import JobPage, Reason
from holdfast.wire.render_catalogue import device_views, node_views
from holdfast.wire.render_jobs import job_summary

_SYSTEM = Endpoints("system", "")
_NODES = Endpoints("nodes")
ENDPOINTS = (_SYSTEM, _NODES)
_Gpu = Annotated[
    str, Param("A GPU's id, or ID@NODE if several nodes have a GPU with this id.", max_length=LONGEST_NAME)
]


@_SYSTEM.add("GET", "/healthz", Health, summary="Check that the process is alive")
def healthz(_: Backend) -> Health:
    """Answer; needs no token."""
    return Health(status="ok")


@_SYSTEM.add("GET", "/readyz", Health, summary="Check that the server is ready")
def readyz(backend: Backend) -> Health:
    """Answer 503 with the reason if the store or a loop cannot work or a node is short; needs no token."""
    if why := backend.ready():
        raise Unavailable(why)
    # Last, because a database that hangs would delay a reason that is already known.
    backend.store.catalogue_version()
    return Health(status="ok")


@_SYSTEM.add("GET", "/metrics", None, summary="Read metrics")
def metrics(backend: Backend, caller: Caller) -> bytes:
    """Read metrics in Prometheus' text format."""
    return Overview(backend).metrics(caller)


@_SYSTEM.add("GET", f"{API}/version", VersionView, summary="Read the version")
def version(_: Backend) -> VersionView:
    """Read the server's version and the revision of its API."""
    return VersionView(version=__version__, revision=REVISION)


@_SYSTEM.add("GET", f"{API}/me", MeView, summary="Read who you are")
def me(_: Backend, caller: Caller) -> MeView:
    """Read your name, groups and way of signing in, as the server knows them."""
    principal = caller.principal
    return MeView(name=principal.name, groups=list(principal.groups), via=principal.via)


@_NODES.add("GET", "/nodes", NodePage, summary="List nodes")
def list_nodes(backend: Backend, caller: Caller) -> NodePage:
    """List nodes and what is in use on them."""
    return _page(_nodes(backend).list(caller))


def _page(nodes_in_use: NodesInUse) -> NodePage:
    return NodePage(items=node_views(nodes_in_use.nodes, nodes_in_use.running, nodes_in_use.cordons))


@_NODES.add("POST", "/nodes/{name}/cordon", NodePage, 404, 413, summary="Cordon a node")
def cordon_node(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Place nothing more on the nodes with this name; what runs there goes on."""
    return _page(_nodes(backend).cordon(caller, name, _text(reason)))


@_NODES.add("POST", "/nodes/{name}/drain", NodePage, 404, 413, summary="Drain a node")
def drain_node(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> NodePage:
    """Cordon the nodes with this name, and move what runs there elsewhere: it is stopped and placed again."""
    return _page(_nodes(backend).cordon(caller, name, _text(reason), drain=True))


@_NODES.add("POST", "/nodes/{name}/uncordon", NodePage, 404, summary="Uncordon a node")
def uncordon_node(backend: Backend, caller: Caller, name: Name) -> NodePage:
    """Place work on the nodes with this name again."""
    return _page(_nodes(backend).uncordon(caller, name))


@_NODES.add("POST", "/nodes/{name}/preempt", JobPage, 404, 413, summary="Preempt what runs on a node", status=202)
def preempt_node(backend: Backend, caller: Caller, name: Name, reason: Reason | None = None) -> JobPage:
    """Preempt every job that runs on the nodes with this name; returns the jobs."""
    return JobPage(items=list(map(job_summary, JobBatches(backend).preempt_node(caller, name, _text(reason)))))


def _nodes(backend: Backend) -> Nodes:
    return Nodes(backend.store, backend.clock)


@_NODES.add("GET", "/devices", DevicePage, summary="List GPUs")
def list_devices(backend: Backend, caller: Caller) -> DevicePage:
    """List the GPUs of all nodes, and which runs have them."""
    return DevicePage(items=_device_views(backend, caller))


@_NODES.add("POST", "/devices/{ref}/cordon", DeviceView, 404, 409, 413, summary="Cordon a GPU", status=202)
def cordon_device(backend: Backend, caller: Caller, ref: _Gpu, reason: Reason | None = None) -> DeviceView:
    """Assign a GPU to no further run until it is uncordoned; a run that has it keeps it."""
    node, device = _devices(backend).cordon(caller, ref, _text(reason))
    return _device_view(backend, caller, node, device)


@_NODES.add("POST", "/devices/{ref}/uncordon", DeviceView, 404, 409, 413, summary="Uncordon a GPU", status=202)
def uncordon_device(backend: Backend, caller: Caller, ref: _Gpu, reason: Reason | None = None) -> DeviceView:
    """Assign a GPU again that was cordoned by a person or because of its faults."""
    node, device = _devices(backend).uncordon(caller, ref, _text(reason))
    return _device_view(backend, caller, node, device)


def _devices(backend: Backend) -> DeviceOperations:
    return DeviceOperations(backend.store, backend.clock, backend.access)


def _device_views(backend: Backend, caller: Caller) -> list[DeviceView]:
    seen = _devices(backend).list(caller)
    return device_views(seen.nodes, seen.holders, seen.names)


def _device_view(backend: Backend, caller: Caller, node: Node, device: Device) -> DeviceView:
    key = (node.executor, node.name, device.id)
    return next(view for view in _device_views(backend, caller) if (view.executor, view.node, view.id) == key)


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""
