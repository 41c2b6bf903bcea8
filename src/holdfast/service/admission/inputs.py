"""Takes in what is sent along with jobs, says what of it is missing, and deletes what no job names any more."""

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
"""Bytes up to which something is stored with its job: a file for each would cost a job two waits for the disk."""
SPARED_S = 3600.0
"""How long something may wait for the job it was sent for."""
_QUOTED = re.compile(r'"blob":"([0-9a-f]{64})"')


def kept(data: bytes, blobs: Blobs | None, principal: Principal, *, field: str, archive: bool = False) -> str:
    """Keep something that somebody sent for jobs of theirs; returns its name.

    Raises:
        InvalidRequest: It is too large, or no archive that may be unpacked; with all problems.
        Refused: There is no room for it, or nowhere to keep it.
        Unavailable: It cannot be written.
    """
    if len(data) > LARGEST_BLOB:
        problem = Problem(field, f"has {len(data)} bytes; at most {LARGEST_BLOB} are allowed")
        raise InvalidRequest(problems=[problem])
    problems = archive_problems(data, field) if archive else []
    if problems:
        raise InvalidRequest(problems=problems)
    if blobs is None:
        msg = "this server keeps nothing that is sent along with jobs"
        hint = "its database is on a server, and others that use it may run its jobs: use a shared file system"
        raise Refused(msg, hint=hint)
    return blobs.keep(data, _user(principal))


def sent(data: bytes, path: str, blobs: Blobs | None, principal: Principal, *, field: str) -> Input:
    """Take in what somebody sent with a job that becomes a file of that name; see ``kept``."""
    if len(data) <= INLINE:
        return Input(path, data=base64.b64encode(data).decode())
    return Input(path, blob=kept(data, blobs, principal, field=field))


def absent(spec: JobSpec, secrets: Secrets | None, blobs: Blobs | None, caller: Caller | None) -> Sequence[Problem]:
    """Say of each secret that is not there, and of each input that its submitter does not have here, who names it."""
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
    """Delete what was sent along with jobs none of which is left, or which never came; returns how many.

    What is newer than ``SPARED_S`` stays: its jobs may be on their way.
    """
    before = now - SPARED_S
    unnamed = set(blobs.kept(before=before))
    if not unnamed:
        return 0
    for text in store.specs_with('"blob":"'):
        unnamed.difference_update(_QUOTED.findall(text))
        if not unnamed:
            return 0
    blobs.discard(unnamed, before=before)  # one that was named meanwhile is fresh again
    return len(unnamed)


def _user(principal: Principal) -> SecretUser:
    return SecretUser(principal.name, principal.uid)
