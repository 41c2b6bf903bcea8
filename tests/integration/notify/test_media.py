"""Every way to tell people, to real servers and programs that take it, refuse it, are slow, or lead astray."""

from __future__ import annotations

import base64
import html
import json
import os
import socket
import ssl
import stat
import subprocess
import threading
import time
from email import message_from_bytes
from email.policy import default
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.controller import Controller
from standardwebhooks import Webhook

from holdfast.domain.notifications.notification import Notification, OutcomeReport
from holdfast.domain.notifier import Mail, MailSecurity, Medium, Notifier, Secret
from holdfast.domain.record import evolve
from holdfast.notify.guard import Deadline, Guard, Undelivered
from holdfast.notify.mail import message_of
from holdfast.notify.sender import MediaSender, Permissions
from holdfast.notify.webhook import signing_key
from holdfast.ports.notifications import SendResult

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.notify.conftest import Receiver

HERE = Guard((ip_network("127.0.0.0/8"), ip_network("::1/128")))
SIGNING = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SECRETS = {"env": SIGNING}
FAILED = OutcomeReport(
    event="job.failed",
    kind="job",
    id="01h",
    name="train",
    at=1_800_000_000.0,
    state="Failed",
    queue="ml",
    reason="exit code 3; 2 of 2 retries used",
    failure="exit code 3: ValueError: no such key",
    exit_code=3,
    attempts=3,
    nodes=("n1",),
    complete=True,
)
TOLD = Notification(id="msg_1", to="ops", report=FAILED, created_at=0.0)


def sender(*programs: str, guard: Guard = HERE, **secrets: str) -> MediaSender:
    known = {"HOLDFAST_SECRET_HOOK": SIGNING, **secrets}
    return MediaSender(
        Permissions(guard, frozenset(programs), os.environ["PATH"]), lambda secret: known.get(secret.env)
    )


def hook(url: str, **given: Any) -> Notifier:  # noqa: ANN401 - fields by name
    return Notifier("ops", Medium.WEBHOOK, url=url, **{"timeout_s": 5.0, **given})


def now() -> float:
    return time.time()


def test_a_webhook_is_signed_as_others_verify_it_and_says_exactly_what_failed(receiver: Receiver) -> None:
    notifier = hook(f"{receiver.url}/in?x=1", signing=Secret(env="HOLDFAST_SECRET_HOOK"))
    assert sender().send(notifier, TOLD, now()) == SendResult()
    [got] = receiver.received
    headers = {name.lower(): value for name, value in got.headers.items()}
    told = Webhook(SIGNING).verify(got.body.decode(), headers)
    assert (got.path, headers["webhook-id"], headers["host"]) == ("/in?x=1", "msg_1", f"127.0.0.1:{receiver.port}")
    assert (told["type"], told["timestamp"]) == ("job.failed", "2027-01-15T08:00:00.000Z")
    expected = {"name": "train", "failure": "exit code 3: ValueError: no such key", "attempts": 3, "nodes": ["n1"]}
    assert expected.items() <= told["data"].items()
    assert told["data"]["why"] == "holdfast why 01h"
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(SIGNING).verify(got.body.decode().replace("train", "other"), headers)


@pytest.mark.parametrize(
    ("path", "error", "final"),
    [
        ("500", "the server answered 500: no[31m disk left", False),
        ("404", "the server answered 404", False),
        ("410", "the server answered 410", True),
        ("302", "the server answered 302; redirects are not followed: use its present URL", True),
        ("307", "the server answered 307; redirects are not followed: use its present URL", True),
        ("cut", "127.0.0.1 closed the connection: Remote end closed connection without response", False),
    ],
)
def test_what_a_server_answers_is_said_and_no_redirect_is_followed(
    receiver: Receiver, path: str, error: str, *, final: bool
) -> None:
    assert sender().send(hook(f"{receiver.url}/{path}"), TOLD, now()) == SendResult(error, final)
    assert [got.path for got in receiver.received] == [f"/{path}"]


@pytest.mark.parametrize("path", ["hang", "drip"])
def test_a_server_that_never_answers_or_never_ends_is_waited_for_no_longer_than_allowed(
    receiver: Receiver, path: str
) -> None:
    began = time.monotonic()
    assert sender().send(hook(f"{receiver.url}/{path}", timeout_s=0.3), TOLD, now()) == SendResult(
        "no answer within 0.3 s"
    )
    assert 0.25 < time.monotonic() - began < 5.0


