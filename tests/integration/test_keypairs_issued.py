"""Who may issue, change and revoke keypairs: each caller its own, admins everybody's, and nobody root's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import Access
from holdfast.domain.access.people import Limit, Scope
from holdfast.domain.audit import Act
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import named_id
from holdfast.errors import Forbidden, NotFound
from holdfast.ports.entries import KEYPAIR
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.tokens import IssuedKeypairs, KeypairChange
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller

LAB, ANN, BOB, ROOT = (
    Principal(name, uid=uid) for name, uid in (("lab", 1000), ("ann", 1001), ("bob", 1002), ("root", 0))
)
ACCOUNTS = {principal.name: principal for principal in (LAB, ANN, BOB, ROOT)}


class Lab:
    """The operations, and callers of them."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), VirtualClock()
        self.store.put_settings(RetrySettings(), None, access=Access(((Role.USER, ("user:ann", "user:bob")),)))
        self.backend = Backend(self.store, self.clock, Counting(), NoLogs(), LAB, account=ACCOUNTS.get)
        self.keypairs = IssuedKeypairs(self.backend)

    def caller(self, principal: Principal, limit: Limit | None = None) -> Caller:
        return self.backend.caller(evolve(principal, limit=limit), origin="", request_id="")


def test_everybody_issues_changes_and_revokes_their_own() -> None:
    lab = Lab()
    ann, bob = lab.caller(ANN), lab.caller(BOB)
    own = lab.keypairs.issue(ann)
    assert (own.owner, own.admin, own.active, own.created_at) == ("ann", False, True, lab.clock.now())
    assert lab.keypairs.issue(ann).name != own.name
    assert lab.keypairs.update(ann, own.name, KeypairChange(active=False)).active is False
    assert lab.keypairs.get(ann, own.name).active is False
    assert lab.keypairs.list(bob) == []
    for refused in (lab.keypairs.get, lab.keypairs.revoke):
        with pytest.raises(NotFound):
            refused(bob, own.name)
    with pytest.raises(NotFound):
        lab.keypairs.update(bob, own.name, KeypairChange(active=True))
    lab.keypairs.revoke(ann, own.name)
    assert own.name not in lab.store.catalogue().of(KEYPAIR)
    last = lab.store.audit(limit=20)[-1].entry
    assert (last.act, last.subject, last.name, last.caller.principal.name) == (Act.DELETE, "keypair", own.name, "ann")


def test_an_admin_issues_everybodys_and_gives_them_all_rights() -> None:
    lab = Lab()
    admin = lab.caller(LAB)
    keypair = lab.keypairs.issue(admin, "ann", KeypairChange(admin=True))
    assert (keypair.owner, keypair.admin) == ("ann", True)
    assert lab.keypairs.update(admin, keypair.name, KeypairChange(admin=False)).admin is False
    assert [one.owner for one in lab.keypairs.list(admin)] == ["ann"]
    for name in ("ann", "bob", "lab"):
        assert lab.keypairs.user_of(admin, named_id("user", name)) == name
    with pytest.raises(NotFound):
        lab.keypairs.user_of(admin, named_id("user", "eve"))


def test_nobody_else_has_anothers_or_more_than_they_may() -> None:
    lab = Lab()
    ann, admin = lab.caller(ANN), lab.caller(LAB)
    own = lab.keypairs.issue(ann)
    with pytest.raises(Forbidden, match="may not create keypairs of bob"):
        lab.keypairs.issue(ann, "bob")
    with pytest.raises(Forbidden, match="only an admin"):
        lab.keypairs.issue(ann, change=KeypairChange(admin=True))
    with pytest.raises(Forbidden, match="only an admin"):
        lab.keypairs.update(ann, own.name, KeypairChange(admin=True))
    for caller in (admin, lab.caller(ROOT)):
        with pytest.raises(Forbidden, match="root"):
            lab.keypairs.issue(caller, "root")
    scoped = lab.caller(ANN, Limit(Role.USER, (Scope(("submit",), "job"),)))
    looking = lab.caller(ANN, Limit(Role.VIEWER))
    for caller in (scoped, looking):
        with pytest.raises(Forbidden):
            lab.keypairs.issue(caller)
    assert [*lab.store.catalogue().of(KEYPAIR)] == [own.name]
