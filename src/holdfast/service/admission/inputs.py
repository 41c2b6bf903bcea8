"""Keeps files that are sent with jobs, reports missing ones, and deletes those that no job names any more."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from holdfast.domain.workloads.preparing import Input
from holdfast.errors import InvalidRequest, Problem, Refused
from holdfast.ports.blobs import LARGEST_BLOB
from holdfast.ports.secrets import SecretUser
from holdfast.service.admission.archives import archive_problems
from holdfast.service.admission.secrets import unknown_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.secrets import Secrets
    from holdfast.service.admission.secrets import SpecReader

INLINE = 32 << 10
"""Bytes up to which a file is stored with its job: a blob would cost the job two waits for the disk."""
SPARED_S = 3600.0
"""How long a file is kept for a job that is yet to be submitted."""
_QUOTED = re.compile(r'"blob":"([0-9a-f]{64})"')


def kept(data: bytes, blobs: Blobs | None, principal: Principal, *, field: str, archive: bool = False) -> str:
    """Keep a file that a caller sent for their jobs; returns its name.

    Raises:
        InvalidRequest: It is too large, or not a valid archive; with all problems.
        Refused: There is no room for it, or this server keeps no files.
        Unavailable: It cannot be written.
    """
    if len(data) > LARGEST_BLOB:
        problem = Problem(field, f"has {len(data)} bytes; at most {LARGEST_BLOB} are allowed")
        raise InvalidRequest(problems=[problem])
    problems = archive_problems(data, field) if archive else []
    if problems:
        raise InvalidRequest(problems=problems)
    if blobs is None:
        msg = "this server keeps no files that are sent with jobs"
        hint = "its database is on a server, so other machines may run its jobs: use a shared file system"
        raise Refused(msg, hint=hint)
    return blobs.keep(data, _user(principal))


def sent(data: bytes, path: str, blobs: Blobs | None, principal: Principal, *, field: str) -> Input:
    """Return the input for a file of this path, kept as a blob if it is large; see ``kept``."""
    if len(data) <= INLINE:
        return Input(path, data=base64.b64encode(data).decode())
    return Input(path, blob=kept(data, blobs, principal, field=field))


def absent(spec: JobSpec, secrets: Secrets | None, blobs: Blobs | None, caller: Caller | None) -> Sequence[Problem]:
    """Report each secret that does not exist, and each input that its submitter has not sent."""
    unknown = unknown_secrets(spec, secrets) if spec.secrets else []
    return [*unknown, *_unknown_inputs(spec, blobs, caller)] if spec.inputs else unknown


def _unknown_inputs(spec: JobSpec, blobs: Blobs | None, caller: Caller | None) -> Sequence[Problem]:
    named = [input_.blob for input_ in spec.inputs if input_.blob]
    if not named:
        return ()
    kept_names = frozenset() if blobs is None or caller is None else blobs.refresh(named, _user(caller.principal))
    return [
        Problem(f"spec.inputs[{place}].blob", f"you have sent nothing with the SHA-256 {input_.blob}", hint="send it")
        for place, input_ in enumerate(spec.inputs)
        if input_.blob and input_.blob not in kept_names
    ]


def sweep(blobs: Blobs, store: SpecReader, now: float) -> int:
    """Delete the files that no job names; returns how many.

    Files newer than ``SPARED_S`` stay: their jobs may be about to be submitted.
    """
    before = now - SPARED_S
    unnamed = set(blobs.kept(before=before))
    if not unnamed:
        return 0
    for text in store.specs_with('"blob":"'):
        unnamed.difference_update(_QUOTED.findall(text))
        if not unnamed:
            return 0
    blobs.discard(unnamed, before=before)  # one that was named meanwhile is new again
    return len(unnamed)


def _user(principal: Principal) -> SecretUser:
    return SecretUser(principal.name, principal.uid)
