"""Edits and reads the operator's settings; they are read again at each decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.errors import InvalidSetting
from holdfast.service.naming import unknown_names
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.ports.store import Store


class Settings(Struct, frozen=True):
    """The operator's settings."""

    store: Store

    def get(self, _caller: Caller) -> tuple[RetrySettings, str | None]:
        """Read the settings and the default policy's name."""
        catalogue = self.store.catalogue()
        return catalogue.settings, catalogue.default_policy

    def put(
        self, caller: Caller, settings: RetrySettings, default_policy: str | None, *, dry_run: bool = False
    ) -> None:
        """Replace the settings; a dry run stores nothing.

        Raises:
            InvalidSetting: The default policy does not exist.
        """
        named = () if default_policy is None else (default_policy,)
        policies = self.store.catalogue().policies
        problems = unknown_names(named, policies, "retry policy", lambda _: "defaultPolicyName")
        with audited(self.store, None if dry_run else caller, Act.UPDATE, Subject.SETTINGS, "settings"):
            if problems:
                msg = "the settings are not valid"
                raise InvalidSetting(msg, problems=problems)
            if not dry_run:
                self.store.put_settings(settings, default_policy, by=caller)
