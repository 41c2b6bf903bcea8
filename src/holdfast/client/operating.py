"""The calls about settings, nodes, devices, notifications and API tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from holdfast.wire.base import API
from holdfast.wire.catalogue import (
    ConfigurationView,
    DevicePage,
    DeviceView,
    NodePage,
    NodeView,
    SettingsView,
    TokenMade,
    TokenPage,
    TokenView,
)
from holdfast.wire.notifications import NotificationPage, NotificationView, TestView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.client.connection import Connection


class OperatingCalls:
    """Settings, nodes, devices, notifications and API tokens."""

    _connection: Connection

    def settings(self) -> SettingsView:
        """Read the settings."""
        return self._connection.get(f"{API}/settings", SettingsView)

    def put_settings(self, settings: Mapping[str, Any], *, dry_run: bool = False) -> SettingsView:
        """Replace the settings; a field left out gets its default. A dry run stores nothing."""
        params = {"dry_run": "true"} if dry_run else {}
        return self._connection.call(SettingsView, "PUT", f"{API}/settings", json=settings, params=params)

    def reload_settings(self) -> ConfigurationView:
        """Make the server read its configuration file again; returns its contents."""
        return self._connection.call(ConfigurationView, "POST", f"{API}/settings/reload")

    def nodes(self) -> list[NodeView]:
        """List nodes with their capacity and use."""
        return self._connection.get(f"{API}/nodes", NodePage).items

    def cordon(self, node: str, *, reason: str = "") -> list[NodeView]:
        """Cordon the nodes of a name: nothing more is placed on them."""
        return self._about_node(node, "cordon", {"reason": reason})

    def drain(self, node: str, *, reason: str = "") -> list[NodeView]:
        """Cordon the nodes of a name, and stop their runs, which continue elsewhere."""
        return self._about_node(node, "drain", {"reason": reason})

    def uncordon(self, node: str) -> list[NodeView]:
        """Uncordon the nodes of a name."""
        return self._about_node(node, "uncordon", None)

    def _about_node(self, node: str, verb: str, body: Mapping[str, Any] | None) -> list[NodeView]:
        path = f"{_path('nodes', node)}/{verb}"
        return self._connection.call(NodePage, "POST", path, json=body).items

    def devices(self) -> list[DeviceView]:
        """List the GPUs of all nodes, and the runs that hold them."""
        return self._connection.get(f"{API}/devices", DevicePage).items

    def cordon_device(self, reference: str, *, reason: str = "") -> DeviceView:
        """Cordon a GPU: no further run gets it. ``reference`` is its id, or ID@NODE."""
        return self._steer_device(reference, "cordon", reason)

    def uncordon_device(self, reference: str, *, reason: str = "") -> DeviceView:
        """Uncordon a GPU."""
        return self._steer_device(reference, "uncordon", reason)

    def _steer_device(self, reference: str, verb: str, reason: str) -> DeviceView:
        path = f"{_path('devices', reference)}/{verb}"
        return self._connection.call(DeviceView, "POST", path, repeatable=True, json={"reason": reason})

    def test_notifier(self, name: str) -> TestView:
        """Send a test notification at once, with one try."""
        return self._connection.call(TestView, "POST", f"{_path('notifiers', name)}/test")

    def notifications(
        self, *, state: str | None = None, to: str | None = None, about: str | None = None, limit: int | None = None
    ) -> Iterator[NotificationView]:
        """List notifications in order of commits, page by page; without a limit, all.

        Args:
            state: ``Waiting``, ``Delivered`` or ``Dead``.
            to: Name of a notifier.
            about: Id of a job or array.
            limit: The most to list.
        """
        where = {"state": state, "to": to, "about": about}
        for page in self._connection.pages(f"{API}/notifications", NotificationPage, where, limit):
            yield from page.items

    def notification(self, notification_id: str) -> NotificationView:
        """Read a notification in full."""
        return self._connection.get(_path("notifications", notification_id), NotificationView)

    def replay(self, notification_id: str) -> NotificationView:
        """Send a notification that was delivered or given up once more, under its id."""
        return self._connection.call(NotificationView, "POST", f"{_path('notifications', notification_id)}/replay")

    def create_token(
        self,
        name: str,
        *,
        user: str | None = None,
        role: str | None = None,
        scopes: Sequence[str] = (),
        expires_s: float | None = None,
    ) -> TokenMade:
        """Create a token; only this answer has its text.

        Args:
            name: The token's name.
            user: The user that callers with the token act as; by default the caller.
            role: The token's role; by default that of its user.
            scopes: What it may be used for, each as ``verbs@kind``, or for work in one place ``verbs@job:queue=NAME``
                or ``verbs@job:group=GROUP``; by default everything.
            expires_s: In how many seconds it expires; by default never.
        """
        body = {"name": name, "user": user, "role": role, "scopes": [*scopes], "expires_s": expires_s}
        return self._connection.call(TokenMade, "POST", f"{API}/tokens", json=body)

    def tokens(self) -> list[TokenView]:
        """List the caller's tokens by name; for admins, all."""
        return self._connection.get(f"{API}/tokens", TokenPage).items

    def revoke_token(self, name: str) -> TokenView:
        """Revoke a token."""
        return self._connection.call(TokenView, "POST", f"{_path('tokens', name)}/revoke")


def _path(collection: str, name: str) -> str:
    return f"{API}/{collection}/{quote(name, safe='')}"
