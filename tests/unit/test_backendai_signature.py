"""What Backend.AI's clients sign, judged by signatures that their own code made, and which calls are too old."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.backendai.problems import RefusedCall
from holdfast.api.backendai.signature import is_signed_by, read_credential, read_day
from holdfast.domain.record import evolve
from holdfast.errors import Unauthenticated
from holdfast.service.access.keypairs import KeypairSecrets
from holdfast.wire.backendai.signatures import SignedCall

SECRET = "a-secret-of-40-characters-for-the-vectors"  # noqa: S105 - of no server
VERSION = "v9.20250722"
VECTORS = (
    (
        SignedCall(
            "POST",
            "/v2/sessions/enqueue",
            "2026-11-28T21:40:05.123456+00:00",
            "127.0.0.1:8265",
            "application/json",
            VERSION,
        ),
        "20261128",
        "4fcae0f646f6c1c969ef997debca3e2aadae0ae8899c489e7f5e132a65e6de59",
    ),
    (
        SignedCall(
            "GET",
            "/v2/sessions/6e3b2cde-5b3e-5a52-9a0a-27b1d7c0a111/logs?kernel_id=a%20b&x=1",
            "2026-01-02T03:04:05+00:00",
            "scheduler.example",
            "application/json",
            VERSION,
        ),
        "20260102",
        "58167d5416c21301b8541bc56324a301354041814044be987db8ce248a65bc51",
    ),
    (
        SignedCall(
            "GET",
            "/manager/announcement",
            "2027-01-01T00:04:59+09:00",
            "[::1]:8265",
            "application/octet-stream",
            VERSION,
        ),
        "20270101",
        "90b93be472f3b23d88e35d1257aaa9c6d3080b230fc8bee65ee5b6d93c1f28dc",
    ),
)
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
PARTS = ("method", "target", "date", "host", "content_type", "version")
CALL, DAY, SIGNATURE = VECTORS[0]
AUTHORIZATION = f"BackendAI signMethod=HMAC-SHA256, credential=AKIAEXAMPLE:{SIGNATURE}"


@pytest.mark.parametrize(("call", "day", "signature"), VECTORS)
def test_a_signature_is_the_one_that_the_client_makes(call: SignedCall, day: str, signature: str) -> None:
    assert call.signature(SECRET, day) == signature
    assert read_day(call.date, datetime.fromisoformat(call.date).timestamp()) == day


def test_what_is_signed_of_a_request_is_in_its_headers() -> None:
    headers = {
        "date": CALL.date,
        "host": CALL.host,
        "content-type": "Application/JSON; charset=utf-8",
        "x-backendai-version": VERSION,
    }
    assert SignedCall.of(CALL.method, CALL.target, headers) == CALL
    elsewhere = {**headers, "x-backendai-date": CALL.date}
    del elsewhere["date"]
    assert SignedCall.of(CALL.method, CALL.target, elsewhere) == CALL
    del headers["content-type"]
    assert SignedCall.of(CALL.method, CALL.target, headers).content_type == "application/octet-stream"


@given(part=st.sampled_from(PARTS), place=st.integers(0, 200), character=st.characters(codec="latin-1"))
def test_a_changed_character_anywhere_is_noticed(part: str, place: int, character: str) -> None:
    text = getattr(CALL, part)
    place %= len(text)
    changed = evolve(CALL, **{part: text[:place] + character + text[place + 1 :]})
    assert is_signed_by(SECRET, changed, read_credential(AUTHORIZATION), DAY) == (changed == CALL)


@given(
    st.tuples(*[st.text(st.characters(codec="latin-1", exclude_characters="\n"), max_size=40) for _ in PARTS]),
    st.binary(min_size=1, max_size=40),
    st.sampled_from("0123456789abcdef"),
    st.integers(0, 63),
)
def test_a_call_is_signed_by_its_own_secret_alone(parts: tuple[str, ...], key: bytes, digit: str, place: int) -> None:
    call, keypairs = SignedCall(*parts), KeypairSecrets(key)
    secret = keypairs.secret("AKIAEXAMPLE", "ann")
    signature = call.signature(secret, DAY)
    credential = read_credential(f"BackendAI signMethod=HMAC-SHA256, credential=AKIAEXAMPLE:{signature}")
    assert (credential.access_key, credential.signature) == ("AKIAEXAMPLE", signature)
    assert is_signed_by(secret, call, credential, DAY)
    assert not is_signed_by(keypairs.secret("AKIAEXAMPLF", "ann"), call, credential, DAY)
    assert not is_signed_by(keypairs.secret("AKIAEXAMPLE", "bob"), call, credential, DAY)
    assert not is_signed_by(KeypairSecrets(key + b"x").secret("AKIAEXAMPLE", "ann"), call, credential, DAY)
    assert not is_signed_by(secret, call, credential, "20261129")
    changed = signature[:place] + digit + signature[place + 1 :]
    assert is_signed_by(secret, call, evolve(credential, signature=changed), DAY) == (changed == signature)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "BackendAI",
        f"Bearer {SIGNATURE}",
        f"backendai signMethod=HMAC-SHA256, credential=AK:{SIGNATURE}",
        f"BackendAI signMethod=HMAC-SHA1, credential=AK:{SIGNATURE}",
        f"BackendAI credential=AK:{SIGNATURE}, signMethod=HMAC-SHA256",
        f"BackendAI signMethod=HMAC-SHA256, credential=:{SIGNATURE}",
        f"BackendAI signMethod=HMAC-SHA256, credential=A K:{SIGNATURE}",
        f"BackendAI signMethod=HMAC-SHA256, credential={'A' * 65}:{SIGNATURE}",
        f"BackendAI signMethod=HMAC-SHA256, credential=AK:{SIGNATURE[1:]}",
        f"BackendAI signMethod=HMAC-SHA256, credential=AK:{SIGNATURE.upper()}",
        f"BackendAI signMethod=HMAC-SHA256, credential=AK:{SIGNATURE}\n",
    ],
)
def test_an_authorization_without_a_signature_is_refused(authorization: str) -> None:
    with pytest.raises(Unauthenticated):
        read_credential(authorization)


@pytest.mark.parametrize("form", [datetime.isoformat, format_datetime])
@pytest.mark.parametrize(
    ("seconds", "is_near"), [(0, True), (899, True), (-899, True), (900, False), (-900, False), (86_400, False)]
)
def test_a_date_is_within_a_quarter_of_an_hour(form: object, seconds: int, *, is_near: bool) -> None:
    text = form(NOON + timedelta(seconds=seconds))  # type: ignore[operator]
    if is_near:
        assert read_day(text, NOON.timestamp()) == "20261128"
        return
    with pytest.raises(RefusedCall, match="15 minutes") as caught:
        read_day(text, NOON.timestamp())
    assert (caught.value.status, caught.value.code) == (400, "user_auth_invalid-parameters")


def test_a_date_without_a_time_zone_is_in_utc_and_with_one_its_day_is_its_own() -> None:
    assert read_day("2026-11-28T12:00:00", NOON.timestamp()) == "20261128"
    assert read_day("Sat, 28 Nov 2026 12:00:00 GMT", NOON.timestamp()) == "20261128"
    assert read_day("2026-11-29T00:00:00+12:00", NOON.timestamp()) == "20261129"


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01T00:00:00", "9" * 5000, "0001-01-01T00:00:00+23:59", "\0"])
def test_what_is_no_date_of_today_is_a_bad_request(text: str) -> None:
    with pytest.raises(RefusedCall) as caught:
        read_day(text, NOON.timestamp())
    assert caught.value.status == 400


@given(st.text(max_size=80))
def test_no_text_breaks_the_reader_of_dates(text: str) -> None:
    with suppress(RefusedCall):
        assert read_day(text, NOON.timestamp()) in {"20261127", "20261128", "20261129"}


def test_both_halves_of_a_keypair_are_made_of_the_key() -> None:
    keypairs, others = KeypairSecrets(b"key"), KeypairSecrets(b"another")
    ann, bob = keypairs.access_key("ann"), keypairs.access_key("bob")
    assert len({ann, bob, others.access_key("ann")}) == 3
    secrets = [
        maker.secret(key, owner) for maker in (keypairs, others) for key in (ann, bob) for owner in ("ann", "bob")
    ]
    assert len(set(secrets)) == len(secrets)
    assert (ann[:4], len(ann), {*map(len, secrets)}) == ("AKIA", 20, {40})
    assert (keypairs.access_key("ann"), secrets[0]) == (ann, KeypairSecrets(b"key").secret(ann, "ann"))
