"""Who callers are taken for."""

from __future__ import annotations

import grp
import os
import pwd
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from holdfast.api.http.serving.gates import PEER, PRINCIPAL, PeerGate
from holdfast.app.entrance import accounts
from holdfast.domain.access import Principal, Via
from holdfast.errors import Refused

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

NOBODY = 65534
UNNAMED = 4_000_000_001


def test_a_process_is_its_account_whatever_its_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("USER", "somebody")
    uid = os.geteuid()
    assert accounts.account() == Principal(pwd.getpwuid(uid).pw_name, uid=uid)


def test_an_account_without_a_name_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accounts.principal_of(UNNAMED) == Principal(str(UNNAMED), via=Via.SOCKET, uid=UNNAMED)
    monkeypatch.setattr(os, "geteuid", lambda: UNNAMED)
    assert accounts.account() == Principal(str(UNNAMED), uid=UNNAMED)


def test_who_is_at_a_socket_has_the_groups_that_the_system_knows() -> None:
    found = accounts.principal_of(1)
    primary = grp.getgrgid(pwd.getpwuid(1).pw_gid).gr_name
    assert (found.name, found.via, found.uid) == (pwd.getpwuid(1).pw_name, Via.SOCKET, 1)
    assert primary in found.groups


def test_accounts_that_the_system_cannot_tell_apart_are_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match=f"another user namespace, and is seen here only as number {NOBODY}"):
        accounts.principal_of(NOBODY)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    assert accounts.own_peers()(NOBODY).uid == NOBODY, "a server that is itself seen so knows itself"


def test_a_server_lets_itself_and_root_in_and_says_whom_it_does_not() -> None:
    admit, own = accounts.own_peers(), os.geteuid()
    assert {admit(uid).uid for uid in (own, 0)} == {own, 0}
    for uid, name in ((1 if own != 1 else 2, ""), (UNNAMED, f"the account with the number {UNNAMED}")):
        with pytest.raises(Refused, match=f"accepts requests of that account only, not {name or '[a-z]'}"):
            admit(uid)


def test_accounts_are_looked_up_once_in_a_while_and_refusals_each_time() -> None:
    looked: list[int] = []
    now, served = [0.0], list[Any]()

    def peer(uid: int) -> Principal:
        looked.append(uid)
        if uid == NOBODY:
            msg = "no"
            raise Refused(msg)
        return Principal(f"user{uid}", uid=uid)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - as ASGI has it
        served.append(scope["state"].get(PRINCIPAL))

    async def whose(text: str, *, hint: str) -> Principal:  # noqa: ARG001 - as the gate has it
        return Principal(text)

    gate = PeerGate(app, peer=peer, now=lambda: now[0], owner_of=whose)

    def ask(uid: int | None = None, shown: str = "") -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        async def send(message: Any) -> None:  # noqa: ANN401 - as above
            del message

        headers = [(b"authorization", f"Bearer {shown}".encode())] if shown else []
        state: dict[str, int] = {} if uid is None else {PEER: uid}
        scope = {"type": "http", "method": "GET", "path": "/api/v1/jobs", "headers": headers, "state": state}
        anyio.run(gate, scope, receive, send)

    for at, uid in ((0.0, 7), (20.0, 7), (29.0, 8), (31.0, 7), (31.0, NOBODY), (31.0, NOBODY), (5.0, 7)):
        now[0] = at
        ask(uid)
    ask()
    assert looked == [7, 8, 7, NOBODY, NOBODY, 7], "again after a while, and where the clock was set back"
    assert [one and one.uid for one in served] == [7, 7, 8, 7, 7, None]
    for text in ("hfj_1", "hft_1"):
        ask(7, text)
    assert [one.name for one in served[-2:]] == ["hfj_1", "user7"], "a job is what its token says, and no account"
