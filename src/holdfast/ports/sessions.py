"""The part of the storage port about sessions, their kernels and the history of both: for readers and for renaming."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.lifecycle import EntityKind, HistoryRow
    from holdfast.domain.sessions.model import Kernel, Session

T = TypeVar("T")


class SessionField(StrEnum):
    """What sessions can be found and ordered by; the names of columns."""

    ID = "id"
    ROOT_ID = "root_id"
    PARENT_ID = "parent_session_id"
    CREATION_ID = "creation_id"
    NAME = "name"
    TAG = "tag"
    TYPE = "type"
    USER = "user_name"
    ACCESS_KEY = "access_key"
    PROJECT = "project"
    DOMAIN = "domain"
    RESOURCE_GROUP = "resource_group"
    IMAGE = "image"
    CLUSTER_MODE = "cluster_mode"
    CLUSTER_SIZE = "cluster_size"
    PRIORITY = "priority"
    JOB_PRIORITY = "job_priority"
    IS_PREEMPTIBLE = "is_preemptible"
    NODE = "node"
    """Any node that one of its kernels has; sessions are not ordered by it."""
    BATCH_TIMEOUT = "batch_timeout"
    STARTS_AT = "starts_at"
    RETRY_COUNT = "retry_count"
    MAX_RETRIES = "max_retries"
    RETRY_CAUSE = "retry_cause"
    RETRY_STATE = "retry_state"
    STATUS = "status"
    RESULT = "result"
    CREATED_AT = "created_at"
    TERMINATED_AT = "terminated_at"


class KernelField(StrEnum):
    """What kernels can be found and ordered by."""

    ID = "id"
    SESSION_ID = "session_id"
    STATUS = "status"
    RANK = "rank"
    NODE = "node"
    CREATED_AT = "created_at"
    TERMINATED_AT = "terminated_at"


class StepField(StrEnum):
    """What the history of sessions and kernels can be found and ordered by."""

    ID = "id"
    """The row's own id, ``step_id``; it only equals or is in."""
    SESSION_ID = "session_id"
    KERNEL_ID = "kernel_id"
    PHASE = "phase"
    FROM_STATUS = "from_status"
    TO_STATUS = "to_status"
    RESULT = "outcome"
    ERROR_CODE = "error_code"
    MESSAGE = "message"
    ATTEMPTS = "attempts"
    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"


class Comparison(StrEnum):
    """How a field is compared with a value."""

    EQUALS = "="
    IN = "in"
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


Value: TypeAlias = "str | int | float | bool | tuple[str | int, ...] | None"


class Compare(Struct, frozen=True):
    """A condition on one field; a field without a value equals only ``None``."""

    field: SessionField | KernelField | StepField
    comparison: Comparison
    value: Value
    """A tuple for ``IN``."""
    ignores_case: bool = False
    """Whether a text's ASCII letters match in either case; both databases agree on no others."""


class AllOf(Struct, frozen=True):
    """Every part holds; without parts, always."""

    parts: tuple[Condition, ...] = ()


class AnyOf(Struct, frozen=True):
    """At least one part holds; without parts, never."""

    parts: tuple[Condition, ...] = ()


class NoneOf(Struct, frozen=True):
    """No part holds."""

    parts: tuple[Condition, ...] = ()


Condition: TypeAlias = "Compare | AllOf | AnyOf | NoneOf"
EVERYTHING = AllOf()


class Order(Struct, frozen=True):
    """What a list is ordered by, before its id; what has no value comes last, or first if descending."""

    field: SessionField | KernelField | StepField
    descending: bool = False


class PageRequest(Struct, frozen=True):
    """Which part of a list is wanted: by offset, or after or before an item of it."""

    limit: int = 10
    offset: int = 0
    after: str | None = None
    """The id of an item, which need not match; the list begins after it."""
    before: str | None = None
    """The id of an item, which need not match; the list ends before it."""
    from_end: bool = False
    """Whether the page is the list's last part instead of its first; its items are in order all the same."""
    order: tuple[Order, ...] = ()


class ListPage(Struct, Generic[T], frozen=True):
    """A part of a list."""

    items: Sequence[T]
    total: int
    """How many items match, on all pages."""
    has_next: bool
    has_previous: bool


class SessionRename(Struct, frozen=True):
    """A change of a session's name or tag; ``None`` leaves it."""

    name: str | None = None
    tag: str | None = None
    external_name: str = ""
    """The name that its chain has among jobs, if its name changes and it has not ended."""


class SessionStore(Protocol):
    """Sessions, kernels and their history; every answer is a consistent snapshot."""

    def session(self, key: str, *, seen: Seen | None = None) -> Session:
        """Find a session by its id.

        Args:
            key: The id.
            seen: Only sessions of jobs that the caller may know of; ``None``: all.

        Raises:
            NotFound: There is none.
        """

    def chains(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Session]]:
        """Return the sessions of jobs, by the job's id, each chain from its first session on."""

    def kernels_of(self, session_ids: Sequence[str]) -> Mapping[str, Sequence[Kernel]]:
        """Return the kernels of sessions, by the session's id, in order of rank."""

    def search_sessions(self, where: Condition, page: PageRequest, *, seen: Seen | None = None) -> ListPage[Session]:
        """List sessions, by default the newest first.

        Raises:
            InvalidRequest: The item that the page begins or ends at does not exist.
        """

    def search_kernels(self, where: Condition, page: PageRequest, *, seen: Seen | None = None) -> ListPage[Kernel]:
        """List kernels, as ``search_sessions`` lists sessions."""

    def search_steps(
        self, kind: EntityKind, where: Condition, page: PageRequest, *, seen: Seen | None = None
    ) -> ListPage[HistoryRow]:
        """List the history of all sessions or all kernels, as ``search_sessions`` lists sessions."""

    def rename_session(self, key: str, rename: SessionRename, now: float) -> Session:
        """Change the name or the tag of a session.

        Raises:
            NotFound: There is no such session.
            AlreadyExists: Another live session of its user has the name.
        """
