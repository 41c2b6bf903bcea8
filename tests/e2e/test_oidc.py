"""People who log in at an issuer, by every way in that takes a token."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from holdfast.app.entrance.issuer import issued, trust_of
from holdfast.app.settings import read_settings
from holdfast.app.time import SystemClock
from holdfast.errors import InvalidSetting, Unavailable
from tests.e2e import people
from tests.e2e.issuer import AUDIENCE, Issuer
from tests.e2e.server import PATIENCE_S, Server
from tests.e2e.test_contexts import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANN = {"email": "ann@example.org", "email_verified": True, "groups": ["ml"]}
BOB = {"email": "bob@example.org", "email_verified": True}


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    issuer = Issuer(tmp_path, ann=ANN, bob=BOB)
    issuer.start()
    yield issuer
    issuer.stop()


@pytest.fixture
def server(tmp_path: Path, issuer: Issuer) -> Iterator[Server]:
    trusted = {"HOLDFAST_OIDC_ISSUER": issuer.url, "HOLDFAST_OIDC_AUDIENCE": AUDIENCE}
    server = Server(tmp_path, **trusted, HOLDFAST_OIDC_USER_CLAIM="email")
    yield server
    server.clean_up()


def asked(server: Server, token: str) -> httpx.Response:
    url = f"{server.address()['url']}/api/v1/jobs"
    return httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S)


def test_who_logs_in_with_a_token_of_the_issuer_works_as_its_bearer(server: Server, issuer: Issuer) -> None:
    with server.start() as admin:
        admin.put_settings({"access": {"user": ["group:oidc:ml"], "viewer": ["user:oidc:bob@example.org"]}})
        file = server.folder / "ann.token"
        file.write_text(issuer.token("ann"))
        file.chmod(0o600)
        away = Desk(server.folder)
        logged = away.run("login", str(server.address()["url"]), "--name", "lab", "--token-file", str(file))
        assert logged.returncode == 0, logged
        assert away.run("run", "--name", "hello", "--", "echo", "hello").stdout == "hello\n"
        assert admin.job("hello").submitted_by == "oidc:ann@example.org"
        assert [(one.actor, one.action) for one in admin.audit()][-1] == ("oidc:ann@example.org", "create")
        bob = asked(server, issuer.token("bob"))
        assert (bob.status_code, [job["name"] for job in bob.json()["items"]]) == (200, ["hello"])
        assert issuer.token("ann") not in server.log.read_text()


@pytest.mark.slow
def test_tokens_of_a_real_issuer_open_nothing_where_they_should_not(server: Server, issuer: Issuer) -> None:
    with server.start() as admin:
        admin.put_settings({"access": {"user": ["group:oidc:ml"]}})
        first = issuer.token("ann")
        assert asked(server, first).status_code == 200
        other = asked(server, issuer.token("ann", audience="another-application"))
        assert (other.status_code, "the token is for 'another-application'" in other.text) == (401, True), other.text
        issuer.stop()
        assert asked(server, first).status_code == 200, "its key is known"
        issuer.start(lasts_s=-3600)
        late = asked(server, issuer.token("ann"))
        assert (late.status_code, "expired 1h" in late.text, "check the server's clock" in late.text) == (
            401,
            True,
            True,
        )
        issuer.stop()
        issuer.start()
        assert asked(server, issuer.token("ann")).status_code == 200, "with the new key"
        gone = asked(server, first)
        assert (gone.status_code, "signature is not its issuer" in gone.text) == (401, True), gone.text
        impostor = Issuer(server.folder, ann=ANN)
        impostor.start()
        try:
            foreign = asked(server, impostor.token("ann"))
            assert (foreign.status_code, f"issuer is '{impostor.url}'" in foreign.text) == (401, True)
        finally:
            impostor.stop()


@pytest.mark.slow
def test_a_server_starts_without_its_issuer_and_says_what_is_wrong(server: Server, issuer: Issuer) -> None:
    token = issuer.token("ann")
    issuer.stop()
    with server.start() as admin:
        admin.put_settings({"access": {"user": ["group:oidc:ml"]}})
        away = asked(server, token)
        assert (away.status_code, "cannot be asked for the key" in away.text) == (503, True), away.text
        assert "Connection refused" in away.text
        assert admin.submit({"name": "meanwhile", "command": ["true"]}).name == "meanwhile"
    assert f"the keys of {issuer.url} cannot be read" in server.log.read_text()


@pytest.mark.slow
def test_bearers_of_tokens_run_as_the_accounts_that_the_settings_name(issuer: Issuer) -> None:
    for machine in people.machine(
        HOLDFAST_OIDC_ISSUER=issuer.url,
        HOLDFAST_OIDC_AUDIENCE=AUDIENCE,
        HOLDFAST_ACCOUNTS="oidc:ann={bob}",
    ):
        url = f"{machine.server.address()['url']}/api/v1/jobs"
        with machine.server.client() as admin:
            admin.put_settings({"access": {"user": ["user:oidc:bob"]}})

        def submit(name: str, url: str = url) -> httpx.Response:
            headers = {"Authorization": f"Bearer {issuer.token(name)}"}
            return httpx.post(url, headers=headers, json={"name": name, "shell": "id -un"}, timeout=PATIENCE_S)

        assert submit("ann").status_code == 201
        machine.server.run("wait", "ann")
        assert machine.server.run("logs", "ann").stdout == f"{machine.bob.name}\n"
        refused = submit("bob")
        assert (refused.status_code, refused.json()["code"]) == (403, "refused")
        assert "oidc:bob has no Unix account" in refused.json()["detail"]
        assert "HOLDFAST_ACCOUNTS" in refused.json()["hint"]


@pytest.mark.slow
def test_a_door_takes_the_issuers_tokens(server: Server, issuer: Issuer) -> None:
    server.environ = {**server.environ, "HOLDFAST_DOORS": "armada", "HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0"}
    server.start().close()
    doors = server.address()["doors"]
    assert isinstance(doors, dict)
    with grpc.insecure_channel(doors["armada"]) as channel:
        call: Any = channel.unary_unary("/api.Submit/Health")

        def asks(token: str) -> tuple[str, str]:
            try:
                call(b"", metadata=(("authorization", f"Bearer {token}"),), timeout=PATIENCE_S)
            except grpc.RpcError as error:
                return error.code().name, error.details() or ""
            return "OK", ""

        assert asks(issuer.token("ann")) == ("OK", "")
        code, said = asks(issuer.token("ann", audience="another-application"))
        assert (code, "the token is for 'another-application'" in said) == ("UNAUTHENTICATED", True), said
        issuer.stop()
        assert asks(foreign_key(issuer))[0] == "UNAVAILABLE"


def foreign_key(issuer: Issuer) -> str:
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "email": "a@b", "exp": 9_999_999_999}
    return jwt.encode(claims, rsa.generate_private_key(65537, 2048), "RS256", {"kid": "unknown"})


def test_without_its_library_a_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "holdfast.app.entrance.oidc", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    assert issued(read_settings(), SystemClock()) is None
    trusted = read_settings(oidc_issuer="https://login.example", oidc_audience=AUDIENCE)
    with pytest.raises(Unavailable, match="need a library that is not installed") as caught:
        issued(trusted, SystemClock())
    assert caught.value.hint == "pip install 'holdfast-scheduler[oidc]'"


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"oidc_audience": "a"}, ["ISSUER"]),
        ({"oidc_issuer": "http://login.example"}, ["ISSUER", "AUDIENCE"]),
        ({"oidc_issuer": "https://[x", "oidc_audience": "a"}, ["ISSUER"]),
        ({"oidc_issuer": "login", "oidc_audience": "a", "oidc_prefix": ""}, ["ISSUER", "PREFIX"]),
        ({"oidc_issuer": "https://login.example", "oidc_audience": "a", "oidc_prefix": "oidc"}, ["PREFIX"]),
        ({"oidc_issuer": "https://login.example", "oidc_audience": "a", "oidc_prefix": "door:"}, ["PREFIX"]),
    ],
)
def test_settings_of_an_issuer_that_cannot_be_are_refused_together(given: dict[str, str], paths: list[str]) -> None:
    with pytest.raises(InvalidSetting) as caught:
        trust_of(read_settings(**given))
    assert [problem.path for problem in caught.value.problems] == [f"HOLDFAST_OIDC_{path}" for path in paths]