def test_a_name_server_that_never_answers_is_waited_for_no_longer_than_allowed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def silent(*_: object, flags: int = 0, **__: object) -> object:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        return answers.wait(30) and []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    try:
        sent = sender().send(hook(receiver.url.replace("127.0.0.1", "hooks.example"), timeout_s=0.3), TOLD, now())
    finally:
        answers.set()
    assert sent == SendResult("no name server resolved hooks.example within 0.3 s")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::ffff:127.0.0.1]", "0"],
)
def test_addresses_of_the_servers_own_network_are_refused_unless_they_are_allowed(host: str) -> None:
    sent = sender(guard=Guard()).send(hook(f"http://{host}:9/"), TOLD, now())
    assert sent.final
    assert "is not a public address; HOLDFAST_NOTIFY_ALLOW lists the" in sent.error


def test_only_what_is_allowed_is_let_through_and_public_addresses_are() -> None:
    guard = Guard((ip_network("10.1.0.0/16"),))
    permitted = {
        text: guard.permits(ip_address(text)) for text in ("10.1.2.3", "10.2.0.1", "8.8.8.8", "224.0.0.1", "fe80::1")
    }
    assert list(permitted.values()) == [True, False, True, False, False]


@pytest.mark.parametrize(
    "network", ["64:ff9b::{0}", "64:ff9b:1::{0}", "2002:{0}::1", "::{0}", "::ffff:{0}", "fec0::{0}"]
)
def test_an_address_that_carries_one_of_the_servers_own_network_is_refused(network: str) -> None:
    own, public = (ip_address(network.format(carried)) for carried in ("a01:203", "808:808"))
    assert not Guard().permits(own)
    assert Guard((ip_network(f"{own}/128"),)).permits(own)
    is_of_a_site = network.startswith(("fec0", "64:ff9b:1"))
    assert Guard().permits(public) is not is_of_a_site
    assert Guard((ip_network("10.1.0.0/16"),)).permits(own) is not is_of_a_site


