"""Edits and reads retry policies; a change is a new revision and applies to failures judged after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.ports import presence
from holdfast.service.access.asking import asks
from holdfast.service.naming import not_found
from holdfast.service.refusals import audited, put_act

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.ports.store import Store


class Policies(Struct, frozen=True):
    """The named retry policies."""

    store: Store

    @asks(Right.WATCH, Subject.POLICY)
    def list(self, _caller: Caller) -> Sequence[RetryPolicy]:
        """List the newest revision of each, by name."""
        policies = self.store.catalogue().policies
        return [policies[name] for name in sorted(policies)]

    @asks(Right.WATCH, Subject.POLICY)
    def submitters(self, _caller: Caller) -> Mapping[str, str]:
        """Say who first wrote each, by its name, where that is known."""
        kind = f"{presence.POLICY} "
        found = self.store.catalogue().submitters
        return {what.removeprefix(kind): who for what, who in found.items() if what.startswith(kind)}

    @asks(Right.WATCH, Subject.POLICY)
    def get(self, _caller: Caller, name: str) -> RetryPolicy:
        """Read a policy's newest revision.

        Raises:
            NotFound: There is none of that name.
        """
        policies = self.store.catalogue().policies
        if name not in policies:
            raise not_found(name, policies, "retry policy")
        return policies[name]

    @asks(Right.CHANGE, Subject.POLICY)
    def put(
        self,
        caller: Caller,
        policy: RetryPolicy,
        *,
        create: bool | None = None,
        if_match: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> RetryPolicy:
        """Store a policy; ``create`` true: must be new, false: must exist, ``None``: either; a dry run stores nothing.

        Raises:
            AlreadyExists: It exists, and must be new.
            NotFound: It does not, and must exist.
            VersionConflict: It has none of the revisions in ``if_match``.
        """
        with audited(self.store, None if dry_run else caller, put_act(create=create), Subject.POLICY, policy.name):
            if dry_run:
                policies = self.store.catalogue().policies
                presence.require_presence(presence.POLICY, policy.name, known=policies, create=create)
                presence.require_revision(policies.get(policy.name), if_match)
                return policy
            return self.store.put_policy(policy, create=create, by=caller, if_match=if_match)

    @asks(Right.CHANGE, Subject.POLICY)
    def delete(
        self, caller: Caller, name: str, *, if_match: Collection[str] | None = None, detach: bool = False
    ) -> None:
        """Delete a policy; its revisions stay readable, so that old decisions can be explained.

        Args:
            caller: Who deletes it.
            name: Its name.
            if_match: Revisions it must have one of.
            detach: Also from the queues that name it.

        Raises:
            NotFound: There is none of that name.
            VersionConflict: It has none of the revisions in ``if_match``.
            Conflict: A queue names it, or it is the default.
        """
        with audited(self.store, caller, Act.DELETE, Subject.POLICY, name):
            self.get(caller, name)
            self.store.delete_policy(name, by=caller, if_match=if_match, detach=detach)
