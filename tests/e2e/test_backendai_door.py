"""Who comes in by Backend.AI's door: signed calls, their dates, wrong keys, and what is left for the administrator."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.e2e.backendai_stage import BackendAiServer, door, signed
from tests.e2e.server import wait_until
from tests.e2e.test_network import EVERYWHERE, TOKEN, issue

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["door"]
ANNOUNCEMENT = "/manager/announcement"


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert set(body) <= {"type", "title", "error_code", "msg", "data"}
    assert body["type"].startswith("https://api.backend.ai/probs/")
    return answer.status_code, body["error_code"]


def test_a_client_asks_for_the_versions_unsigned_and_a_browser_gets_the_servers_own_answer(
    door: BackendAiServer,
) -> None:
    url = door.variables()["BACKEND_ENDPOINT"]
    asked = httpx.get(url)
    assert (asked.status_code, asked.json()) == (200, {"version": "v9.20250722", "manager": "26.9.6"})
    browser = httpx.get(url, headers={"accept": "text/html,application/xhtml+xml"})
    assert (browser.status_code, "holdfast.dev" in browser.text) == (401, True)
    assert httpx.get(f"{url}/readyz").status_code == 200


def test_a_signed_call_is_answered_and_any_other_is_refused(door: BackendAiServer) -> None:
    told = door.variables()
    url, access_key, secret = (told[f"BACKEND_{name}"] for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY"))
    answer = door.call("GET", ANNOUNCEMENT)
    assert (answer.status_code, answer.json()) == (200, {"enabled": False, "message": ""})
    streamed = signed(url, access_key, secret, "GET", ANNOUNCEMENT, kind="application/octet-stream")
    del streamed["Content-Type"]
    assert httpx.get(f"{url}{ANNOUNCEMENT}", headers=streamed).status_code == 200
    wrong = (401, "user_auth_unauthorized")
    assert problem(httpx.get(f"{url}{ANNOUNCEMENT}")) == wrong
    for key, of in ((access_key, secret[:-1] + "!"), ("AKIAUNKNOWN", secret), (access_key, "")):
        assert problem(httpx.get(f"{url}{ANNOUNCEMENT}", headers=signed(url, key, of, "GET", ANNOUNCEMENT))) == wrong
    for name, value in (
        ("X-BackendAI-Version", "v8"),
        ("Content-Type", "text/plain"),
        ("Authorization", "BackendAI x"),
    ):
        assert problem(door.call("GET", ANNOUNCEMENT, headers={name: value})) == wrong
    headers = signed(url, access_key, secret, "GET", ANNOUNCEMENT)
    assert problem(httpx.get(f"{url}{ANNOUNCEMENT}?x=1", headers=headers)) == wrong
    assert problem(door.call("GET", f"{ANNOUNCEMENT}?x=1")) == (400, "api_parsing_invalid-parameters")


def test_a_call_of_another_hour_or_without_a_date_is_a_bad_request(door: BackendAiServer) -> None:
    told = door.variables()
    url, access_key, secret = (told[f"BACKEND_{name}"] for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY"))
    for minutes, status in ((-14, 200), (14, 200), (-16, 400), (16, 400)):
        date = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
        headers = signed(url, access_key, secret, "GET", ANNOUNCEMENT, date=date)
        answer = httpx.get(f"{url}{ANNOUNCEMENT}", headers=headers)
        assert answer.status_code == status, minutes
    assert problem(door.call("GET", ANNOUNCEMENT, headers={"Date": ""})) == (400, "user_auth_invalid-parameters")
    assert problem(door.call("GET", ANNOUNCEMENT, headers={"Date": "now"})) == (400, "user_auth_invalid-parameters")


def test_a_token_of_the_server_opens_the_door_too(door: BackendAiServer) -> None:
    address = door.address()
    where = f"{address['url']}{ANNOUNCEMENT}"
    assert httpx.get(where, headers={"authorization": f"Bearer {address['token']}"}).status_code == 200
    assert problem(httpx.get(where, headers={"authorization": "Bearer wrong"})) == (401, "user_auth_unauthorized")


def test_what_does_not_exist_is_told_in_the_same_form(door: BackendAiServer) -> None:
    assert problem(door.call("GET", "/v2/none")) == (404, "api_access_not-found")
    answer = door.call("DELETE", ANNOUNCEMENT)
    assert problem(answer) == (405, "api_access_bad-request")
    assert answer.headers["allow"] == "GET"


def test_a_page_of_another_host_may_not_use_the_door(door: BackendAiServer) -> None:
    url = door.variables()["BACKEND_ENDPOINT"]
    assert httpx.get(url, headers={"origin": "http://elsewhere.example"}).status_code == 403
    assert door.call("GET", ANNOUNCEMENT, headers={"origin": "http://elsewhere.example"}).status_code == 403


def test_the_administrators_keypair_is_private_and_stays_valid_over_restarts(door: BackendAiServer) -> None:
    before = door.variables()
    assert before["BACKEND_ENDPOINT"] == door.address()["url"]
    assert before["BACKEND_ENDPOINT_TYPE"] == "api"
    for name in ("backendai.env", "backendai-keypairs"):
        assert stat.S_IMODE((door.data / name).stat().st_mode) == 0o600
    secret = before["BACKEND_SECRET_KEY"]
    holders = [path for path in door.data.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holders == [door.data / "backendai.env"]
    assert secret not in door.log.read_text()
    door.end()
    (door.data / "backendai.env").unlink()
    door.start()
    after = door.variables()
    assert {**after, "BACKEND_ENDPOINT": ""} == {**before, "BACKEND_ENDPOINT": ""}
    assert door.call("GET", ANNOUNCEMENT).status_code == 200


def test_a_user_issues_a_keypair_signs_with_it_and_revokes_it(door: BackendAiServer) -> None:
    with door.client() as client:
        client.put_settings({"access": {"user": ["user:ann"]}})
    token = door.json("token", "create", "phone", "--user", "ann")["token"]
    url = door.variables()["BACKEND_ENDPOINT"]
    issued = httpx.post(f"{url}/v2/keypairs/my/issue", headers={"authorization": f"Bearer {token}"})
    assert issued.status_code == 201, issued.text
    access_key, secret = issued.json()["keypair"]["access_key"], issued.json()["secret_key"]

    def ask(method: str, target: str, body: object = None) -> httpx.Response:
        headers = signed(url, access_key, secret, method, target)
        return httpx.request(method, f"{url}{target}", headers=headers, json=body)

    assert ask("GET", ANNOUNCEMENT).status_code == 200
    node = ask("GET", f"/v2/keypairs/{access_key}").json()
    assert (node["is_active"], node["is_admin"], secret in str(node)) == (True, False, False)
    assert problem(ask("POST", "/v2/keypairs", {"user_id": node["user_id"], "is_admin": True})) == (
        403,
        "api_auth_forbidden",
    )
    made = door.call(
        "POST", "/v2/keypairs", {"user_id": node["user_id"], "resource_policy": "default", "is_admin": True}
    )
    assert (made.status_code, made.json()["keypair"]["is_admin"]) == (201, True)
    unknown = {"user_id": node["field_id"], "resource_policy": "default"}
    assert problem(door.call("POST", "/v2/keypairs", unknown)) == (404, "keypair_create_not-found")
    assert door.call("DELETE", f"/v2/keypairs/{made.json()['keypair']['access_key']}").status_code == 200
    assert ask("POST", "/v2/keypairs/my/revoke", {"access_key": access_key}).json() == {"success": True}
    wait_until(lambda: ask("GET", ANNOUNCEMENT).status_code == 401, "a keypair that is revoked")
    assert secret not in door.log.read_text()
    assert [path for path in door.data.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()] == []


def test_others_call_by_tls_at_a_name_of_the_server_and_with_a_signature_alone(tmp_path: Path) -> None:
    cert, key = issue(tmp_path)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    server = BackendAiServer(tmp_path, HOLDFAST_TOKEN_FILE=str(token), HOLDFAST_HOSTS="localhost,lab.example")
    flags = ("--listen", f"{EVERYWHERE}:0", "--tls-cert", str(cert), "--tls-key", str(key))
    server.words = (*server.words[:-2], *flags)
    try:
        server.start()
        url = server.variables()["BACKEND_ENDPOINT"]
        assert url.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=str(cert))
        assert server.call("GET", ANNOUNCEMENT, verify=trusting).status_code == 200
        assert httpx.get(url, verify=trusting).json()["version"] == "v9.20250722"
        assert problem(httpx.get(f"{url}{ANNOUNCEMENT}", verify=trusting))[0] == 401
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http"))
        by_socket = httpx.HTTPTransport(uds=f"{server.data}/holdfast.sock")
        with httpx.Client(transport=by_socket, base_url="http://localhost") as account:
            assert account.get(ANNOUNCEMENT).status_code == 200
    finally:
        server.clean_up()


def test_the_administrator_can_be_another_user_and_a_server_without_the_door_knows_none_of_it(tmp_path: Path) -> None:
    server = BackendAiServer(tmp_path, HOLDFAST_BACKENDAI_OWNER="ann")
    try:
        server.start()
        ann = server.variables()
        assert "ann is no admin" in server.log.read_text()
        assert server.call("GET", ANNOUNCEMENT).status_code == 200
        server.end()
        server.environ = {**server.environ, "HOLDFAST_BACKENDAI_OWNER": ""}
        server.start()
        assert server.log.read_text().count("is no admin") == 1
        assert server.variables()["BACKEND_ACCESS_KEY"] != ann["BACKEND_ACCESS_KEY"]
        url = str(server.address()["url"])
        headers = signed(url, ann["BACKEND_ACCESS_KEY"], ann["BACKEND_SECRET_KEY"], "GET", ANNOUNCEMENT)
        assert problem(httpx.get(f"{url}{ANNOUNCEMENT}", headers=headers)) == (401, "user_auth_unauthorized")
        server.end()
        server.environ = {**server.environ, "HOLDFAST_DOORS": ""}
        server.start()
        assert httpx.get(str(server.address()["url"])).status_code == 401
        assert httpx.get(f"{server.address()['url']}{ANNOUNCEMENT}").json()["code"] == "unauthenticated"
    finally:
        server.clean_up()
