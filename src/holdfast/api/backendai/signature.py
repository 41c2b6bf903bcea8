"""The signature of a call: what a client signs, with which key, and when a call is too old.

Clients sign the method, the path with its query, the date, the host, the bare media type and the version of the API,
but not the body. The key is made from the keypair's secret, the day of the date, and the host.
"""

from __future__ import annotations

import hmac
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.api.backendai.problems import RefusedCall
from holdfast.domain.record import Struct
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME = "BackendAI"
WINDOW = timedelta(minutes=15)
"""How far the date of a call may be from the server's clock."""
_CREDENTIAL = re.compile(
    r"signMethod=(?P<method>[A-Za-z0-9-]{1,32}), ?credential=(?P<access_key>[!-9;-~]{1,64}):(?P<signature>[0-9a-f]{64})"
)
_METHOD = "HMAC-SHA256"
_NO_BODY = sha256(b"").hexdigest()
_NO_TYPE = "application/octet-stream"
"""What is signed where no content type is sent."""
_LONGEST_DATE = 64
_HINT = "sign calls with the keypair of BACKEND_ACCESS_KEY and BACKEND_SECRET_KEY"


class SignedCall(Struct, frozen=True):
    """The parts of a call that its client signs."""

    method: str
    target: str
    """The raw path with its query."""
    date: str
    """As sent."""
    host: str
    """``HOST[:PORT]``."""
    content_type: str
    """The media type, without parameters."""
    version: str
    """The version of the API that the client speaks."""

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str]) -> SignedCall:
        """Return what was signed of a request; names of headers are in lower case."""
        return cls(
            method,
            target,
            headers.get("date") or headers.get("x-backendai-date", ""),
            headers.get("host", ""),
            headers.get("content-type", "").partition(";")[0].strip().lower() or _NO_TYPE,
            headers.get("x-backendai-version", ""),
        )

    def text(self) -> str:
        """Return the text that is signed."""
        return (
            f"{self.method}\n{self.target}\n{self.date}\nhost:{self.host}\ncontent-type:{self.content_type}\n"
            f"x-backendai-version:{self.version}\n{_NO_BODY}"
        )

    def signature(self, secret: str, day: str) -> str:
        """Return the signature by a secret, in hexadecimal digits; ``day`` is that of the date, as YYYYMMDD."""
        key = hmac.digest(secret.encode(), day.encode(), "sha256")
        key = hmac.digest(key, self.host.encode(), "sha256")
        return hmac.digest(key, self.text().encode("utf-8", "surrogateescape"), "sha256").hex()


class Credential(Struct, frozen=True):
    """The keypair that a call names, and its signature."""

    access_key: str
    signature: str


def read_credential(authorization: str) -> Credential:
    """Read the ``Authorization`` header of a call.

    Raises:
        Unauthenticated: It has no signature, or one by another method.
    """
    scheme, _, text = authorization.partition(" ")
    form = _CREDENTIAL.fullmatch(text) if scheme == SCHEME else None
    if form is None:
        msg = f"the authorization is not: {SCHEME} signMethod={_METHOD}, credential=ACCESS_KEY:SIGNATURE"
        raise Unauthenticated(msg, hint=_HINT)
    if form["method"] != _METHOD:
        msg = f"calls are signed by {_METHOD}, not by {form['method']}"
        raise Unauthenticated(msg)
    return Credential(form["access_key"], form["signature"])


def read_day(text: str, now: float) -> str:
    """Read the date of a call, and return its day as YYYYMMDD, by which the signing key is made.

    Args:
        text: The date in ISO 8601, or as HTTP writes dates; UTC if it names no time zone.
        now: The server's time.

    Raises:
        RefusedCall: There is no date, or it is too far from the server's.
    """
    if not text:
        msg = "the call has no date; send the header Date"
        raise _wrong_date(msg)
    try:
        date = _parse_date(text[:_LONGEST_DATE])
        distance = abs(date - datetime.fromtimestamp(now, UTC))
    except (ValueError, TypeError, OverflowError) as error:
        msg = "the date of the call is neither in ISO 8601 nor as HTTP writes dates"
        raise _wrong_date(msg) from error
    if distance >= WINDOW:
        minutes = int(WINDOW.total_seconds() // 60)
        msg = f"the date of the call is not within {minutes} minutes of the server's; check both clocks"
        raise _wrong_date(msg)
    return date.strftime("%Y%m%d")


def _parse_date(text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        date = parsedate_to_datetime(text)
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _wrong_date(message: str) -> RefusedCall:
    title = "Missing or invalid authorization parameters."
    return RefusedCall(400, "invalid-auth-params", title, "user_auth_invalid-parameters", message)


def is_signed_by(secret: str, call: SignedCall, credential: Credential, day: str) -> bool:
    """Whether a call was signed with a secret; takes as long whichever byte differs."""
    return hmac.compare_digest(call.signature(secret, day), credential.signature)
