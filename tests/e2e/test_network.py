"""A server that other machines reach: only by TLS, only by its names, and found on its own machine as ever."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from holdfast.app.entrance import network
from holdfast.app.entrance.network import Certificates
from holdfast.app.settings import Settings, read_settings
from holdfast.errors import InvalidSetting, Refused
from tests.e2e.server import PATIENCE_S, Server, wait_until
from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is tested
TOKEN = "a-token-for-others"  # noqa: S105 - of this test


def issue(folder: Path, name: str = "server", *, days: int = 2) -> tuple[Path, Path]:
    """Make a certificate that vouches for itself, for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("NO CERTIFICATES: there is no openssl on this machine (Debian: apt install openssl)")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,DNS:lab.example,IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), *names]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return file


@pytest.fixture
def secure(tmp_path: Path, token: Path) -> Iterator[Server]:
    cert, key = issue(tmp_path)
    server = Server(tmp_path, HOLDFAST_TOKEN_FILE=str(token), HOLDFAST_HOSTS="lab.example")
    flags = ("--listen", f"{EVERYWHERE}:0", "--tls-cert", str(cert), "--tls-key", str(key))
    server.words = (*server.words[:-2], *flags)
    yield server
    server.clean_up()


def address_of(server: Server) -> str:
    """Read from its log where a server listens: on its own machine that is not what commands ask."""
    found = server.log.read_text().partition("holdfast is up at ")[2].split(",")[0]
    return found.split()[0].replace(EVERYWHERE, "localhost")


@pytest.mark.slow
def test_others_ask_by_tls_and_the_own_machine_as_ever(secure: Server, token: Path) -> None:
    with secure.start() as own:
        assert str(secure.address()["url"]) == f"unix://{secure.data}/holdfast.sock", "which needs no name"
        url = address_of(secure)
        trusting = {
            "HOLDFAST_URL": url,
            "HOLDFAST_TOKEN_FILE": str(token),
            "SSL_CERT_FILE": f"{secure.folder}/server.pem",
        }
        away = Shell(secure.folder, trusting)
        assert away.run("run", "--name", "hello", "--", "echo", "hello").out == "hello\n"
        assert away.run("hold", "hello").code == 4
        assert [(entry.action, entry.origin) for entry in own.audit()] == [
            ("create", "127.0.0.1"),
            ("hold", "127.0.0.1"),
        ]
        with away.start("events", "-f") as follow:
            assert follow.stdout is not None
            assert "hello" in follow.stdout.readline() + follow.stdout.readline()
        distrusting = Shell(secure.folder, {**trusting, "SSL_CERT_FILE": os.devnull})
        said = distrusting.run("get", "jobs")
        assert (said.code, "CERTIFICATE_VERIFY_FAILED" in said.err) == (5, True), said
        plain = Shell(secure.folder, {**trusting, "HOLDFAST_URL": url.replace("https", "http")})
        assert plain.run("get", "jobs").code == 5, "nothing is answered in clear"
        assert "hello" in secure.run("get", "jobs").stdout


