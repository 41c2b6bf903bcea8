"""Says whose a token of OpenID Connect is, by what its issuer says in it, and whether it is meant for this server.

What it says counts only once its signature is known to be the issuer's; until then this is what somebody says of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.access.grants import LONGEST_SUBJECT, can_be_named
from holdfast.domain.access.people import Principal, Via
from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

LEEWAY_S = 60.0
"""How far two clocks may be apart."""
LONGEST_NAME = LONGEST_SUBJECT - len("group:")
_CLOCK = "by this server's clock, which may be wrong"
_DATE = "check the server's clock: date"
_MOST_SHOWN = 80
_NEVER = 1e11


class Trust(Struct, frozen=True):
    """Whose tokens are taken, and how people are called by them."""

    issuer: str
    """Its URL, exactly as its tokens name it."""
    audience: str
    """For whom it makes the tokens that are taken here."""
    user_claim: str = "sub"
    groups_claim: str = "groups"
    prefix: str = "oidc:"
    """What the names of its people and groups begin with here; no Unix account has a colon in its name."""


def bearer(claims: Mapping[str, Any], trust: Trust, now: float) -> Principal:
    """Return whose a token is.

    Raises:
        Unauthenticated: It is not for this server, not for this time, or names nobody.
    """
    _require_meant(claims, trust)
    _require_time(claims, now)
    groups = _found(claims, trust.groups_claim)
    named = groups if isinstance(groups, list) else [groups]
    group_names = [f"{trust.prefix}{name}" for name in named if isinstance(name, str) and name]
    return Principal(
        f"{trust.prefix}{_name(claims, trust)}",
        tuple(sorted({name for name in group_names if _is_fit(name)})),
        Via.OIDC,
    )


def _require_meant(claims: Mapping[str, Any], trust: Trust) -> None:
    issuer, audience = claims.get("iss"), claims.get("aud")
    if issuer != trust.issuer:
        msg = f"the token is of the issuer {_shown(issuer)}, and this server trusts {trust.issuer!r}, to the letter"
        raise Unauthenticated(msg, hint=f"log in at {trust.issuer}")
    if trust.audience not in (audience if isinstance(audience, list) else [audience]):
        only = audience[0] if isinstance(audience, list) and len(audience) == 1 else audience
        msg = f"the token is for {_shown(only)}, and not for {trust.audience!r}"
        raise Unauthenticated(msg, hint=f"ask the issuer for one with the audience (aud) {trust.audience}")


def _require_time(claims: Mapping[str, Any], now: float) -> None:
    ends, begins = _time(claims, "exp"), max(_time(claims, "nbf", 0.0), _time(claims, "iat", 0.0))
    if now >= ends + LEEWAY_S:
        msg = f"the token expired {format_duration(max(1, round(now - ends)))} ago {_CLOCK}"
        raise Unauthenticated(msg, hint=f"log in again; if it should still be valid, {_DATE}")
    if now < begins - LEEWAY_S:
        msg = f"the token is valid only in {format_duration(max(1, round(begins - now)))} {_CLOCK}"
        raise Unauthenticated(msg, hint=f"if it was made just now, {_DATE}")


def _time(claims: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _NEVER:
        msg = f"the token does not say when it is valid: its {name} is {_shown(value)}, not a time in seconds"
        raise Unauthenticated(msg, hint="tokens that never expire are not taken")
    return float(value)


def _name(claims: Mapping[str, Any], trust: Trust) -> str:
    name = _found(claims, trust.user_claim)
    hint = f"HOLDFAST_OIDC_USER_CLAIM says which claim names people; this token has {', '.join(sorted(claims)[:30])}"
    if not isinstance(name, str) or not _is_fit(f"{trust.prefix}{name}") or not name:
        what = "is missing" if name is None else f"is {_shown(name)}, which is no name that somebody can have here"
        msg = f"the token does not say who its bearer is: its claim {trust.user_claim!r} {what}"
        raise Unauthenticated(msg, hint=hint)
    if trust.user_claim == "email" and claims.get("email_verified", True) is not True:
        msg = f"the token's issuer has not verified that {name!r} is its bearer's e-mail address"
        raise Unauthenticated(msg, hint="have the address verified there, and log in again")
    return name


def _is_fit(name: str) -> bool:
    return len(name) <= LONGEST_NAME and can_be_named(name)


def _found(claims: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a claim by its name, or by its path in others: some issuers keep groups further down."""
    if name in claims:
        return claims[name]
    claim: Any = claims
    for part in name.split("."):
        claim = claim.get(part) if isinstance(claim, dict) else None
    return claim


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
