"""The calls about what operators write: policies, queues, failure categories, settings; and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from holdfast.client.connection import once
from holdfast.wire.base import API
from holdfast.wire.catalogue import (
    CategoryPage,
    CategoryView,
    ConfigurationView,
    DevicePage,
    DeviceView,
    NodePage,
    NodeView,
    PolicyPage,
    PolicyView,
    QueuePage,
    QueueView,
    SettingsView,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.connection import Connection

M = TypeVar("M", bound=BaseModel)


class CatalogueCalls:
    """What can be done with policies, queues, failure categories and settings.

    Manifests are mappings of any dialect that has the kind. ``put`` creates or replaces; with ``must_exist`` it
    only replaces.
    """

    _connection: Connection

    def policies(self) -> list[PolicyView]:
        """List retry policies, by name."""
        return self._connection.get(f"{API}/retry-policies", PolicyPage).items

    def policy(self, name: str) -> PolicyView:
        """Read a retry policy."""
        return self._connection.get(_path("retry-policies", name), PolicyView)

    def create_policy(self, manifest: Mapping[str, Any]) -> PolicyView:
        """Create a retry policy; it must be new."""
        return self._write("POST", f"{API}/retry-policies", manifest, PolicyView)

    def put_policy(
        self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False, if_match: str | None = None
    ) -> PolicyView:
        """Create or replace a retry policy; a change is a new revision. ``if_match`` is the revision it must have."""
        path, params = _path("retry-policies", name), _params(must_exist=must_exist)
        return self._connection.call(PolicyView, "PUT", path, json=manifest, params=params, **once(if_match))

    def delete_policy(self, name: str, *, if_match: str | None = None) -> None:
        """Delete a retry policy; ``if_match`` is the revision it must have."""
        self._connection.send("DELETE", _path("retry-policies", name), **once(if_match))

    def queues(self) -> list[QueueView]:
        """List queues, by name."""
        return self._connection.get(f"{API}/queues", QueuePage).items

    def queue(self, name: str) -> QueueView:
        """Read a queue."""
        return self._connection.get(_path("queues", name), QueueView)

    def create_queue(self, manifest: Mapping[str, Any]) -> QueueView:
        """Create a queue; it must be new."""
        return self._write("POST", f"{API}/queues", manifest, QueueView)

    def put_queue(self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False) -> QueueView:
        """Create or replace a queue."""
        return self._write("PUT", _path("queues", name), manifest, QueueView, must_exist=must_exist)

    def delete_queue(self, name: str) -> None:
        """Delete a queue."""
        self._connection.send("DELETE", _path("queues", name))

    def categories(self) -> list[CategoryView]:
        """List failure categories, in order of evaluation."""
        return self._connection.get(f"{API}/failure-categories", CategoryPage).items

    def category(self, name: str) -> CategoryView:
        """Read a failure category."""
        return self._connection.get(_path("failure-categories", name), CategoryView)

    def create_category(self, manifest: Mapping[str, Any]) -> CategoryView:
        """Create a failure category; it must be new."""
        return self._write("POST", f"{API}/failure-categories", manifest, CategoryView)

    def put_category(self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False) -> CategoryView:
        """Create or replace a failure category."""
        return self._write("PUT", _path("failure-categories", name), manifest, CategoryView, must_exist=must_exist)

    def delete_category(self, name: str) -> None:
        """Delete a failure category."""
        self._connection.send("DELETE", _path("failure-categories", name))

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

    def _write(
        self, method: str, path: str, body: Mapping[str, Any], answer: type[M], *, must_exist: bool = False
    ) -> M:
        return self._connection.call(answer, method, path, json=body, params=_params(must_exist=must_exist))


def _params(*, must_exist: bool) -> dict[str, str]:
    return {"must_exist": "true"} if must_exist else {}


def _path(collection: str, name: str) -> str:
    return f"{API}/{collection}/{quote(name, safe='')}"
