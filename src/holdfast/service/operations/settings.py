"""Edits and reads the operators' settings, which apply from the next decision on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.catalogue import write_settings
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.errors import InvalidSetting, Refused
from holdfast.service.access.asking import asks
from holdfast.service.naming import unknown_groups_in_roles, unknown_names
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.access.grants import Access
    from holdfast.domain.audit import Caller
    from holdfast.domain.file_settings import FileSettings
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.errors import Problem
    from holdfast.ports.store import Store


class SettingsOperations(Struct, frozen=True):
    """The operations on the operators' settings."""

    store: Store

    @asks(Right.WATCH, Subject.SETTINGS)
    def get(self, _caller: Caller) -> tuple[RetrySettings, str | None, Access]:
        """Read the settings, the default policy's name and who has which rights."""
        catalogue = self.store.catalogue()
        return catalogue.settings, catalogue.default_policy, catalogue.access

    @asks(Right.WATCH, Subject.SETTINGS)
    def warnings(self, _caller: Caller, access: Access, is_group: Callable[[str], bool]) -> Sequence[Problem]:
        """Warn about groups that the machine does not have, and about an unknown default policy."""
        return [
            *unknown_groups_in_roles(access, is_group),
            *self._unknown_policy(self.store.catalogue().default_policy),
        ]

    @asks(Right.CHANGE, Subject.SETTINGS)
    def reload(
        self, caller: Caller, read: Callable[[Caller], tuple[FileSettings, bool] | None]
    ) -> tuple[FileSettings, bool]:
        """Read the configuration file again; returns its contents, and whether they are new.

        Raises:
            InvalidSetting: It cannot be read, or is not valid; the settings in force stay.
            Refused: The server has no configuration file.
        """
        with audited(self.store, caller, Act.UPDATE, Subject.SETTINGS, "settings"):
            configured = read(caller)
            if configured is None:
                msg = "this server has no configuration file"
                raise Refused(msg, hint="start it with HOLDFAST_ARMADA_CONFIG=FILE")
            return configured

    @asks(Right.CHANGE, Subject.SETTINGS)
    def put(
        self,
        caller: Caller,
        settings: RetrySettings,
        default_policy: str | None,
        access: Access,
        *,
        dry_run: bool = False,
    ) -> Access:
        """Replace the settings; a dry run stores nothing. Returns the access settings that are in force then.

        Parts of ``access`` that are not set stay as they are.

        Raises:
            InvalidSetting: The default policy does not exist, or a configuration file sets something else.
        """
        catalogue = self.store.catalogue()
        problems = self._unknown_policy(default_policy)
        if catalogue.configured is not None:
            problems = catalogue.configured.problems(settings, default_policy)
        with audited(self.store, None if dry_run else caller, Act.UPDATE, Subject.SETTINGS, "settings"):
            if problems:
                msg = "the settings are not valid"
                raise InvalidSetting(msg, problems=problems)
            if not dry_run:
                self.store.put_settings(settings, default_policy, access, caller=caller)
            return access.over(catalogue.access)

    def _unknown_policy(self, default_policy: str | None) -> list[Problem]:
        names, policies = () if default_policy is None else (default_policy,), self.store.catalogue().policies
        return unknown_names(names, policies, "retry policy", lambda _: "defaultPolicyName")


def settings_of(settings: RetrySettings, default_policy: str | None, access: Access) -> dict[str, Any]:
    """Return the fields of the settings' manifest."""
    return write_settings(settings, default_policy, access)
