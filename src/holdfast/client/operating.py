"""The calls about settings, nodes and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from holdfast.wire.base import API
from holdfast.wire.catalogue import ConfigurationView, DevicePage, DeviceView, NodePage, NodeView, SettingsView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.connection import Connection


class OperatingCalls:
    """What can be done with settings, nodes and devices."""

    _connection: Connection

    def settings(self) -> SettingsView:
        """Read the settings."""
        return self._connection.get(f"{API}/settings", SettingsView)

    def put_settings(self, settings: Mapping[str, Any], *, dry_run: bool = False) -> SettingsView:
        """Replace the settings; a field left out gets its default. A dry run stores nothing."""
        params = {"dry_run": "true"} if dry_run else {}
        return self._connection.call(SettingsView, "PUT", f"{API}/settings", json=settings, params=params)

    def reload_settings(self) -> ConfigurationView:
        """Have the server read its configuration file again; returns what that says."""
        return self._connection.call(ConfigurationView, "POST", f"{API}/settings/reload")

    def nodes(self) -> list[NodeView]:
        """List nodes and what is in use on them."""
        return self._connection.get(f"{API}/nodes", NodePage).items

    def cordon(self, node: str, *, reason: str = "") -> list[NodeView]:
        """Place nothing on the nodes of a name any more."""
        return self._about_node(node, "cordon", {"reason": reason})

    def drain(self, node: str, *, reason: str = "") -> list[NodeView]:
        """Cordon the nodes of a name, and have what runs there stopped, to go on elsewhere."""
        return self._about_node(node, "drain", {"reason": reason})

    def uncordon(self, node: str) -> list[NodeView]:
        """Let work onto the nodes of a name again."""
        return self._about_node(node, "uncordon", None)

    def _about_node(self, node: str, verb: str, body: Mapping[str, Any] | None) -> list[NodeView]:
        path = f"{_path('nodes', node)}/{verb}"
        return self._connection.call(NodePage, "POST", path, json=body).items

    def devices(self) -> list[DeviceView]:
        """List the GPUs of all nodes, and which runs have them."""
        return self._connection.get(f"{API}/devices", DevicePage).items

    def cordon_device(self, reference: str, *, reason: str = "") -> DeviceView:
        """Ask for a GPU to be given to nobody; ``reference`` is its id, or ID@NODE."""
        return self._steer_device(reference, "cordon", reason)

    def uncordon_device(self, reference: str, *, reason: str = "") -> DeviceView:
        """Ask for a GPU to be given away again."""
        return self._steer_device(reference, "uncordon", reason)

    def _steer_device(self, reference: str, verb: str, reason: str) -> DeviceView:
        path = f"{_path('devices', reference)}/{verb}"
        return self._connection.call(DeviceView, "POST", path, repeatable=True, json={"reason": reason})


def _path(collection: str, name: str) -> str:
    return f"{API}/{collection}/{quote(name, safe='')}"
