"""Makes the tokens of jobs, and tells whose one is that a program shows.

A run's token can be made again by whoever has the key, from nothing but the run's uid: an order that is repeated has
the same one. Every server of the database knows it by its digest, which is stored with the run, and needs no key.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.access.tokens import JOB_TOKEN_PREFIX, job_token_limit
from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from holdfast.domain.access import Principal
    from holdfast.domain.job import Job, Run

    class RunReader(Protocol):
        """What is looked up of the store."""

        def run(self, uid: str) -> Run | None:
            """Return a run, if there is one."""

        def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
            """Return those of these jobs that are there."""


_SECRET_LENGTH, _LONGEST_UID = 43, 255
_FORM = re.compile(rf"{JOB_TOKEN_PREFIX}([!-~]{{1,{_LONGEST_UID}}})_[A-Za-z0-9_-]{{{_SECRET_LENGTH}}}")
_NOBODYS = "0" * 64
_HINT = "each attempt is given one of its own, in HOLDFAST_TOKEN, which it has to itself"


class RunTokens(Struct, frozen=True):
    """Makes tokens by a key."""

    key: bytes

    def token(self, uid: str) -> str:
        """Return the token of a run."""
        digest = hmac.digest(self.key, uid.encode(), "sha256")
        return f"{JOB_TOKEN_PREFIX}{uid}_{urlsafe_b64encode(digest).decode().rstrip('=')}"

    def environment(self, url: str, uid: str) -> dict[str, str]:
        """Return the variables by which a run's program finds the server at an address, and its token."""
        return {"HOLDFAST_URL": url, "HOLDFAST_TOKEN": self.token(uid)}

    def digest(self, uid: str) -> str:
        """Return what is stored of it."""
        return _digest(self.token(uid))


def bearer(text: str, store: RunReader, user: Callable[[str], Principal]) -> Principal:
    """Return who acts by the token of a job: its owner, for what is below it, while the run goes on that was given it.

    Args:
        text: What is shown.
        store: Where the run is.
        user: Finds whoever has a name.

    Raises:
        Unauthenticated: It is none, nobody knows it, or its run has ended.
    """
    form = _FORM.fullmatch(text)
    run = None if form is None else store.run(form[1])
    digest = _NOBODYS if run is None else run.token_digest or _NOBODYS
    jobs = [] if run is None else store.jobs_by_id([run.job_id])
    if not hmac.compare_digest(_digest(text), digest) or run is None or not jobs:
        msg = "this server does not know that token of a job"
        raise Unauthenticated(msg, hint=_HINT)
    job = jobs[0]
    if run.status in RUN_TERMINAL or run.attempt != job.attempt or job.terminal:
        msg = f"attempt {run.attempt} of job {job.id} has ended, and its token with it"
        raise Unauthenticated(msg, hint=_HINT)
    principal, group = user(job.submitted_by), load_spec(job.spec).identity
    if None not in {principal.uid, job.submitter_uid} and principal.uid != job.submitter_uid:
        msg = f"the job is of an account {job.submitted_by} that is not there any more"
        raise Unauthenticated(msg, hint="an account that was made again under that name is another one")
    # Somebody who has come in without an account is not given one by what they submitted.
    return evolve(
        principal, uid=job.submitter_uid, limit=job_token_limit(job.id, group, submits=not job.cancel_requested)
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
