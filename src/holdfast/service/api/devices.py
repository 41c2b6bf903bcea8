"""GET /devices: the GPUs of all nodes; and setting them aside."""

from typing import Annotated

from holdfast.domain.audit import Caller
from holdfast.ports.store import JobFilter
from holdfast.service.api.endpoint import LONGEST_NAME, Asked, Backend, Endpoints
from holdfast.service.devices import Devices
from holdfast.wire.catalogue import DevicePage, DeviceView
from holdfast.wire.jobs import Reason
from holdfast.wire.render_catalogue import device_views

_DEVICES = Endpoints("nodes")
ENDPOINTS = (_DEVICES,)
_Ref = Annotated[str, Asked("A GPU's id, or ID@NODE where several nodes have one of that id.", max_length=LONGEST_NAME)]


@_DEVICES.add("GET", "/devices", DevicePage, summary="List GPUs")
def list_devices(backend: Backend) -> DevicePage:
    """List the GPUs of all nodes, and which runs have them."""
    return DevicePage(items=_shown(backend))


@_DEVICES.add("POST", "/devices/{ref}/cordon", DeviceView, 404, 409, 413, summary="Cordon a GPU", status=202)
def cordon(backend: Backend, by: Caller, ref: _Ref, reason: Reason | None = None) -> DeviceView:
    """Ask for a GPU to be given to nobody until that is lifted; who has it keeps it."""
    node, device = Devices(backend.store, backend.clock).cordon(ref, reason.reason if reason else "", by=by)
    return _one(backend, node.executor, node.name, device.id)


@_DEVICES.add("POST", "/devices/{ref}/uncordon", DeviceView, 404, 409, 413, summary="Uncordon a GPU", status=202)
def uncordon(backend: Backend, by: Caller, ref: _Ref, reason: Reason | None = None) -> DeviceView:
    """Ask for a GPU that was set aside, by a person or for its faults, to be given away again."""
    node, device = Devices(backend.store, backend.clock).uncordon(ref, reason.reason if reason else "", by=by)
    return _one(backend, node.executor, node.name, device.id)


def _shown(backend: Backend) -> list[DeviceView]:
    store = backend.store
    running = [run for run in store.running() if run.devices]
    jobs = store.jobs(JobFilter(ids=frozenset(run.job_id for run in running)))
    return device_views(store.nodes(), running, {job.id: job.name for job in jobs})


def _one(backend: Backend, executor: str, node: str, device: str) -> DeviceView:
    return next(one for one in _shown(backend) if (one.executor, one.node, one.id) == (executor, node, device))
