"""GET /devices: the GPUs of all nodes; and setting them aside."""

from typing import Annotated

from holdfast.api.http.endpoints.endpoint import LONGEST_NAME, Endpoints, Param
from holdfast.domain.audit import Caller
from holdfast.domain.devices import Device
from holdfast.domain.job import Node
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.devices import DeviceOperations
from holdfast.wire.catalogue import DevicePage, DeviceView
from holdfast.wire.jobs import Reason
from holdfast.wire.render_catalogue import device_views

_DEVICES = Endpoints("nodes")
ENDPOINTS = (_DEVICES,)
_Ref = Annotated[str, Param("A GPU's id, or ID@NODE where several nodes have one of that id.", max_length=LONGEST_NAME)]


@_DEVICES.add("GET", "/devices", DevicePage, summary="List GPUs")
def list_devices(backend: Backend, caller: Caller) -> DevicePage:
    """List the GPUs of all nodes, and which runs have them."""
    return DevicePage(items=_shown(backend, caller))


@_DEVICES.add("POST", "/devices/{ref}/cordon", DeviceView, 404, 409, 413, summary="Cordon a GPU", status=202)
def cordon(backend: Backend, caller: Caller, ref: _Ref, reason: Reason | None = None) -> DeviceView:
    """Ask for a GPU to be given to nobody until that is lifted; who has it keeps it."""
    node, device = _devices(backend).cordon(caller, ref, reason.reason if reason else "")
    return _one(backend, caller, node, device)


@_DEVICES.add("POST", "/devices/{ref}/uncordon", DeviceView, 404, 409, 413, summary="Uncordon a GPU", status=202)
def uncordon(backend: Backend, caller: Caller, ref: _Ref, reason: Reason | None = None) -> DeviceView:
    """Ask for a GPU that was set aside, by a person or for its faults, to be given away again."""
    node, device = _devices(backend).uncordon(caller, ref, reason.reason if reason else "")
    return _one(backend, caller, node, device)


def _devices(backend: Backend) -> DeviceOperations:
    return DeviceOperations(backend.store, backend.clock, backend.access)


def _shown(backend: Backend, caller: Caller) -> list[DeviceView]:
    devices_seen = _devices(backend).list(caller)
    return device_views(devices_seen.nodes, devices_seen.holders, devices_seen.names)


def _one(backend: Backend, caller: Caller, node: Node, device: Device) -> DeviceView:
    key = (node.executor, node.name, device.id)
    return next(
        device_view
        for device_view in _shown(backend, caller)
        if (device_view.executor, device_view.node, device_view.id) == key
    )
