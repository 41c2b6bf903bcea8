"""Whose a token of OpenID Connect is, and why it opens nothing."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.access import Principal, Via
from holdfast.domain.access.claims import LEEWAY_S, LONGEST_NAME, Trust, bearer
from holdfast.domain.record import evolve
from holdfast.errors import Unauthenticated

NOW = 1_800_000_000.0
HOUR_S = 3600.0
TRUST = Trust("https://login.example/realm", "holdfast")
CLAIMS: dict[str, Any] = {"iss": TRUST.issuer, "aud": TRUST.audience, "sub": "ann", "exp": NOW + 60, "iat": NOW}


def test_a_token_names_its_bearer_and_groups_with_the_issuers_prefix() -> None:
    assert bearer({**CLAIMS, "groups": ["ml", "a b", "ops", "ml", 3, ""]}, TRUST, NOW) == Principal(
        "oidc:ann", ("oidc:ml", "oidc:ops"), Via.OIDC
    )
    assert bearer({**CLAIMS, "groups": "ml"}, TRUST, NOW).groups == ("oidc:ml",)
    for nothing in ({}, {"groups": None}, {"groups": {"ml": True}}, {"groups": [["ml"]]}):
        assert bearer({**CLAIMS, **nothing}, TRUST, NOW).groups == ()
    assert bearer({**CLAIMS, "aud": ["other", "holdfast"]}, TRUST, NOW).name == "oidc:ann"


def test_the_settings_say_which_claims_count_and_how_names_begin() -> None:
    trust = evolve(TRUST, user_claim="email", groups_claim="realm_access.roles", prefix="lab:")
    claims = {**CLAIMS, "email": "ann@example.org", "realm_access": {"roles": ["ml"]}}
    assert bearer(claims, trust, NOW) == Principal("lab:ann@example.org", ("lab:ml",), Via.OIDC)
    url = evolve(TRUST, groups_claim="https://example.org/groups")
    assert bearer({**CLAIMS, "https://example.org/groups": ["ml"]}, url, NOW).groups == ("oidc:ml",)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iss": "https://login.example/realm/"}, "issuer is 'https://login.example/realm/'; this server"),
        ({"iss": None}, "issuer is nothing"),
        ({"aud": "holdfast2"}, "is for 'holdfast2', not for 'holdfast'"),
        ({"aud": ["a", "b"]}, r"is for \['a', 'b'\]"),
        ({"aud": "x" * 1000}, r"xxx\.\.\., not"),
        ({"aud": {"holdfast": 1}}, "not for 'holdfast'"),
        ({"exp": NOW - HOUR_S}, "expired 1h ago by this server's clock, which may be wrong"),
        ({"exp": NOW - LEEWAY_S}, "expired 1m ago"),
        ({"nbf": NOW + HOUR_S}, "becomes valid only in 1h by this server's clock, which may be wrong"),
        ({"iat": NOW + HOUR_S}, "becomes valid only in 1h"),
        ({"exp": None}, "its exp is nothing, not a time"),
        ({"exp": True}, "its exp is True"),
        ({"exp": "never"}, "its exp is 'never'"),
        ({"exp": float("nan")}, "its exp is nan"),
        ({"exp": float("inf")}, "its exp is inf"),
        ({"exp": 10**400}, "its exp is 1000"),
        ({"iat": "now"}, "its iat is 'now'"),
        ({"sub": None}, "its claim 'sub' is missing"),
        ({"sub": ""}, "its claim 'sub' is ''"),
        ({"sub": 7}, "its claim 'sub' is 7"),
        ({"sub": "a b"}, "not a valid name here"),
        ({"sub": "a,group:x"}, "not a valid name here"),
        ({"sub": "a\u202eb"}, "not a valid name here"),
        ({"sub": "a" * LONGEST_NAME}, "not a valid name here"),
    ],
)
def test_what_opens_nothing_says_why(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(Unauthenticated, match=said) as caught:
        bearer({**CLAIMS, **changed}, TRUST, NOW)
    assert caught.value.hint


def test_clocks_may_be_apart_by_a_minute() -> None:
    late, early = {"exp": NOW - LEEWAY_S + 1, "iat": NOW - HOUR_S}, {"iat": NOW + LEEWAY_S, "nbf": NOW + LEEWAY_S}
    names = {bearer({**CLAIMS, **times}, TRUST, NOW).name for times in ({}, late, early)}
    assert names == {bearer(CLAIMS, TRUST, NOW).name}


def test_an_address_counts_only_if_it_is_its_bearers() -> None:
    trust = evolve(TRUST, user_claim="email")
    claims = {**CLAIMS, "email": "ann@example.org"}
    assert bearer({**claims, "email_verified": True}, trust, NOW).name == "oidc:ann@example.org"
    for said in (False, "false", None):
        with pytest.raises(Unauthenticated, match="has not verified that 'ann@"):
            bearer({**claims, "email_verified": said}, trust, NOW)
