"""Reads and writes ``notify`` of jobs, arrays and queues, and notifiers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.reading import Fields, shown
from holdfast.domain.notifier import (
    DEFAULT_OCCASIONS,
    DEFAULT_TIMEOUT_S,
    SECRET_PREFIX,
    Mail,
    MailSecurity,
    Medium,
    Notifier,
    Notify,
    Occasion,
    Secret,
)
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

MOST_NOTIFIED = 32
MOST_RECIPIENTS = 100
MOST_WORDS = 64
SHORTEST_TIMEOUT_S, LONGEST_TIMEOUT_S = 0.1, 60.0
LARGEST_PORT = 65_535
_VARIABLE = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_]+")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ADDRESS = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")
_SECRET_HINT = (
    f"write {{env: {SECRET_PREFIX}NAME}} for a variable of the server, or {{file: NAME}} for a file in its folder of"
    " secrets"
)
_FIELDS: Mapping[Medium, frozenset[str]] = {
    Medium.WEBHOOK: frozenset({"url", "secret"}),
    Medium.SLACK: frozenset({"url"}),
    Medium.APPRISE: frozenset({"url"}),
    Medium.COMMAND: frozenset({"command"}),
    Medium.EMAIL: frozenset({"host", "port", "security", "user", "password", "from", "to"}),
}
_OF_ONE = frozenset().union(*_FIELDS.values())


def read_notify(spec: Fields) -> tuple[Notify, ...]:
    """Read ``notify``: a notifier's name, or a list of names and of ``{to, on}``."""
    value = spec.raw("notify")
    if value is None:
        return ()
    listed, single = (value, False) if isinstance(value, list) else ([value], True)
    if len(listed) > MOST_NOTIFIED:
        spec.problem("notify", f"has {len(listed)} entries; at most {MOST_NOTIFIED} are allowed")
        return ()
    notifications = [
        _read_one(spec, item, "notify" if single else f"notify[{place}]") for place, item in enumerate(listed)
    ]
    return tuple(item for item in notifications if item is not None)


def _read_one(spec: Fields, value: object, at: str) -> Notify | None:
    if isinstance(value, dict):
        part = Fields(value, spec.at(at), spec.problems)
        to, occasions = part.name("to", required=True), _read_occasions(part)
        part.finish()
        return None if to is None else Notify(to, occasions)
    if isinstance(value, str) and "://" in value:
        hint = "create a notifier with that URL, and write its name here"
        spec.problem(at, "must be the name of a notifier, not a URL", hint=hint)
        return None
    if not spec.check_text(at, value) or not spec.check_name(at, str(value)):
        return None
    return Notify(str(value))


def _read_occasions(part: Fields) -> tuple[Occasion, ...]:
    value = part.raw("on")
    if value is None:
        return DEFAULT_OCCASIONS
    listed, single = (value, False) if isinstance(value, list) else ([value], True)
    if not listed:
        part.problem("on", "is empty", allowed=[*Occasion], hint="leave it out for end and hold")
    occasions: list[Occasion] = []
    for place, item in enumerate(listed):
        if item in [*Occasion]:
            occasions.append(Occasion(item))
        else:
            at, word = "on" if single else f"on[{place}]", shown(item)
            part.problem(at, f"{word} is not an event", allowed=[*Occasion], hint=closest(item, [*Occasion]))
    return tuple(dict.fromkeys(occasions))


NOTIFY = "holdfast.dev/notify"
"""The same as an annotation: ``NAME`` or ``NAME:EVENT,EVENT``, separated by blanks."""


def annotated_notify(metadata: Fields, annotations: Mapping[str, str]) -> tuple[Notify, ...]:
    """Read an annotation about notifications."""
    at, parts = f"annotations.{NOTIFY}", [item.partition(":") for item in annotations.get(NOTIFY, "").split()]
    if len(parts) > MOST_NOTIFIED:
        metadata.problem(at, f"has {len(parts)} entries; at most {MOST_NOTIFIED} are allowed")
        return ()
    listed = [{"to": to, **({"on": on.split(",")} if colon else {})} for to, colon, on in parts]
    problems: list[Problem] = []
    read = read_notify(Fields({"notify": listed}, "", problems))
    metadata.problems.extend(evolve(problem, path=metadata.at(at)) for problem in problems)
    return read


def write_notify(notify: tuple[Notify, ...]) -> list[dict[str, Any]]:
    """Write ``notify``; it reads back equal."""
    return [{"to": item.to, "on": [occasion.value for occasion in item.on]} for item in notify]


