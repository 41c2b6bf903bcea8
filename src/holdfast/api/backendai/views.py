"""Describes sessions, kernels and their history to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from holdfast.api.backendai.models.parts import moment, moment_or_none
from holdfast.api.backendai.models.session_views import (
    Allocation,
    Environment,
    EnvironmentEntry,
    RetryStateView,
    SessionAttempt,
    SessionLifecycle,
    SessionMetadata,
    SessionResource,
    SessionRuntime,
    SessionView,
    SlotEntry,
    Slots,
)
from holdfast.domain.sessions.model import (
    RetryState,
    SessionStatus,
    named_id,
    session_id,
)
from holdfast.domain.sessions.policy import document
from holdfast.service.manifests.backendai import environ_of, slots_of
from holdfast.service.sessions.directory import IMAGE, PROJECT, USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from holdfast.domain.job import Resources
    from holdfast.domain.sessions.model import Kernel, Session
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.operations.sessions import SessionDetail

_PLACED = {
    SessionStatus.SCHEDULED,
    SessionStatus.PREPARING,
    SessionStatus.PREPARED,
    SessionStatus.CREATING,
    SessionStatus.RUNNING,
    SessionStatus.TERMINATING,
}
"""Statuses in which a session has its resources."""


def named_uuid(kind: str, name: str) -> UUID:
    """Return the id of something that has only a name; see ``named_id``."""
    return UUID(named_id(kind, name))


def session_view(detail: SessionDetail) -> SessionView:
    """Describe a session."""
    session, spec = detail.session, detail.spec
    request = _request_of(spec)
    id_ = UUID(session.id)
    environ = environ_of(spec)
    return SessionView(
        id=id_,
        entity_id=id_,
        image_ids=[named_uuid(IMAGE, session.image)],
        domain_name=session.domain,
        user_id=named_uuid(USER, session.user),
        project_id=named_uuid(PROJECT, session.project),
        metadata=SessionMetadata(
            creation_id=session.creation_id,
            name=session.name,
            session_type=session.type.value,
            access_key=session.access_key or None,
            cluster_mode=session.cluster_mode,
            cluster_size=session.cluster_size,
            tier=session.priority,
            priority=session.priority,
            job_priority=session.job_priority,
            is_preemptible=session.is_preemptible,
            tag=session.tag or None,
        ),
        resource=SessionResource(
            allocation=_allocation(
                spec.resources,
                session.cluster_size,
                in_use=session.status in _PLACED,
                started=session.started_at is not None,
            ),
            resource_group_name=session.resource_group or None,
        ),
        lifecycle=SessionLifecycle(
            status=session.status.value,
            result=session.result.value,
            created_at=moment(session.created_at),
            terminated_at=moment_or_none(session.terminated_at),
            starts_at=moment_or_none(session.starts_at),
            batch_timeout=session.batch_timeout_s,
            status_info=session.status_info or None,
        ),
        runtime=SessionRuntime(
            environ=Environment(entries=[EnvironmentEntry(key=key, value=value) for key, value in environ.items()]),
            bootstrap_script=request.get("bootstrap_script"),
            startup_command=request.get("startup_command"),
        ),
        retry_policy=document(session.policy),
        parent_session_id=None if session.parent_id is None else UUID(session.parent_id),
        retry_count=session.retry_count,
        max_retries=session.max_retries,
        retry_cause=session.retry_cause,
        retry_chain=[UUID(member.id) for member in detail.chain],
        retry_state=retry_state_view(session),
    )


def retry_state_view(session: Session) -> RetryStateView:
    """Describe what becomes of the failure of a session."""
    following = None
    if session.retry_state in {RetryState.PENDING, RetryState.RETRIED}:
        following = UUID(session_id(session.job_id, session.retry_count + 1))
    return RetryStateView(
        state=session.retry_state.value,
        attempt=session.retry_count + 1,
        of=session.max_retries + 1,
        next_attempt_at=moment_or_none(session.retry_at),
        next_session_id=following,
    )


def attempt_view(session: Session, kernels: Sequence[Kernel]) -> SessionAttempt:
    """Describe a session as one of a chain."""
    return SessionAttempt(
        id=UUID(session.id),
        attempt=session.retry_count + 1,
        retry_count=session.retry_count,
        status=session.status.value,
        result=session.result.value,
        retry_cause=session.retry_cause,
        created_at=moment(session.created_at),
        terminated_at=moment_or_none(session.terminated_at),
        exit_code=next((kernel.exit_code for kernel in kernels if kernel.rank == 0), None),
    )


def _allocation(resources: Resources, kernels: int, *, in_use: bool, started: bool) -> Allocation:
    requested = Slots(
        entries=[
            SlotEntry(resource_type=name, quantity=amount) for name, amount in slots_of(resources, kernels).items()
        ]
    )
    return Allocation(
        requested=requested, used=requested if in_use else None, allocated=requested if in_use or started else None
    )


def _request_of(spec: JobSpec) -> Mapping[str, Any]:
    return {} if spec.session is None else spec.session.request
