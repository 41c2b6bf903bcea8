"""Tokens of an OpenID Connect issuer over HTTP: checked without asking it, and refused with the reason."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.entrance.oidc import LONGEST_TOKEN, Keys, bearers, usable
from holdfast.domain.access import Principal
from holdfast.domain.access.claims import Trust
from holdfast.errors import Unauthenticated
from holdfast.notify.guard import Undelivered
from holdfast.storage.sql import open_store
from tests.contract.test_client_api import served
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TRUST = Trust("https://login.example", "holdfast")
OWN = "the-embedded-token"
PATIENCE_S = 60.0


class Key:
    """A key of an issuer."""

    def __init__(self, kid: str | None, private: Any = None, algorithm: str = "RS256", **more: str) -> None:  # noqa: ANN401 - of each kind
        self.kid, self.algorithm, self.more = kid, algorithm, more
        self.private = private or rsa.generate_private_key(65537, 2048)

    def public(self) -> dict[str, Any]:
        made = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key(), as_dict=True)
        return {**made, **({"kid": self.kid} if self.kid else {}), **self.more}

    def token(self, clock: VirtualClock, **claims: object) -> str:
        told = {"iss": TRUST.issuer, "aud": TRUST.audience, "sub": "ann", "exp": clock.now() + 300, "iat": clock.now()}
        headers = {"kid": self.kid} if self.kid else None
        return jwt.encode({**told, **claims}, self.private, self.algorithm, headers)


class Issuer:
    """What an issuer says to whoever reads its keys."""

    def __init__(self) -> None:
        self.keys: Sequence[object] = []
        self.failure: str | None = None
        self.hangs = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.read_times = 0

    def read(self, issuer: str) -> Sequence[object]:
        assert issuer == TRUST.issuer
        self.read_times += 1
        self.hangs.set()
        assert self.goes_on.wait(PATIENCE_S)
        if self.failure:
            raise Undelivered(self.failure)
        return self.keys


class Lab:
    """A server that trusts an issuer."""

    def __init__(self, path: Path, stack: ExitStack, *keys: Key, failure: str | None = None) -> None:
        self.clock, self.issuer = VirtualClock(), Issuer()
        self.issuer.failure = failure
        self.issuer.keys = [key.public() for key in keys]
        self.accounts: dict[str, Principal] = {}
        store = open_store(path)
        stack.callback(store.close)
        clock = self.clock.now, self.clock.steady
        self.issued = bearers(TRUST, self.issuer.read, clock, self.accounts.get)
        entrance = Entrance(Principal("lab", uid=1000), OWN, issued=self.issued)
        app = create_app(store=store, clock=self.clock, ids=Counting(), logs=NoLogs(), entrance=entrance)
        self.http = stack.enter_context(httpx.Client(base_url=stack.enter_context(served(app)), timeout=PATIENCE_S))

    def ask(self, token: str, path: str = "/api/v1/me") -> httpx.Response:
        return self.http.get(path, headers={"Authorization": f"Bearer {token}"})

    def refused(self, token: str) -> str:
        """Say why a token opens nothing, without the wait of whoever guesses; who shows it is told what to do, too."""
        with pytest.raises(Unauthenticated) as caught:
            anyio.run(self.issued, token)
        assert caught.value.hint
        return caught.value.message


KEY = Key("one")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def lab(tmp_path: Path, stack: ExitStack) -> Lab:
    return Lab(tmp_path / "holdfast.db", stack, KEY)


def test_who_shows_a_token_is_its_bearer_with_the_roles_that_the_settings_give(lab: Lab) -> None:
    token = KEY.token(lab.clock, groups=["ml"])
    assert lab.ask(token).json() == {"name": "oidc:ann", "groups": ["oidc:ml"], "via": "oidc"}
    none = lab.ask(token, "/api/v1/jobs")
    assert (none.status_code, "oidc:ann has no role here" in none.text) == (403, True)
    own = {"Authorization": f"Bearer {OWN}"}
    lab.http.put("/api/v1/settings", headers=own, json={"access": {"user": ["group:oidc:ml"]}}).raise_for_status()
    lab.clock.time += 1
    job = {"name": "train", "command": ["true"]}
    made = lab.http.post("/api/v1/jobs", headers={"Authorization": f"Bearer {token}"}, json=job)
    assert (made.status_code, made.json()["submitted_by"]) == (201, "oidc:ann")
    assert [one["actor"] for one in lab.ask(OWN, "/api/v1/audit").json()["items"]][-1] == "oidc:ann"
    assert lab.ask(KEY.token(lab.clock), "/api/v1/jobs").status_code == 403, "without the group"
    assert lab.issuer.read_times == 1


@pytest.mark.parametrize(
    "key",
    [
        Key("p", ec.generate_private_key(ec.SECP256R1()), "ES256"),
        Key("q", ec.generate_private_key(ec.SECP384R1()), "ES384", use="sig", alg="ES384"),
        Key("e", ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        Key("s", algorithm="PS256"),
        Key(None, algorithm="RS512"),
    ],
    ids=lambda key: key.algorithm,
)
def test_what_issuers_sign_with_is_taken(key: Key, tmp_path: Path, stack: ExitStack) -> None:
    lab = Lab(tmp_path / "holdfast.db", stack, key)
    assert lab.ask(key.token(lab.clock)).json()["name"] == "oidc:ann"


def unsigned(claims: dict[str, object], **header: object) -> str:
    parts = [json.dumps(part).encode() for part in ({"typ": "JWT", **header}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def by_public_key(claims: dict[str, object]) -> str:
    """Sign as with a secret, by what everybody knows: a checker that lets tokens choose how would take it."""
    public = KEY.private.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    signed = unsigned(claims, alg="HS256", kid="one")[:-1]
    made = hmac.digest(pem, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def test_tokens_that_open_nothing_say_why(lab: Lab) -> None:
    token = KEY.token(lab.clock)
    assert lab.ask(token).status_code == 200
    hour_s = 3600
    claims = jwt.decode(token, options={"verify_signature": False})
    told = {
        "expired": lab.refused(KEY.token(lab.clock, exp=lab.clock.now() - hour_s)),
        "early": lab.refused(KEY.token(lab.clock, nbf=lab.clock.now() + hour_s)),
        "audience": lab.refused(KEY.token(lab.clock, aud="other")),
        "issuer": lab.refused(KEY.token(lab.clock, iss="https://other.example")),
        "foreign key": lab.refused(Key("one").token(lab.clock)),
        "none": lab.refused(unsigned(claims, alg="none", kid="one")),
        "secret": lab.refused(by_public_key(claims)),
        "another's algorithm": lab.refused(unsigned(claims, alg="ES256", kid="one") + "c2ln"),
        "logout": lab.refused(jwt.encode(claims, KEY.private, "RS256", {"kid": "one", "typ": "logout+jwt"})),
        "changed": lab.refused(
            ".".join([token.split(".")[0], unsigned({**claims, "sub": "bob"}).split(".")[1], "c2ln"])
        ),
        "cut": lab.refused(token[:-5]),
        "huge": lab.refused(KEY.token(lab.clock, groups=["x" * 1000] * 20)),
        "malformed": lab.refused("a.b.c"),
        "deep": lab.refused(f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.e30.c2ln"),
        "no object": lab.refused(unsigned([], alg="RS256", kid="one")),  # type: ignore[arg-type]
        "detached": lab.refused(unsigned(claims, alg="RS256", kid="one", b64=False, crit=["b64"])),
        "a number": lab.refused(unsigned(claims, alg="RS256", kid=7)),
    }
    assert told["expired"] == "the token expired 1h ago by this server's clock, which may be wrong"
    assert told["early"] == "the token becomes valid only in 1h by this server's clock, which may be wrong"
    assert "not for 'holdfast'" in told["audience"]
    assert "issuer is 'https://other.example'" in told["issuer"]
    assert told["foreign key"] == "the token's signature is not its issuer's"
    assert told["changed"] == told["foreign key"]
    assert "signed with 'none', which is not accepted" in told["none"]
    assert "signed with 'HS256', which is not accepted" in told["secret"]
    assert "a key that https://login.example does not have: one, ES256" in told["another's algorithm"]
    assert "'logout+jwt', which gives no access" in told["logout"]
    assert f"at most {LONGEST_TOKEN} are read" in told["huge"]
    broken = {told[name] for name in ("malformed", "cut", "deep", "no object", "detached", "a number")}
    assert broken == {"this is not a complete OpenID Connect token"}


def test_a_token_is_refused_as_soon_as_it_expires_though_it_was_checked(lab: Lab) -> None:
    token = KEY.token(lab.clock)
    assert lab.ask(token).status_code == 200
    lab.clock.set_by = 3600
    answer = lab.ask(token)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.json()["detail"] == "the token expired 55m ago by this server's clock, which may be wrong"
    assert answer.json()["hint"] == "log in again; if it should still be valid, check the server's clock: date"


def test_keys_that_change_are_known_at_once_and_those_that_are_gone_open_nothing(lab: Lab) -> None:
    old, new = KEY.token(lab.clock), Key("two")
    assert lab.ask(old).status_code == 200
    lab.issuer.keys = [new.public()]
    assert lab.ask(new.token(lab.clock)).status_code == 200
    assert "does not have: one" in lab.refused(old)
    assert "does not have: three" in lab.refused(Key("three").token(lab.clock))


def test_the_only_key_of_an_issuer_may_change_without_a_name(tmp_path: Path, stack: ExitStack) -> None:
    old, new = Key(None), Key(None)
    lab = Lab(tmp_path / "holdfast.db", stack, old)
    assert lab.ask(old.token(lab.clock)).status_code == 200
    lab.issuer.keys = [new.public()]
    assert lab.ask(new.token(lab.clock)).status_code == 200
    assert lab.refused(old.token(lab.clock)) == "the token's signature is not its issuer's"
    for _ in range(5):
        assert "does not have: without a name, RS256" in lab.refused(Key(None).token(lab.clock))
    assert lab.issuer.read_times == 3


def test_names_of_keys_that_are_made_up_hardly_cost_the_issuer_anything(lab: Lab) -> None:
    made = jwt.encode({"iss": TRUST.issuer, "aud": TRUST.audience, "sub": "x", "exp": lab.clock.now() + 60}, "x" * 32)
    head, body, sign = made.split(".")
    assert lab.ask(KEY.token(lab.clock)).status_code == 200
    for number in range(30):
        head = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": f"k{number}"}).encode()).decode().rstrip("=")
        assert "does not have" in lab.refused(f"{head}.{body}.{sign}")
    assert lab.issuer.read_times == 3
    assert lab.ask(KEY.token(lab.clock)).status_code == 200
    lab.clock.time += 30
    new = Key("new")
    lab.issuer.keys = [new.public()]
    assert lab.ask(new.token(lab.clock)).status_code == 200


def test_an_issuer_that_is_away_keeps_nobody_out_whose_key_is_known(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    token, new = KEY.token(lab.clock), Key("two")
    assert lab.ask(token).status_code == 200
    lab.issuer.failure = "login.example:443 cannot be reached: Connection refused"
    away = lab.ask(new.token(lab.clock))
    assert (away.status_code, away.json()["code"]) == (503, "unavailable")
    assert "https://login.example cannot be asked for the key of this token: login.example:443" in away.text
    assert "tokens signed with a known key are accepted meanwhile" in away.json()["hint"]
    with caplog.at_level(logging.WARNING):
        lab.clock.time += 250
        assert lab.ask(token).status_code == 200
        lab.clock.time += 600
        assert lab.ask(KEY.token(lab.clock)).status_code == 200, "however old its keys are"
    lab.issuer.failure, lab.issuer.keys = None, [new.public()]
    lab.clock.time += 30
    assert lab.ask(new.token(lab.clock)).status_code == 200


def test_a_server_that_starts_without_its_issuer_takes_tokens_once_it_is_back(tmp_path: Path, stack: ExitStack) -> None:
    lab = Lab(tmp_path / "holdfast.db", stack, KEY, failure="no answer within 5 s")
    away = lab.ask(KEY.token(lab.clock))
    assert (away.status_code, "cannot be asked for the key of this token: no answer within 5 s" in away.text) == (
        503,
        True,
    )
    assert lab.ask(OWN, "/api/v1/jobs").status_code == 200
    lab.issuer.failure = None
    assert lab.ask(KEY.token(lab.clock)).status_code == 200


def test_a_slow_issuer_keeps_nobody_else_waiting(lab: Lab) -> None:
    token, new = KEY.token(lab.clock), Key("two")
    assert lab.ask(token).status_code == 200
    lab.issuer.goes_on.clear()
    lab.issuer.hangs.clear()
    lab.issuer.keys = [KEY.public(), new.public()]
    answers: list[int] = []
    waiting = [
        threading.Thread(target=lambda: answers.append(lab.ask(new.token(lab.clock)).status_code)) for _ in range(60)
    ]
    for each in waiting:
        each.start()
    assert lab.issuer.hangs.wait(PATIENCE_S)
    began = time.monotonic()
    for _ in range(20):
        assert lab.ask(token).status_code == 200
        assert lab.ask(OWN, "/api/v1/jobs").status_code == 200
    assert time.monotonic() - began < PATIENCE_S
    assert not answers
    lab.issuer.goes_on.set()
    for each in waiting:
        each.join()
    assert (answers, lab.issuer.read_times) == ([200] * 60, 2)


def test_old_keys_are_read_again_beside_the_calls_that_use_them(lab: Lab) -> None:
    assert lab.ask(KEY.token(lab.clock)).status_code == 200
    lab.issuer.goes_on.clear()
    lab.issuer.hangs.clear()
    lab.clock.time += 601
    for _ in range(3):
        assert lab.ask(KEY.token(lab.clock)).status_code == 200
    assert lab.issuer.hangs.wait(PATIENCE_S)
    assert lab.issuer.read_times == 2
    lab.issuer.goes_on.set()


def test_an_account_of_the_settings_is_taken_and_never_root(lab: Lab) -> None:
    lab.accounts["oidc:ann"] = Principal("oidc:ann", ("staff",), uid=1001)
    lab.accounts["oidc:eve"] = Principal("oidc:eve", uid=0)
    assert lab.ask(KEY.token(lab.clock), "/api/v1/jobs").status_code == 200, "who has an account is a user"
    assert lab.ask(KEY.token(lab.clock)).json()["groups"] == []
    assert lab.ask(KEY.token(lab.clock, sub="eve"), "/api/v1/jobs").status_code == 403


def test_a_server_without_an_issuer_says_so(tmp_path: Path, stack: ExitStack) -> None:
    lab = Lab(tmp_path / "holdfast.db", stack, KEY)
    store = open_store(tmp_path / "other.db")
    stack.callback(store.close)
    entrance = Entrance(Principal("lab"), OWN)
    app = create_app(store=store, clock=lab.clock, ids=Counting(), logs=NoLogs(), entrance=entrance)
    answer = httpx.get(
        f"{stack.enter_context(served(app))}/api/v1/me",
        headers={"Authorization": f"Bearer {KEY.token(lab.clock)}"},
        timeout=PATIENCE_S,
    )
    assert (answer.status_code, "it trusts no issuer" in answer.text) == (401, True)


@pytest.mark.parametrize(
    "key",
    [
        Key("k", rsa.generate_private_key(65537, 1024)).public(),  # noqa: S505 - what is refused
        Key("k", use="enc").public(),
        Key("k", alg="RS384").public(),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"},
        {"kty": "RSA", "kid": "k"},
        {"kty": ["RSA"], "kid": "k"},
        {"kty": "EC", "crv": "P-256", "x": 1, "y": None, "kid": "k"},
        "key",
    ],
    ids=["short", "for secrets", "for another algorithm", "secret", "empty", "listed", "numbers", "text"],
)
def test_keys_that_are_no_good_are_not_used(key: object) -> None:
    assert ("k", "RS256") not in usable([key])
    good = usable([key, KEY.public()])
    assert ("one", "RS256") in good


def test_who_waits_for_keys_and_goes_away_takes_nobody_along() -> None:
    began, goes_on = threading.Event(), threading.Event()

    def read() -> dict[tuple[str | None, str], Any]:
        began.set()
        goes_on.wait(PATIENCE_S)
        return dict(usable([KEY.public()]))

    reading = Keys("https://login.example", read, lambda: 0.0).begin()
    assert reading is not None
    assert began.wait(PATIENCE_S)
    assert not reading.cancel()
    goes_on.set()
    reading.result(PATIENCE_S)
