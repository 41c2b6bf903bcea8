"""A certificate with its key, which are read again when they are renewed."""

from __future__ import annotations

import logging
import ssl
import stat
from typing import TYPE_CHECKING

from holdfast.errors import InvalidSetting, Problem, Refused

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)


class Certificates:
    """What a server shows to those who connect."""

    def __init__(self, cert: Path, key: Path) -> None:
        """Read both; the pair is the key, and the certificate with those that vouch for it.

        Raises:
            Refused: Everybody can read the key.
            InvalidSetting: They cannot be read, or do not belong together.
        """
        self._cert, self._key = cert, key
        self._seen = self._marks()
        try:
            if key.stat().st_mode & stat.S_IROTH:
                message = f"{key} can be read by everybody, who could pretend to be this server"
                raise Refused(message, hint=f"have another made if somebody may have, and: chmod o= {key}")
            self.context = _loaded(cert, key)
            self.pair = _read(cert, key)
        except OSError as error:
            problem = Problem("HOLDFAST_TLS_CERT", f"{cert} and {key} cannot be used: {_reason(error)}")
            raise InvalidSetting(problems=[problem]) from error

    def look(self) -> None:
        """Take up what was renewed, for connections from now on; what cannot be used is said, and the old one stays."""
        marks = self._marks()
        if marks == self._seen:
            return
        self._seen = marks
        try:
            _loaded(self._cert, self._key)  # one without the other is not to be taken up
            self.context.load_cert_chain(self._cert, self._key)
            self.pair = _read(self._cert, self._key)
        except OSError as error:
            _log.warning("the renewed %s and %s cannot be used yet: %s", self._cert, self._key, _reason(error))
        else:
            _log.info("the renewed certificate %s is used from now on", self._cert)

    def _marks(self) -> list[tuple[int, int, int]]:
        found = []
        for path in (self._cert, self._key):
            try:
                facts = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((facts.st_ino, facts.st_mtime_ns, facts.st_size))
        return found


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
