"""The issuer of OpenID Connect tokens that the settings trust, if they do, and its keys."""

from __future__ import annotations

import json
import re
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.app.entrance import accounts
from holdfast.domain.access.claims import Trust
from holdfast.errors import InvalidSetting, Problem, Unavailable
from holdfast.notify.exchange import WebRequest, exchange
from holdfast.notify.guard import Guard, Undelivered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holdfast.app.settings import Settings
    from holdfast.app.time import SystemClock
    from holdfast.domain.access import Principal

_PREFIX = re.compile(r"[a-z0-9][a-z0-9._-]{0,30}:")
_OTHERS = frozenset({"door:", "user:", "group:"})
TIMEOUT_S = 5.0
"""For each of an issuer's two answers."""
_LARGEST = 512 * 1024
_OK = 200
_PATH = "/.well-known/openid-configuration"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ANYWHERE = Guard(tuple(map(ip_network, ("0.0.0.0/0", "::/0"))))
"""The operator chose the issuer, which may be in a private network."""


def trust_of(settings: Settings) -> Trust | None:
    """Return the issuer whose tokens are accepted; ``None`` without one.

    Raises:
        InvalidSetting: A setting is missing or cannot be used; with all problems.
    """
    if settings.oidc_issuer is None:
        if settings.oidc_audience is not None:
            raise InvalidSetting(
                problems=[Problem("HOLDFAST_OIDC_ISSUER", "is required beside HOLDFAST_OIDC_AUDIENCE")]
            )
        return None
    problems = []
    if not is_safe(settings.oidc_issuer):
        hint = "without TLS anybody on the network could sign tokens; http:// is only for an issuer on this machine"
        message = f"{settings.oidc_issuer!r} is not an https:// address"
        problems.append(Problem("HOLDFAST_OIDC_ISSUER", message, hint=hint))
    if not settings.oidc_audience:
        hint = "give the client id or the audience that the issuer writes as aud into the tokens for this server"
        problems.append(Problem("HOLDFAST_OIDC_AUDIENCE", "is required beside HOLDFAST_OIDC_ISSUER", hint=hint))
    if settings.oidc_prefix in _OTHERS or not _PREFIX.fullmatch(settings.oidc_prefix):
        hint = "the colon keeps the issuer's names apart from Unix accounts; use oidc: or the like"
        rule = "must be lower-case letters and digits with a colon at the end, and not a prefix in use"
        problems.append(Problem("HOLDFAST_OIDC_PREFIX", f"{settings.oidc_prefix!r} {rule}", hint=hint))
    if problems:
        raise InvalidSetting(problems=problems)
    return Trust(
        settings.oidc_issuer,
        settings.oidc_audience or "",
        settings.oidc_user_claim,
        settings.oidc_groups_claim,
        settings.oidc_prefix,
    )


def issued(settings: Settings, clock: SystemClock) -> Callable[[str], Awaitable[Principal]] | None:
    """Return what finds the owners of the issuer's tokens, and begin to read its keys; ``None`` without an issuer.

    Raises:
        InvalidSetting: A setting is missing or cannot be used.
        Unavailable: The library is not installed.
    """
    trust = trust_of(settings)
    if trust is None:
        return None
    try:
        from holdfast.app.entrance.oidc import bearers
    except ImportError as error:
        msg = "tokens of an OpenID Connect issuer need a library that is not installed"
        raise Unavailable(msg, hint="pip install 'holdfast-scheduler[oidc]'") from error
    table = settings.accounts if settings.run_as == "submitter" else {}
    return bearers(trust, keys_of, (clock.now, clock.steady), partial(_account, table=table))


def _account(name: str, table: Mapping[str, str]) -> Principal | None:
    """Return the account that the settings give a name; an issuer's name alone gives none."""
    return accounts.named(name, table) if name in table else None


def is_safe(url: object) -> bool:
    """Whether nobody on the network can change what the web server at this address answers."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = parts.hostname if parts is not None else None
    except ValueError:
        return False
    return (
        parts is not None and bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))
    )


def keys_of(issuer: str) -> Sequence[Any]:
    """Return the keys of an issuer, as it writes them.

    Raises:
        Undelivered: It does not answer, or not with its keys.
    """
    described = _read(issuer.rstrip("/") + _PATH)
    if described.get("issuer") != issuer:
        msg = f"it calls itself {described.get('issuer')!r}, which must be exactly {issuer!r}"
        raise Undelivered(msg)
    place = described.get("jwks_uri")
    if not is_safe(place):
        msg = f"its keys are at {place!r}, which is not an https:// address"
        raise Undelivered(msg)
    keys = _read(str(place)).get("keys")
    if not isinstance(keys, list):
        msg = f"there are no keys at {place}"
        raise Undelivered(msg)
    return keys


def _read(url: str) -> dict[str, Any]:
    request = WebRequest("GET", url, {"Accept": "application/json"})
    status, body = exchange(_ANYWHERE, request, TIMEOUT_S, most=_LARGEST, reads=lambda status: status == _OK)
    if status != _OK:
        msg = f"{url} answered with status {status}"
        raise Undelivered(msg)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        msg = f"{url} did not answer with a JSON object of up to {_LARGEST} bytes"
        raise Undelivered(msg)
    return document