def test_the_address_that_was_checked_is_the_one_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80))]])

    def rebinding(*_: object, **__: object) -> object:
        return next(answers, [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", receiver.port))])

    tried: list[object] = []

    def connect(_: socket.socket, address: object) -> None:
        tried.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(socket.socket, "connect", connect)
    with pytest.raises(Undelivered, match="Connection refused"):
        Guard().connect("rebind.example", 80, Deadline(1.0))
    assert tried == [("93.184.216.34", 80)]
    assert receiver.received == []


@pytest.mark.parametrize(
    ("notifier", "error"),
    [
        (hook("http://nowhere.invalid/"), "nowhere.invalid cannot be found"),
        (hook("http://127.0.0.1:1/"), "127.0.0.1:1 cannot be reached: Connection refused"),
        (
            hook("", secret_url=Secret(env="HOLDFAST_SECRET_NO")),
            "variable HOLDFAST_SECRET_NO of the server holds no secret",
        ),
        (hook("", secret_url=Secret(env="HOLDFAST_SECRET_HOOK")), "its URL is not that of a web server"),
        (hook("http://127.0.0.1:1/", signing=Secret(env="BAD")), "the signing secret is not whsec_ and 24 to 64 bytes"),
        (Notifier("ops", Medium.APPRISE, secret_url=Secret(env="BAD")), "Apprise does not know this URL"),
        (Notifier("ops", Medium.COMMAND, command=("/bin/true",)), "'/bin/true' is not allowed here; the operator of"),
    ],
)
def test_what_cannot_be_delivered_is_said_without_the_secret(notifier: Notifier, error: str) -> None:
    sent = sender(BAD="hunter2").send(notifier, TOLD, now())
    assert sent.error.startswith(error)
    assert "hunter2" not in sent.error
    assert SIGNING not in sent.error


def test_a_signing_secret_is_read_as_others_read_it() -> None:
    assert signing_key(SIGNING) == bytes(range(32))
    assert signing_key(f" {SIGNING.removeprefix('whsec_')}\n") == bytes(range(32))
    with pytest.raises(Undelivered):
        signing_key("whsec_" + base64.b64encode(bytes(8)).decode())


def test_slack_and_those_like_it_get_a_text(receiver: Receiver) -> None:
    notifier = Notifier("ops", Medium.SLACK, secret_url=Secret(env="HOLDFAST_SECRET_URL"))
    assert sender(HOLDFAST_SECRET_URL=f"{receiver.url}/services/T/B/x").send(notifier, TOLD, now()) == SendResult()
    [got] = receiver.received
    assert (got.path, [*json.loads(got.body)]) == ("/services/T/B/x", ["text"])
    assert json.loads(got.body)["text"].startswith("job train failed: exit code 3: ValueError: no such key\n")


CALLING = "<!channel> @everyone, see <https://evil.example|the report> [here](https://evil.example) & vector<int>"
CALLED = evolve(TOLD, report=evolve(FAILED, failure=f"exit code 3: {CALLING}"))


def test_what_a_program_wrote_is_no_markup_for_slack_and_those_like_it(receiver: Receiver) -> None:
    notifier = Notifier("ops", Medium.SLACK, url=f"{receiver.url}/in")
    assert sender().send(notifier, CALLED, now()) == SendResult()
    shown = json.loads(receiver.received[0].body)["text"]
    assert [mark for mark in ("<", ">", "@everyone", "](") if mark in shown] == []
    assert "&lt;https://evil.example|the report&gt;" in shown
    assert html.unescape(shown).replace("\u200b", "").startswith(f"job train failed: exit code 3: {CALLING}\n")


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
@pytest.mark.parametrize("scheme", ["mmost://127.0.0.1:{}/supersecrettoken", "json://127.0.0.1:{}"])
def test_what_a_program_wrote_is_no_markup_for_apprise(receiver: Receiver, scheme: str) -> None:
    notifier = Notifier("ops", Medium.APPRISE, secret_url=Secret(env="HOLDFAST_SECRET_URL"), timeout_s=4.0)
    assert sender(HOLDFAST_SECRET_URL=scheme.format(receiver.port)).send(notifier, CALLED, now()) == SendResult()
    shown = json.dumps(json.loads(receiver.received[0].body), ensure_ascii=False)
    assert [mark for mark in ("<!", "<h", "<i", "@everyone", "](") if mark in shown] == []
    assert CALLING in shown.replace("\u200b", "")


def test_what_a_program_wrote_adds_no_header_to_a_mail() -> None:
    report = evolve(FAILED, failure="x\r\nBcc: all@example.com\n\n<b>", reason="\rTo: all@example.com")
    mail = Mail("mail.example", "from@example.com", ("to@example.com",))
    message = message_of(evolve(TOLD, report=report), mail)
    assert (message["Bcc"], message["To"], message.get_content_type()) == (None, "to@example.com", "text/plain")


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
@pytest.mark.parametrize(("path", "sent"), [("", SendResult()), ("/500", None)])
def test_apprise_tells_whatever_it_knows(receiver: Receiver, path: str, sent: SendResult | None) -> None:
    notifier = Notifier("ops", Medium.APPRISE, secret_url=Secret(env="HOLDFAST_SECRET_URL"), timeout_s=4.0)
    url = (
        f"mmost://127.0.0.1:{receiver.port}/supersecrettoken" if not path else f"json://127.0.0.1:{receiver.port}{path}"
    )
    found = sender(HOLDFAST_SECRET_URL=url).send(notifier, TOLD, now())
    [got] = receiver.received
    assert b"job train failed: exit code 3" in got.body
    if sent is not None:
        assert found == sent
        assert got.path == "/hooks/supersecrettoken"
    else:
        assert "500" in found.error


class Mailbox:
    """What a real SMTP server took."""

    def __init__(self, refused: str = "") -> None:
        self.taken: list[tuple[list[str], bytes]] = []
        self.refused = refused

    async def handle_RCPT(self, _s: object, _session: object, envelope: Any, address: str, _o: object) -> str:  # noqa: ANN401, N802 - aiosmtpd's
        if address == self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: ANN401, N802 - aiosmtpd's
        self.taken.append((list(envelope.rcpt_tos), envelope.content))
        return "250 taken"


def mailing(port: int, *recipients: str) -> Notifier:
    mail = Mail("127.0.0.1", "h@example.org", recipients, port, MailSecurity.NONE)
    return Notifier("ops", Medium.EMAIL, mail=mail, timeout_s=3.0)


@pytest.mark.parametrize("refused", ["", "b@example.org", "a@example.org"])
def test_an_email_reaches_whom_the_server_takes_it_for_and_says_who_is_refused(refused: str) -> None:
    mailbox = Mailbox(refused)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(mailbox, hostname="127.0.0.1", port=port)
    server.start()
    try:
        recipients = ("a@example.org", "b@example.org") if refused != "a@example.org" else ("a@example.org",)
        sent = sender().send(mailing(port, *recipients), TOLD, now())
    finally:
        server.stop()
    if refused == "a@example.org":
        assert (sent.error, mailbox.taken) == ("127.0.0.1 accepts no mail for a@example.org", [])
        return
    assert sent.error == (f"127.0.0.1 accepts no mail for {refused}; the others got it" if refused else "")
    [(to, content)] = mailbox.taken
    message = message_from_bytes(content, policy=default)
    assert to == [each for each in recipients if each != refused]
    assert message["Subject"] == "job train failed: exit code 3: ValueError: no such key"
    assert message["Message-ID"] == "<msg_1@example.org>"
    body = message.get_body()
    assert body is not None
    assert "more:      holdfast why 01h" in body.get_content()


def test_a_mail_server_that_never_greets_is_waited_for_no_longer_than_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        notifier = evolve(mailing(silent.getsockname()[1], "a@example.org"), timeout_s=0.3)
        assert sender().send(notifier, TOLD, now()) == SendResult("no answer within 0.3 s")


def program(folder: Path, text: str) -> str:
    path = folder / "page"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return str(path)


def test_a_program_gets_json_and_variables_and_none_of_the_servers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", "hunter2")
    page = program(tmp_path, f'cat > {tmp_path}/in; env > {tmp_path}/env; echo "$1" > {tmp_path}/word')
    word = "$(touch /tmp/no); rm -rf *"
    notifier = Notifier("ops", Medium.COMMAND, command=(page, word))
    assert sender(page).send(notifier, TOLD, now()) == SendResult()
    assert json.loads((tmp_path / "in").read_text())["data"]["name"] == "train"
    variables = (tmp_path / "env").read_text()
    assert "HOLDFAST_NOTIFY_ID=msg_1\n" in variables
    assert "HOLDFAST_NOTIFY_SUMMARY=job train failed: exit code 3: ValueError: no such key\n" in variables
    assert "hunter2" not in variables
    assert (tmp_path / "word").read_text() == f"{word}\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("echo broken >&2; exit 3", "{page} ended with exit code 3: broken"),
        ("kill -9 $$", "{page} ended with signal 9"),
        ("sleep 60 & sleep 60", "{page} did not end within 0.3 s, and was killed"),
    ],
)
def test_a_program_that_fails_or_hangs_is_said_and_its_whole_group_is_killed(
    tmp_path: Path, text: str, error: str
) -> None:
    page = program(tmp_path, f"echo $$ > {tmp_path}/pid; {text}")
    sent = sender(page).send(Notifier("ops", Medium.COMMAND, command=(page,), timeout_s=0.3), TOLD, now())
    assert sent == SendResult(error.format(page=page))
    group = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while _alive(group) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert not _alive(group)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def certify(folder: Path) -> None:
    """Make a certificate for this machine, and its key."""
    files = ("-keyout", f"{folder}/key", "-out", f"{folder}/cert", "-days", "2")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    request = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *names)
    subprocess.run(request, check=True, capture_output=True)


