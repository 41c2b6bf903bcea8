"""What a server needs in order to serve other machines: TLS, or a proxy that speaks it, and tokens for others.

Renewed certificates are read again.
"""

from __future__ import annotations

import logging
import socket
import ssl
import stat
from typing import TYPE_CHECKING

from holdfast.errors import InvalidSetting, Problem, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.settings import Settings

_log = logging.getLogger(__name__)
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def is_beyond(host: str) -> bool:
    """Whether other machines can reach a server that listens on a host."""
    return host not in LOOPBACK


def require_safe(host: str, settings: Settings) -> None:
    """Check that nobody on the network can read what is sent.

    Raises:
        Refused: Tokens would be sent without TLS.
        InvalidSetting: Only one of certificate and key is given.
    """
    paths = {"HOLDFAST_TLS_CERT": settings.tls_cert, "HOLDFAST_TLS_KEY": settings.tls_key}
    missing = [name for name, path in paths.items() if path is None]
    if len(missing) == 1:
        raise InvalidSetting(problems=[Problem(missing[0], "is required: a certificate and its key go together")])
    if not is_beyond(host):
        return
    if missing and not settings.proxy:
        message = f"refusing to listen on {host}: without TLS only a loopback address is safe"
        hint = "give --tls-cert and --tls-key, or name the TLS proxy in front of it in HOLDFAST_PROXY; else listen on "
        raise Refused(message, hint=hint + ", ".join(sorted(LOOPBACK)))


def require_token(host: str, settings: Settings, *, has_api_tokens: bool) -> None:
    """Check that others can have a token that is not the owner's.

    Raises:
        Refused: There is only the owner's.
    """
    others = (settings.token, settings.token_file, settings.oidc_issuer)
    if is_beyond(host) and not any(others) and not has_api_tokens:
        message = f"refusing to listen on {host}: the only token is that of the data directory, which is for its owner"
        hint = "first create one: holdfast token create NAME --user USER; or trust an issuer of tokens"
        raise Refused(message, hint=f"{hint}: HOLDFAST_OIDC_ISSUER")


def warn_of_one_account(host: str, settings: Settings) -> None:
    """Warn if other people are let in and everybody's programs run as the server's account."""
    if settings.run_as == "self" and (is_beyond(host) or settings.oidc_issuer):
        _log.warning(
            "programs run as this server's account whoever submits them, so that each can read what the server and"
            " other programs can; to run each as its submitter, start the server as root with --run-as submitter"
        )


def certificates(settings: Settings) -> Certificates | None:
    """Read the certificate that the settings name, if they do.

    Raises:
        Refused, InvalidSetting: It is not safe to use, or cannot be used.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Certificates(settings.tls_cert, settings.tls_key)


def names(host: str, settings: Settings) -> frozenset[str] | None:
    """Return the names of a server that other machines can reach; ``None`` if only this machine can."""
    if not is_beyond(host):
        return None
    return frozenset(name.lower() for name in (*settings.hosts, host, "localhost", socket.gethostname()))


class Certificates:
    """The certificate and key that a server uses."""

    def __init__(self, cert: Path, key: Path) -> None:
        """Read both; ``pair`` is the key, and the certificate with its chain.

        Raises:
            Refused: Everybody can read the key.
            InvalidSetting: They cannot be read, or do not belong together.
        """
        self._cert, self._key = cert, key
        self._seen = self._marks()
        try:
            if key.stat().st_mode & stat.S_IROTH:
                message = f"{key} can be read by everybody, so that anyone could pretend to be this server"
                raise Refused(message, hint=f"replace the key if somebody may have read it, and: chmod o= {key}")
            self.context = _loaded(cert, key)
            self.pair = _read(cert, key)
        except OSError as error:
            problem = Problem("HOLDFAST_TLS_CERT", f"{cert} and {key} cannot be used: {_reason(error)}")
            raise InvalidSetting(problems=[problem]) from error

    def look(self) -> None:
        """Use a renewed certificate for new connections; if it cannot be used, log that and keep the old one."""
        marks = self._marks()
        if marks == self._seen:
            return
        self._seen = marks
        try:
            # Checks both together first: the context must not get one without the other.
            _loaded(self._cert, self._key)
            self.context.load_cert_chain(self._cert, self._key)
            self.pair = _read(self._cert, self._key)
        except OSError as error:
            _log.warning("the renewed %s and %s cannot be used yet: %s", self._cert, self._key, _reason(error))
        else:
            _log.info("the renewed certificate %s is in use from now on", self._cert)

    def _marks(self) -> list[tuple[int, int, int]]:
        marks = []
        for path in (self._cert, self._key):
            try:
                facts = path.stat()
            except OSError:
                marks.append((0, 0, 0))
            else:
                marks.append((facts.st_ino, facts.st_mtime_ns, facts.st_size))
        return marks


def _loaded(cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(cert, key, password="")
    return context


def _read(cert: Path, key: Path) -> tuple[bytes, bytes]:
    return key.read_bytes(), cert.read_bytes()


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
