"""The records of sessions and their kernels, and the ids that follow from a job.

A session is the stretch of a job that one retry count covers: a job that is preempted or drained goes on with the same
session, and a counted retry begins the next one. A kernel is one rank of a session; its runs come and go. All sessions
of a job are a chain (BEP "Native Session Retry", "Data model").
"""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from enum import StrEnum
from hashlib import sha1
from typing import TYPE_CHECKING, Any

from holdfast.domain.record import Struct, field
from holdfast.domain.sessions.policy import SessionRetryPolicy

if TYPE_CHECKING:
    from holdfast.domain.lifecycle.history import HistoryRow
    from holdfast.domain.lifecycle.statuses import RunStatus


class SessionType(StrEnum):
    """What a session is for."""

    BATCH = "batch"
    """Runs one program to its end; the only type that is retried."""
    INTERACTIVE = "interactive"
    """Holds its place until a user ends it."""
    INFERENCE = "inference"
    """Serves a model."""


class SessionStatus(StrEnum):
    """The status of a session as Backend.AI's clients see it."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    """Its program ran and has ended, in any way."""
    CANCELLED = "CANCELLED"
    """It never ran, or its place failed."""


SESSION_TERMINAL = frozenset({SessionStatus.TERMINATED, SessionStatus.CANCELLED})


class SessionResult(StrEnum):
    """How a session ended."""

    UNDEFINED = "undefined"
    """It has not."""
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    """A user ended it."""


class RetryState(StrEnum):
    """What becomes of a session's failure."""

    NONE = "none"
    """There is nothing to retry: it has not failed, or asks for no retries."""
    PENDING = "pending"
    """Its retry is due at a time in the future."""
    RETRIED = "retried"
    """Another session has followed it."""
    EXHAUSTED = "exhausted"
    """It was the last of all that its policy allows."""
    NOT_ELIGIBLE = "not_eligible"
    """Its policy does not retry that cause, or nothing may."""
    CANCELLED = "cancelled"
    """A user ended the chain before the retry was due."""
    DISABLED = "disabled"
    """The operator has turned retries off, or limits them."""


class SessionSpec(Struct, frozen=True):
    """What a session is, beside the job that runs it; frozen at creation and inherited by its retries."""

    type: SessionType = SessionType.BATCH
    policy: SessionRetryPolicy = SessionRetryPolicy()
    """The effective retry policy."""
    retries_enabled: bool = True
    """Whether the operator allowed retries of new chains when it was created."""
    domain: str = ""
    resource_group: str = ""
    access_key: str = ""
    """The keypair that its owner created it with."""
    image: str = ""
    """The image's name."""
    cluster_mode: str = "single-node"
    job_priority: int = 0
    is_preemptible: bool = True
    batch_timeout_s: int | None = None
    starts_at: float | None = None
    """It waits at least until then."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """The request as its client wrote it, without what is in ``Session``; equal requests are stored once."""


class Session(Struct, frozen=True):
    """One session of a chain."""

    id: str
    """A UUID."""
    job_id: str
    retry_count: int
    """From 0; identity is (job_id, retry_count), too."""
    creation_id: str
    name: str
    """Clients may change it; it is written once by the controller."""
    tag: str
    """As above."""
    type: SessionType
    user: str
    """Its owner's name."""
    access_key: str
    project: str
    """The queue of its job."""
    domain: str
    resource_group: str
    image: str
    cluster_mode: str
    cluster_size: int
    priority: int
    job_priority: int
    is_preemptible: bool
    batch_timeout_s: int | None
    starts_at: float | None
    policy: SessionRetryPolicy
    first_attempt: int
    """The number of the first of its job's attempts that is a part of it."""
    status: SessionStatus
    status_since: float
    status_info: str
    """Why it has that status, in words."""
    result: SessionResult
    retry_cause: str | None
    """The cause of its own failure, whether it was retried or not."""
    retry_state: RetryState
    retry_at: float | None
    """When its retry is due."""
    created_at: float
    started_at: float | None
    """When its programs had all started, the last time."""
    terminated_at: float | None

    @property
    def root_id(self) -> str:
        """The id of the first session of its chain."""
        return session_id(self.job_id, 0)

    @property
    def parent_id(self) -> str | None:
        """The id of the session that it retries."""
        return session_id(self.job_id, self.retry_count - 1) if self.retry_count else None

    @property
    def max_retries(self) -> int:
        """How many sessions may follow the first one of its chain."""
        return self.policy.max_retries

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.status in SESSION_TERMINAL