@pytest.mark.parametrize("trusted", [True, False])
def test_an_encrypted_webhook_is_told_only_if_its_certificate_is_trusted(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    certify(tmp_path)
    receiver.encrypt(tmp_path / "cert", tmp_path / "key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    sent = sender().send(hook(receiver.url.replace("http:", "https:")), TOLD, now())
    error = "" if trusted else "the certificate of 127.0.0.1 is not valid: self-signed certificate"
    assert (sent, len(receiver.received)) == (SendResult(error), int(trusted))


@pytest.mark.parametrize("security", [MailSecurity.STARTTLS, MailSecurity.TLS])
@pytest.mark.parametrize("trusted", [True, False])
def test_an_email_is_encrypted_and_sent_only_if_the_servers_certificate_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: MailSecurity, *, trusted: bool
) -> None:
    certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    mailbox = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    later = {"tls_context": context, "require_starttls": True}
    encrypted = later if security is MailSecurity.STARTTLS else {"ssl_context": context}
    server = Controller(mailbox, hostname="127.0.0.1", port=port, **encrypted)
    server.start()
    try:
        notifier = mailing(port, "a@example.org")
        assert notifier.mail is not None
        notifier = evolve(notifier, mail=evolve(notifier.mail, security=security))
        sent = sender().send(notifier, TOLD, now())
    finally:
        server.stop()
    assert sent.error == ("" if trusted else "the certificate of 127.0.0.1 is not valid: self-signed certificate")
    assert len(mailbox.taken) == trusted
