"""Reads from the claims of an OpenID Connect token who its bearer is, and whether it is meant for this server.

The caller must have verified the issuer's signature: without it, claims prove nothing.
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
"""How far apart two clocks may be."""
LONGEST_NAME = LONGEST_SUBJECT - len("group:")
_CLOCK = "by this server's clock, which may be wrong"
_DATE = "check the server's clock: date"
_MOST_SHOWN = 80
_NEVER = 1e11


class Trust(Struct, frozen=True):
    """The issuer whose tokens are accepted, and how they name people."""

    issuer: str
    """Its URL, exactly as its tokens name it."""
    audience: str
    """The audience of tokens that are accepted here."""
    user_claim: str = "sub"
    groups_claim: str = "groups"
    prefix: str = "oidc:"
    """Begins the names of its people and groups here; no Unix account has a colon in its name."""


def bearer(claims: Mapping[str, Any], trust: Trust, now: float) -> Principal:
    """Return the bearer of a token.

    Raises:
        Unauthenticated: The token is not for this server, not valid now, or names nobody.
    """
    _require_intended(claims, trust)
    _require_time(claims, now)
    groups = _claim(claims, trust.groups_claim)
    named = groups if isinstance(groups, list) else [groups]
    group_names = [f"{trust.prefix}{name}" for name in named if isinstance(name, str) and name]
    return Principal(
        f"{trust.prefix}{_name(claims, trust)}",
        tuple(sorted({name for name in group_names if _is_valid_name(name)})),
        Via.OIDC,
    )


def _require_intended(claims: Mapping[str, Any], trust: Trust) -> None:
    issuer, audience = claims.get("iss"), claims.get("aud")
    if issuer != trust.issuer:
        msg = f"the token's issuer is {_shown(issuer)}; this server trusts exactly {trust.issuer!r}"
        raise Unauthenticated(msg, hint=f"log in at {trust.issuer}")
    if trust.audience not in (audience if isinstance(audience, list) else [audience]):
        only = audience[0] if isinstance(audience, list) and len(audience) == 1 else audience
        msg = f"the token is for {_shown(only)}, not for {trust.audience!r}"
        raise Unauthenticated(msg, hint=f"ask the issuer for one with the audience (aud) {trust.audience}")


def _require_time(claims: Mapping[str, Any], now: float) -> None:
    ends, begins = _time(claims, "exp"), max(_time(claims, "nbf", 0.0), _time(claims, "iat", 0.0))
    if now >= ends + LEEWAY_S:
        msg = f"the token expired {format_duration(max(1, round(now - ends)))} ago {_CLOCK}"
        raise Unauthenticated(msg, hint=f"log in again; if it should still be valid, {_DATE}")
    if now < begins - LEEWAY_S:
        msg = f"the token becomes valid only in {format_duration(max(1, round(begins - now)))} {_CLOCK}"
        raise Unauthenticated(msg, hint=f"if it was made just now, {_DATE}")


def _time(claims: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _NEVER:
        msg = f"the token does not say when it is valid: its {name} is {_shown(value)}, not a time in seconds"
        raise Unauthenticated(msg, hint="tokens that never expire are not accepted")
    return float(value)


def _name(claims: Mapping[str, Any], trust: Trust) -> str:
    name = _claim(claims, trust.user_claim)
    hint = f"HOLDFAST_OIDC_USER_CLAIM says which claim names people; this token has {', '.join(sorted(claims)[:30])}"
    if not isinstance(name, str) or not _is_valid_name(f"{trust.prefix}{name}") or not name:
        what = "is missing" if name is None else f"is {_shown(name)}, which is not a valid name here"
        msg = f"the token does not say who its bearer is: its claim {trust.user_claim!r} {what}"
        raise Unauthenticated(msg, hint=hint)
    if trust.user_claim == "email" and claims.get("email_verified", True) is not True:
        msg = f"the token's issuer has not verified that {name!r} is its bearer's e-mail address"
        raise Unauthenticated(msg, hint="have the address verified there, and log in again")
    return name


def _is_valid_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and can_be_named(name)


def _claim(claims: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a claim by its name or its dotted path: some issuers nest groups in other claims."""
    if name in claims:
        return claims[name]
    claim: Any = claims
    for part in name.split("."):
        claim = claim.get(part) if isinstance(claim, dict) else None
    return claim


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