def test_a_server_answers_to_its_names_and_to_no_page_of_another(secure: Server) -> None:
    secure.start().close()
    url, trust = address_of(secure), ssl.create_default_context(cafile=str(secure.folder / "server.pem"))
    with httpx.Client(base_url=url, verify=trust, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        port = url.rpartition(":")[2]
        for host in ("localhost", "127.0.0.1", "192.0.2.7", "[2001:db8::1]", "LAB.example.", socket.gethostname()):
            answer = client.get("/api/v1/version", headers={"Host": f"{host}:{port}"})
            assert answer.status_code == 200, (host, answer.text)
        for host in ("attacker.example", "lab.example.attacker.example", ""):
            answer = client.get("/api/v1/version", headers={"Host": host})
            assert (answer.status_code, "is not a name of" in answer.text) == (403, True), host
        own = client.get("/api/v1/version", headers={"Origin": url})
        page = client.get("/api/v1/version", headers={"Origin": "https://attacker.example"})
        assert (own.status_code, page.status_code, "may not use this server" in page.text) == (200, 403, True)


@pytest.mark.slow
def test_a_renewed_certificate_is_taken_up_without_a_restart_and_a_broken_one_is_not(secure: Server) -> None:
    with secure.start() as own:
        host, _, port = address_of(secure).removeprefix("https://").partition(":")

        def shown() -> str:
            return ssl.get_server_certificate((host, int(port)))

        first = shown()
        (secure.folder / "server.key").write_text("broken")
        wait_until(lambda: "cannot be used yet" in secure.log.read_text(), "a broken renewal that is said")
        assert shown() == first
        cert, key = issue(secure.folder, "renewed")
        key.replace(secure.folder / "server.key")
        cert.replace(secure.folder / "server.pem")
        wait_until(lambda: shown() != first, "the renewed certificate")
        assert shown().strip() == (secure.folder / "server.pem").read_text().strip()
        assert own.version().api == "v1"


@pytest.mark.slow
def test_behind_a_named_proxy_nobody_else_comes_in_and_its_word_alone_counts(tmp_path: Path, token: Path) -> None:
    server = Server(tmp_path, HOLDFAST_TOKEN_FILE=str(token), HOLDFAST_PROXY="192.0.2.1,198.51.100.0/24")
    server.words = (*server.words[:-2], "--listen", f"{EVERYWHERE}:0")
    try:
        with server.start() as own:
            url = address_of(server)
            headers = {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "203.0.113.9"}
            answer = httpx.post(f"{url}/api/v1/jobs/none/cancel", headers=headers, json={}, timeout=PATIENCE_S)
            assert answer.status_code == 404, answer.text
            httpx.put(f"{url}/api/v1/queues/fast", headers=headers, json={"spec": {"weight": 2}}, timeout=PATIENCE_S)
            assert {entry.origin for entry in own.audit()} == {"127.0.0.1"}, "what anybody may write counts for nothing"
            strangers = [
                found.address
                for addresses in psutil.net_if_addrs().values()
                for found in addresses
                if found.family == socket.AF_INET and not found.address.startswith("127.")
            ]
            for stranger in strangers:
                with pytest.raises(httpx.TransportError):
                    httpx.get(url.replace("localhost", stranger), headers=headers, timeout=PATIENCE_S)
    finally:
        server.clean_up()


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "example.org"])
def test_what_makes_listening_to_others_safe_is_asked_for(host: str, tmp_path: Path, token: Path) -> None:
    with pytest.raises(Refused, match="without TLS only a loopback address is safe"):
        network.require_safe(host, Settings(token_file=token))
    cert = {"tls_cert": tmp_path / "c", "tls_key": tmp_path / "k"}
    for way in (cert, {"proxy": "192.0.2.1"}):
        without = Settings.model_validate(way)
        network.require_safe(host, without)
        with pytest.raises(Refused, match="the only token is that of the data directory"):
            network.require_token(host, without, has_api_tokens=False)
        network.require_token(host, without, has_api_tokens=True)
        given = Settings.model_validate({**way, "token_file": token})
        network.require_token(host, given, has_api_tokens=False)
    network.require_token("127.0.0.1", Settings(), has_api_tokens=False)
    with pytest.raises(InvalidSetting) as caught:
        network.require_safe("127.0.0.1", Settings(tls_cert=tmp_path / "c"))
    assert [problem.path for problem in caught.value.problems] == ["HOLDFAST_TLS_KEY"]


def test_a_certificate_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    (cert, key), (other, _) = issue(tmp_path), issue(tmp_path, "other")
    Certificates(cert, key)
    for wrong, reason in ((other, "KEY_VALUES_MISMATCH"), (tmp_path / "none", "No such file"), (key, "PEM")):
        with pytest.raises(InvalidSetting) as caught:
            Certificates(wrong, key)
        assert reason in caught.value.problems[0].message
    key.chmod(0o644)
    with pytest.raises(Refused, match="can be read by everybody"):
        Certificates(cert, key)


@pytest.mark.parametrize("text", ["8443", ":8443", "localhost:", "localhost:x", "localhost:65536"])
def test_an_address_to_listen_on_has_two_parts(text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read_settings(listen=text)
    assert caught.value.problems[0].path == "HOLDFAST_LISTEN"
    assert "Input should be ADDRESS:PORT" in caught.value.problems[0].message


def test_an_address_of_ipv6_is_in_brackets_and_flags_count_more(tmp_path: Path) -> None:
    assert read_settings(listen="[::1]:8443").listen == ("::1", 8443)
    said = Shell(tmp_path).run("up", "--listen", "127.0.0.1:0", "--port", "1")
    assert (said.code, "--listen: already sets the address and the port" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("host", "given", "is_warned"),
    [
        ("127.0.0.1", {}, False),
        ("0.0.0.0", {}, True),  # noqa: S104 - nothing listens
        ("127.0.0.1", {"oidc_issuer": "https://id.example", "oidc_audience": "holdfast"}, True),
        ("0.0.0.0", {"run_as": "submitter"}, False),  # noqa: S104 - as above
    ],
)
def test_who_lets_others_in_is_warned_that_all_programs_run_as_one_account(
    host: str, given: dict[str, str], caplog: pytest.LogCaptureFixture, *, is_warned: bool
) -> None:
    with caplog.at_level("WARNING"):
        network.warn_of_one_account(host, read_settings(**given))
    assert ["programs run as this server's account" in each for each in caplog.messages] == [True] * is_warned