def read_notifier_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Notifier | None:
    """Read a notifier; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems))
    spec = opened.spec
    if spec is None:
        return None
    medium = spec.choice("type", Medium, required=True)
    timeout_s = spec.duration("timeout", low=SHORTEST_TIMEOUT_S, high=LONGEST_TIMEOUT_S)
    notifier = Notifier(opened.name or "", medium or Medium.WEBHOOK, timeout_s=timeout_s or DEFAULT_TIMEOUT_S)
    settings = _read_medium(spec, medium, notifier)
    close_envelope(opened)
    return settings if len(problems) == before else None


def _read_medium(spec: Fields, medium: Medium | None, notifier: Notifier) -> Notifier:
    if medium is None:
        for name in _OF_ONE:
            spec.raw(name)
        return notifier
    for name in sorted(_OF_ONE - _FIELDS[medium]):
        if spec.has(name) and spec.raw(name) is not None:
            spec.problem(name, f"does not apply to a notifier of type {medium}", allowed=sorted(_FIELDS[medium]))
    if medium is Medium.COMMAND:
        return evolve(notifier, command=_read_command(spec))
    if medium is Medium.EMAIL:
        return evolve(notifier, mail=_read_mail(spec))
    url, secret_url = _read_url(spec, medium)
    signing = _read_secret(spec, "secret") if medium is Medium.WEBHOOK else None
    return evolve(notifier, url=url, secret_url=secret_url, signing=signing)


def _read_url(spec: Fields, medium: Medium) -> tuple[str, Secret | None]:
    """Read a URL: a webhook's may be written out, the others are secret as a whole."""
    value = spec.raw("url", required=True)
    if isinstance(value, dict) or (medium is not Medium.WEBHOOK and value is not None):
        return "", _read_secret(spec, "url")
    url = spec.text("url") or ""
    if url:
        _check_url(spec, url)
    return url, None


def _check_url(spec: Fields, url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        spec.problem("url", f"{shown(url)} is not a URL: {error}")
        return
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        spec.problem("url", f"{shown(url)} is not the URL of a web server", hint="such as https://example.org/hook")
    elif parts.username or parts.password:
        spec.problem("url", "contains a user or a password", hint=f"a URL with a secret in it is one: {_SECRET_HINT}")
    elif any(not letter.isprintable() or letter.isspace() for letter in url) or not url.isascii():
        spec.problem("url", f"{shown(url)} contains characters that no URL can", hint="write them as %20 and the like")


def _read_secret(spec: Fields, name: str, *, required: bool = False) -> Secret | None:
    """Read a reference to a secret; a secret written out is refused, and not repeated in the message."""
    value = spec.raw(name, required=required)
    if value is None:
        return None
    if not isinstance(value, dict):
        spec.problem(name, "is a secret, which is not written in a manifest", hint=_SECRET_HINT)
        return None
    part = Fields(value, spec.at(name), spec.problems)
    env, file = part.text("env"), part.text("file")
    if (env is None) == (file is None):
        part.problem("", "needs either env or file", allowed=("env", "file"), hint=_SECRET_HINT)
    if env is not None and not _VARIABLE.fullmatch(env):
        hint = f"the server gives away no other variables; begin the name with {SECRET_PREFIX}"
        part.problem("env", f"{shown(env)} is not the name of a secret", hint=hint)
    if file is not None and not _FILE.fullmatch(file):
        hint = "a name in the server's folder of secrets, without a path"
        part.problem("file", f"{shown(file)} is not the name of a file there", hint=hint)
    part.finish()
    return Secret(env or "", file or "")


def _read_command(spec: Fields) -> tuple[str, ...]:
    spec.raw("command", required=True)
    words = spec.texts("command", most=MOST_WORDS) or []
    if spec.has("command") and not any(words[:1]):
        spec.problem("command", "must name a program")
    elif words and not words[0].startswith("/"):
        spec.problem("command[0]", f"{shown(words[0])} is not an absolute path", hint="no shell looks for it")
    return tuple(words)


def _read_mail(spec: Fields) -> Mail:
    security = spec.choice("security", MailSecurity) or MailSecurity.STARTTLS
    usual = {MailSecurity.STARTTLS: 587, MailSecurity.TLS: 465, MailSecurity.NONE: 25}[security]
    spec.raw("to", required=True)
    recipients = spec.texts("to", most=MOST_RECIPIENTS) or []
    sender = spec.text("from", required=True) or ""
    for at, address in (("from", sender), *((f"to[{place}]", recipient) for place, recipient in enumerate(recipients))):
        if address and not _ADDRESS.fullmatch(address):
            spec.problem(at, f"{shown(address)} is not an e-mail address", hint="such as ops@example.org")
    if spec.has("to") and not recipients:
        spec.problem("to", "names nobody")
    mail = Mail(
        host=spec.text("host", required=True) or "",
        sender=sender,
        recipients=tuple(recipients),
        port=spec.integer("port", low=1, high=LARGEST_PORT) or usual,
        security=security,
        user=spec.text("user") or "",
        password=_read_secret(spec, "password"),
    )
    if (mail.user == "") != (mail.password is None):
        spec.problem("user" if mail.password else "password", "user and password are set together")
    return mail


def write_notifier(notifier: Notifier) -> dict[str, Any]:
    """Write a notifier's ``spec``; it reads back equal, and contains no secret."""
    spec: dict[str, Any] = {"type": notifier.medium.value}
    if notifier.timeout_s != DEFAULT_TIMEOUT_S:
        spec["timeout"] = notifier.timeout_s
    if notifier.url:
        spec["url"] = notifier.url
    for name, secret in (("url", notifier.secret_url), ("secret", notifier.signing)):
        if secret is not None:
            spec[name] = _write_secret(secret)
    if notifier.command:
        spec["command"] = list(notifier.command)
    mail = notifier.mail
    if mail is not None:
        spec |= {"host": mail.host, "port": mail.port, "security": mail.security.value, "from": mail.sender}
        spec["to"] = list(mail.recipients)
        if mail.password is not None:
            spec |= {"user": mail.user, "password": _write_secret(mail.password)}
    return spec


def _write_secret(secret: Secret) -> dict[str, str]:
    return {"env": secret.env} if secret.env else {"file": secret.file}
