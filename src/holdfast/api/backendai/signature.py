"""Reads and judges the signature of a call, and says when a call is too old; see ``wire.backendai.signatures``."""

from __future__ import annotations

import hmac
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from holdfast.api.backendai.problems import RefusedCall
from holdfast.domain.record import Struct
from holdfast.errors import Unauthenticated
from holdfast.wire.backendai.signatures import METHOD, SCHEME

if TYPE_CHECKING:
    from holdfast.wire.backendai.signatures import SignedCall

WINDOW = timedelta(minutes=15)
"""How far the date of a call may be from the server's clock."""
_CREDENTIAL = re.compile(
    r"signMethod=(?P<method>[A-Za-z0-9-]{1,32}), ?credential=(?P<access_key>[!-9;-~]{1,64}):(?P<signature>[0-9a-f]{64})"
)
_LONGEST_DATE = 64
_HINT = "sign calls with the keypair of BACKEND_ACCESS_KEY and BACKEND_SECRET_KEY"


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
        msg = f"the authorization is not: {SCHEME} signMethod={METHOD}, credential=ACCESS_KEY:SIGNATURE"
        raise Unauthenticated(msg, hint=_HINT)
    if form["method"] != METHOD:
        msg = f"calls are signed by {METHOD}, not by {form['method']}"
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
