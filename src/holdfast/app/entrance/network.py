"""What a server needs to listen beyond its machine: TLS, or a named proxy that speaks it, and a token for others."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from holdfast.app.entrance.tls import Certificates
from holdfast.errors import InvalidSetting, Problem, Refused

if TYPE_CHECKING:
    from holdfast.app.settings import Settings

_log = logging.getLogger(__name__)
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def is_beyond(host: str) -> bool:
    """Whether other machines can reach a server that listens there."""
    return host not in LOOPBACK


def require_safe(host: str, settings: Settings) -> None:
    """Make sure that nobody on the way or at the other end gets what is not theirs.

    Raises:
        Refused: Tokens would be sent in clear.
        InvalidSetting: Only one of certificate and key is given.
    """
    given = {"HOLDFAST_TLS_CERT": settings.tls_cert, "HOLDFAST_TLS_KEY": settings.tls_key}
    missing = [name for name, path in given.items() if path is None]
    if len(missing) == 1:
        raise InvalidSetting(problems=[Problem(missing[0], "is required: a certificate and its key go together")])
    if not is_beyond(host):
        return
    if missing and not settings.proxy:
        message = f"refusing to listen on {host}: without TLS only a loopback address is safe"
        hint = "give --tls-cert and --tls-key, or name the TLS proxy in front of it in HOLDFAST_PROXY; else listen on "
        raise Refused(message, hint=hint + ", ".join(sorted(LOOPBACK)))


def require_token(host: str, settings: Settings, *, has_api_tokens: bool) -> None:
    """Make sure that others have something to show that is not the owner's.

    Raises:
        Refused: They have not.
    """
    others = (settings.token, settings.token_file, settings.oidc_issuer)
    if is_beyond(host) and not any(others) and not has_api_tokens:
        message = f"refusing to listen on {host}: the only token is that of the data directory, which is its owner's"
        hint = "first make one for somebody: holdfast token create NAME --user USER; or trust the issuer of others'"
        raise Refused(message, hint=f"{hint}: HOLDFAST_OIDC_ISSUER")


def warn_of_one_account(host: str, settings: Settings) -> None:
    """Say so where others are let in and everybody's programs run as the server's own account."""
    if settings.run_as == "self" and (is_beyond(host) or settings.oidc_issuer):
        _log.warning(
            "programs run as this server's own account whoever submits them, so that a program can read what the server"
            " and other programs can; started by root with --run-as submitter, each runs as its submitter's account"
        )


def certificates(settings: Settings) -> Certificates | None:
    """Read the certificate that the settings name, if they do.

    Raises:
        Refused, InvalidSetting: It is not to be used, or cannot be.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Certificates(settings.tls_cert, settings.tls_key)


def names(host: str, settings: Settings) -> frozenset[str] | None:
    """Return what a server that others can reach may be called by; ``None`` where nobody can but this machine."""
    if not is_beyond(host):
        return None
    return frozenset(name.lower() for name in (*settings.hosts, host, "localhost", socket.gethostname()))
