"""Keeps secrets that are sent with jobs, checks those that jobs name, and deletes those that no job names any more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import Forbidden, InvalidRequest, Problem, Refused
from holdfast.ports.secrets import LARGEST_SECRET, SecretUser

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.secrets import Secrets

SPARED_S = 3600.0
"""How long a secret is kept for a job that is yet to be submitted."""
NOWHERE = (
    "when the database is on a server, HOLDFAST_SECRETS must name a folder that every machine that runs its jobs has,"
    " such as a mounted secret"
)
_QUOTED = re.compile(r'"(job-[0-9a-f]{24})"')


class SpecReader(Protocol):
    """The part of the store that the sweep needs."""

    def specs_with(self, part: str) -> Iterable[str]:
        """Read the specifications that contain a text, of all jobs and workloads."""


def kept(value: str, secrets: Secrets | None, principal: Principal) -> str:
    """Keep a secret for the caller's jobs alone; returns its name.

    Raises:
        Refused: This server keeps no secrets.
        InvalidRequest: No variable can hold it; the message does not repeat it.
        Unavailable: It cannot be written.
    """
    if secrets is None:
        msg = "this server keeps no secrets"
        raise Refused(msg, hint=NOWHERE)
    if not _is_value(value):
        problem = Problem(
            "value", "is not a valid value of a variable", allowed=(f"UTF-8 text of 1 to {LARGEST_SECRET} bytes",)
        )
        raise InvalidRequest(problems=[problem])
    return secrets.keep(value, SecretUser(principal.name, principal.uid))


def _is_value(value: str) -> bool:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:  # JSON may hold lone surrogates
        return False
    return 0 < size <= LARGEST_SECRET and "\0" not in value


def unknown_secrets(spec: JobSpec, secrets: Secrets | None) -> list[Problem]:
    """Report each variable whose secret does not exist."""
    kept_names = frozenset() if secrets is None else secrets.refresh(spec.secrets.values())
    put = "put it into a file of that name, or send it with the job: holdfast run --secret-env NAME"
    hint = NOWHERE if secrets is None else put
    return [
        Problem(f"spec.env.{variable}.secret", f"there is no secret {name!r}", hint=hint)
        for variable, name in spec.secrets.items()
        if name not in kept_names
    ]


def withheld_secrets(spec: JobSpec, secrets: Secrets | None, caller: Caller | None) -> Forbidden | None:
    """Return the error for secrets that a job may not use: neither its submitter's nor its queue's."""
    if secrets is None or caller is None:
        return None
    user = SecretUser(caller.principal.name, caller.principal.uid, spec.queue)
    problems = [
        Problem(f"spec.env.{variable}.secret", f"secret {name!r} is neither {user.name}'s nor queue {spec.queue}'s")
        for variable, name in spec.secrets.items()
        if not secrets.opens(name, user)
    ]
    if not problems:
        return None
    message = f"job {spec.name!r} names secrets that it may not use"
    hint = "send your own: holdfast run --secret-env NAME; the server's operator can give one to a queue"
    return Forbidden(message, problems=problems, hint=hint)


def sweep(secrets: Secrets, store: SpecReader, now: float) -> int:
    """Delete the secrets sent with jobs that no job names any more; returns how many.

    Secrets newer than ``SPARED_S`` stay: their jobs may be about to be submitted.
    """
    unused = set(secrets.kept(before=now - SPARED_S))
    if not unused:
        return 0
    for text in store.specs_with('"job-'):
        unused.difference_update(_QUOTED.findall(text))
        if not unused:
            return 0
    unused.intersection_update(secrets.kept(before=now - SPARED_S))  # a job may have named one meanwhile
    for name in unused:
        secrets.discard(name)
    return len(unused)
