"""API tokens and the tokens of jobs: makes them, and finds the principal behind one.

A run's token is derived from a key and the run's uid, so an order that is repeated carries the same token. The database
stores only its digest, with the run: every server can check it, and none needs the key.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from holdfast.compiled.codec import load_spec
from holdfast.domain.access.tokens import API_TOKEN_PREFIX, JOB_TOKEN_PREFIX, job_token_limit
from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.record import Struct, evolve
from holdfast.domain.units import format_duration
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.job import Job, Run

_ID_BYTES, _SECRET_BYTES, _SECRET_LENGTH, _LONGEST_UID = 6, 32, 43, 255
_SECRET = rf"[A-Za-z0-9_-]{{{_SECRET_LENGTH}}}"
_API_TOKEN = re.compile(rf"{API_TOKEN_PREFIX}([0-9a-f]{{{2 * _ID_BYTES}}})_({_SECRET})")
_JOB_TOKEN = re.compile(rf"{JOB_TOKEN_PREFIX}([!-~]{{1,{_LONGEST_UID}}})_{_SECRET}")
_NO_DIGEST = "0" * 64
"""Compared with where no token matches, so that the answer takes as long."""
_JOB_TOKEN_HINT = "each attempt has a token of its own, in its HOLDFAST_TOKEN"  # noqa: S105 - the name of a variable


class RunReader(Protocol):
    """The part of the store that job tokens are checked against."""

    def run(self, uid: str) -> Run | None:
        """Return a run, or ``None`` if it does not exist."""

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        """Return those of the jobs that exist."""


def new_secret() -> tuple[str, str, str]:
    """Make an API token; returns its id, its full text, and the digest to store."""
    key, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    return key, f"{API_TOKEN_PREFIX}{key}_{secret}", _digest(secret)


def tokens_by_id(tokens: Iterable[ApiToken]) -> Mapping[str, ApiToken]:
    """Map tokens by their ids."""
    return {token.id: token for token in tokens}


def is_unknown(text: str, tokens: Mapping[str, ApiToken]) -> bool:
    """Whether a text is a well-formed API token with an id that is none of these."""
    form = _API_TOKEN.fullmatch(text)
    return form is not None and form[1] not in tokens


def check_api_token(text: str, tokens: Mapping[str, ApiToken], now: float) -> ApiToken:
    """Return the token with this text.

    Only a caller who has its secret learns that a token of that id exists.

    Raises:
        Unauthenticated: The text is no API token, the token is unknown, or it was revoked or has expired.
    """
    form = _API_TOKEN.fullmatch(text)
    if form is None:
        length = len(API_TOKEN_PREFIX) + 2 * _ID_BYTES + 1 + _SECRET_LENGTH
        msg = f"this is not a complete API token: it must have {length} characters and begin with {API_TOKEN_PREFIX}"
        raise Unauthenticated(msg, hint="copy all of it, without spaces or line breaks")
    token = tokens.get(form[1])
    if not hmac.compare_digest(_digest(form[2]), _NO_DIGEST if token is None else token.digest) or token is None:
        msg = "this server does not know that token"
        raise Unauthenticated(msg, hint="run holdfast token list on the server to see the tokens it knows")
    hint = "create a new one: holdfast token create"
    if token.revoked_at is not None:
        msg = f"token {token.name!r} of {token.user} was revoked"
        raise Unauthenticated(msg, hint=hint)
    if token.expires_at is not None and token.over(now):
        ago = format_duration(max(1.0, round(now - token.expires_at)))
        msg = f"token {token.name!r} of {token.user} expired {ago} ago by this server's clock, which may be wrong"
        raise Unauthenticated(msg, hint=f"{hint}; if it should still be valid, check the server's clock: date")
    return token


class RunTokens(Struct, frozen=True):
    """Makes the tokens of runs from a key."""

    key: bytes

    def token(self, uid: str) -> str:
        """Return a run's token."""
        digest = hmac.digest(self.key, uid.encode(), "sha256")
        return f"{JOB_TOKEN_PREFIX}{uid}_{urlsafe_b64encode(digest).decode().rstrip('=')}"

    def environment(self, url: str, uid: str) -> dict[str, str]:
        """Return the variables that tell a run's program the server's address and its own token."""
        return {"HOLDFAST_URL": url, "HOLDFAST_TOKEN": self.token(uid)}

    def digest(self, uid: str) -> str:
        """Return the digest of a run's token, which is stored with the run."""
        return _digest(self.token(uid))


def principal_of_job_token(text: str, store: RunReader, user: Callable[[str], Principal]) -> Principal:
    """Return the principal behind a job's token: the job's owner, limited to the work below the job.

    Args:
        text: The token.
        store: Where the run is.
        user: Finds a principal by name.

    Raises:
        Unauthenticated: The text is no job token, the token is unknown, or its run has ended.
    """
    form = _JOB_TOKEN.fullmatch(text)
    run = None if form is None else store.run(form[1])
    digest = _NO_DIGEST if run is None else run.token_digest or _NO_DIGEST
    jobs = [] if run is None else store.jobs_by_id([run.job_id])
    if not hmac.compare_digest(_digest(text), digest) or run is None or not jobs:
        msg = "this server does not know that job token"
        raise Unauthenticated(msg, hint=_JOB_TOKEN_HINT)
    job = jobs[0]
    if run.status in RUN_TERMINAL or run.attempt != job.attempt or job.terminal:
        msg = f"attempt {run.attempt} of job {job.id} has ended, so its token is no longer valid"
        raise Unauthenticated(msg, hint=_JOB_TOKEN_HINT)
    principal, group = user(job.submitted_by), load_spec(job.spec).identity
    if None not in {principal.uid, job.submitter_uid} and principal.uid != job.submitter_uid:
        msg = f"the job belongs to an account {job.submitted_by!r} that no longer exists"
        raise Unauthenticated(msg, hint="an account that was created again under the same name is a different account")
    # A caller who has no Unix account does not get one by submitting a job.
    limit = job_token_limit(job.id, group, submits=not job.cancel_requested)
    return evolve(principal, uid=job.submitter_uid, limit=limit)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
