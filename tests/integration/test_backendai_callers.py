"""Who a signed call at Backend.AI's door is from, and how guessing is slowed down; with a clock of the test's own."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from anyio import run

from holdfast.api.backendai.problems import RefusedCall
from holdfast.api.http.serving.gates import Entrance, WrongTokens
from holdfast.app.entrance.keypairs import SignedVisitors
from holdfast.app.entrance.visitors import Visitors
from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import Access
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.terms.projects import KeyPair
from holdfast.errors import Unauthenticated
from holdfast.ports.entries import KEYPAIR
from holdfast.service.access.keypairs import KeypairSecrets
from holdfast.service.operations.backend import Backend
from holdfast.wire.backendai.signatures import SignedCall
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from starlette.types import Scope

    from holdfast.domain.audit import Caller

LAB = Principal("lab", uid=1000)
KEYPAIRS = KeypairSecrets(b"the key of a test")
OWN = KEYPAIRS.access_key("lab")
ACCOUNTS = {"ann": Principal("ann", uid=1001), "root": Principal("root", uid=0)}
HOST = "127.0.0.1:8265"


class Patient(WrongTokens):
    """Remembers who would have to wait."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.waits: list[tuple[str, float]] = []

    async def wait(self, peer: str) -> None:
        self.waits.append((peer, self.delay_s(peer)))


class Threshold:
    """The door's threshold: callers of one server."""

    def __init__(self, administrator: str = "lab", anonymous: Principal | None = None) -> None:
        self.clock, self.wrong = VirtualClock(), Patient()
        self.store = MemoryStore()
        backend = Backend(self.store, self.clock, Counting(), NoLogs(), LAB, account=ACCOUNTS.get)
        visitors = Visitors(Entrance(LAB, "own"), backend, self.wrong, anonymous)
        self.visitors = SignedVisitors(visitors, KEYPAIRS, administrator)

    def scope(self, access_key: str = OWN, secret: str | None = None, owner: str = "lab", **changed: str) -> Scope:
        """Return a request, signed by the secret of its access key or another one."""
        date = datetime.fromtimestamp(self.clock.now(), UTC).isoformat()
        call = SignedCall("GET", "/v2/x?y=1", date, HOST, "application/json", "v9")
        signature = call.signature(secret or KEYPAIRS.secret(access_key, owner), date[:10].replace("-", ""))
        headers = {
            "host": HOST,
            "date": date,
            "content-type": "application/json",
            "x-backendai-version": "v9",
            "authorization": f"BackendAI signMethod=HMAC-SHA256, credential={access_key}:{signature}",
            **changed,
        }
        return {
            "type": "http",
            "method": "GET",
            "path": "/v2/x",
            "raw_path": b"/v2/x",
            "query_string": b"y=1",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
            "client": ("10.0.0.1", 5),
            "state": {"request_id": "r1"},
        }

    def caller(self, scope: Scope) -> Caller:
        return run(self.visitors.by_http, scope)


def test_the_administrator_is_the_servers_owner_with_the_origin_of_the_call() -> None:
    caller = Threshold().caller(Threshold().scope())
    assert (caller.principal.name, caller.principal.roles) == ("lab", (Role.ADMIN,))
    assert (caller.origin, caller.request_id) == ("ipv4:10.0.0.1:5", "r1")


def test_another_administrator_has_the_roles_that_the_settings_give() -> None:
    threshold = Threshold("ann")
    caller = threshold.caller(threshold.scope(KEYPAIRS.access_key("ann"), owner="ann"))
    assert (caller.principal.name, caller.principal.roles) == ("ann", (Role.USER,))
    with pytest.raises(Unauthenticated):
        threshold.caller(threshold.scope())


def test_an_entry_says_whose_calls_an_access_key_signs_and_whether_it_is_for_all_of_their_rights() -> None:
    threshold = Threshold()
    threshold.store.put_settings(RetrySettings(), None, access=Access(((Role.OPERATOR, ("user:ann",)),)))
    threshold.store.put_entry(KeyPair("AKIAANN", "ann", admin=True))
    caller = threshold.caller(threshold.scope("AKIAANN", owner="ann"))
    assert (caller.principal.name, caller.principal.uid, caller.principal.roles) == ("ann", 1001, (Role.OPERATOR,))
    threshold.store.put_entry(KeyPair("AKIAANN", "ann"))
    threshold.clock.time += 1
    assert threshold.caller(threshold.scope("AKIAANN", owner="ann")).principal.roles == (Role.USER,)


@pytest.mark.parametrize(
    "entry", [None, KeyPair("AKIAX", "ann", active=False), KeyPair("AKIAX", "bob"), KeyPair("AKIAX", "root")]
)
def test_a_keypair_that_is_off_gone_of_another_owner_or_of_root_signs_nothing(entry: KeyPair | None) -> None:
    threshold = Threshold()
    threshold.store.put_entry(KeyPair("AKIAX", "ann"))
    owner = "root" if entry and entry.owner == "root" else "ann"
    if owner == "ann":
        assert threshold.caller(threshold.scope("AKIAX", owner=owner)).principal.name == "ann"
    if entry is None:
        threshold.store.delete_entry(KEYPAIR, "AKIAX")
    else:
        threshold.store.put_entry(entry)
    threshold.clock.time += 1
    with pytest.raises(Unauthenticated):
        threshold.caller(threshold.scope("AKIAX", owner=owner))


def test_a_token_is_known_here_too_and_nothing_at_all_is_not() -> None:
    threshold = Threshold()
    assert threshold.caller(threshold.scope(authorization="Bearer own")).principal.name == "lab"
    with pytest.raises(Unauthenticated, match="not signed"):
        threshold.caller(threshold.scope(authorization=""))
    assert threshold.wrong.waits == []
    ann = Threshold(anonymous=Principal("ann"))
    assert ann.caller(ann.scope(authorization="")).principal.name == "ann"


@pytest.mark.parametrize("secret", ["guess", None])
def test_whoever_guesses_waits_longer_and_longer(secret: str | None) -> None:
    threshold = Threshold()
    for _ in range(30):
        with pytest.raises(Unauthenticated):
            threshold.caller(threshold.scope(OWN if secret else "AKIAUNKNOWN", secret))
    waits = threshold.wrong.waits
    assert {peer for peer, _ in waits} == {"ipv4:10.0.0.1"}
    assert (waits[0][1], waits[-1][1]) == (0.0, 2.0)
    assert threshold.caller(threshold.scope()).principal.name == "lab"
    assert len(threshold.wrong.waits) == 30


def test_a_call_that_is_too_old_is_no_guess() -> None:
    threshold = Threshold()
    scope = threshold.scope()
    threshold.clock.time += 900
    with pytest.raises(RefusedCall):
        threshold.caller(scope)
    assert threshold.wrong.waits == []


def test_a_server_imports_nothing_of_the_door_before_it_opens_it() -> None:
    program = "import sys, holdfast.app.server, holdfast.app.entrance.doors; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if "backendai" in name or name in {"strawberry", "graphql"}] == []