class Kernel(Struct, frozen=True):
    """One rank of a session."""

    id: str
    """A UUID."""
    session_id: str
    job_id: str
    retry_count: int
    """The one of its session."""
    rank: int
    """0 is the main kernel."""
    run: str
    """The uid of its current or last run; empty before the first."""
    status: RunStatus
    status_since: float
    status_info: str
    executor: str
    node: str
    exit_code: int | None
    created_at: float
    started_at: float | None
    terminated_at: float | None


_NAMESPACE = bytes.fromhex("7c0f5c0e6d0b4d6a9b1f3f1a5e2c8d47")
"""The namespace of all ids here: any UUID, which never changes."""


def named_id(kind: str, name: str) -> str:
    """Return the UUID of something that has only a name.

    Args:
        kind: ``session``, ``kernel``, ``project``, ``domain``, ``resource-group``, ``image``, ``user`` or ``keypair``.
        name: Unique among its kind.

    Returns:
        A UUID of version 5 (RFC 9562), the same in every process.
    """
    digest = bytearray(
        sha1(_NAMESPACE + f"{kind}:{name}".encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest[:16].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def session_id(job_id: str, retry_count: int) -> str:
    """Return the id of a session, which is known before there is one."""
    return named_id("session", f"{job_id}/{retry_count}")


def kernel_id(session: str, rank: int) -> str:
    """Return the id of a kernel of a session."""
    return named_id("kernel", f"{session}/{rank}")


def creation_id(job_id: str, retry_count: int) -> str:
    """Return the creation id of a session: ``<root>:retry:<n>``, and ``<root>`` for the first one.

    The root has 22 characters, as upstream's has, so that what follows it fits into any column there is.
    """
    root = session_id(job_id, 0).replace("-", "")[:22]
    return f"{root}:retry:{retry_count}" if retry_count else root


def history_id(job_id: str, retry_count: int, rank: int | None = None) -> str:
    """Return what the history calls a session, or one of its kernels."""
    return f"{job_id}/{retry_count}" if rank is None else f"{job_id}/{retry_count}/{rank}"


def kernel_variables(job_id: str, retry_count: int, rank: int, size: int) -> dict[str, str]:
    """Return the variables by which a program knows its kernel; those that never change are in its job's own.

    Args:
        job_id: The job.
        retry_count: The one of its session.
        rank: The kernel's rank.
        size: How many kernels the session has.
    """
    session = session_id(job_id, retry_count)
    hosts = [host_name(kernel) for kernel in range(size)]
    return {
        "BACKENDAI_SESSION_ID": session,
        "BACKENDAI_KERNEL_ID": kernel_id(session, rank),
        "BACKENDAI_CLUSTER_ROLE": "sub" if rank else "main",
        "BACKENDAI_CLUSTER_IDX": str(rank or 1),
        "BACKENDAI_CLUSTER_LOCAL_RANK": str(rank),
        "BACKENDAI_CLUSTER_HOST": hosts[rank],
        "BACKENDAI_CLUSTER_HOSTS": ",".join(hosts),
        "BACKENDAI_CLUSTER_REPLICAS": f"main:1,sub:{size - 1}" if size > 1 else "main:1",
        "BACKENDAI_CLUSTER_SIZE": str(size),
    }


def host_name(rank: int) -> str:
    """Return what a kernel is called among those of its session: ``main1``, then ``sub1`` and so on."""
    return f"sub{rank}" if rank else "main1"


_LAST_DIGITS = 8
"""How many hexadecimal digits of a step's id are its number."""


def step_id(row: HistoryRow) -> str:
    """Return the id of a row in the history of a session or kernel: a UUID that tells whose row it is."""
    job_id, retry_count, *rank = row.id.split("/")
    owner = session_id(job_id, int(retry_count))
    if rank:
        owner = kernel_id(owner, int(rank[0]))
    # Version 8 (RFC 9562) is for ids with a meaning of one's own.
    return f"{owner[:14]}8{owner[15:-_LAST_DIGITS]}{row.seq:0{_LAST_DIGITS}x}"


def step_of(key: str) -> tuple[str, int] | None:
    """Return how the id of the session or kernel begins that a row of the history belongs to, and the row's number.

    The beginning is long enough for one owner: with a million of them, the chance of two is one in a billion.

    Args:
        key: The row's id; ``None`` is returned for any other text.
    """
    if _STEP_ID.fullmatch(key) is None:
        return None
    return f"{key[:14]}5{key[15:-_LAST_DIGITS]}", int(key[-_LAST_DIGITS:], 16)


_STEP_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
