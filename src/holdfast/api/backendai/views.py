"""Describes sessions, kernels and their history to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from holdfast.api.backendai.models.histories import KernelHistoryView, SessionHistoryView, SubStepView
from holdfast.api.backendai.models.parts import moment, moment_or_none
from holdfast.api.backendai.models.session_views import (
    Allocation,
    Environment,
    EnvironmentEntry,
    KernelCluster,
    KernelLifecycle,
    KernelNetwork,
    KernelResource,
    KernelSession,
    KernelUser,
    KernelView,
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
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.sessions.model import (
    RetryState,
    SessionResult,
    SessionStatus,
    host_name,
    kernel_id,
    named_id,
    session_id,
    step_id,
)
from holdfast.domain.sessions.policy import document
from holdfast.service.manifests.backendai import environ_of, slots_of
from holdfast.service.sessions.directory import IMAGE, PROJECT, USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from holdfast.domain.job import Resources
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.sessions.model import Kernel, Session
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.operations.sessions import KernelDetail, SessionDetail

_PLACED = {
    SessionStatus.SCHEDULED,
    SessionStatus.PREPARING,
    SessionStatus.PREPARED,
    SessionStatus.CREATING,
    SessionStatus.RUNNING,
    SessionStatus.TERMINATING,
}
"""Statuses in which a session has its resources."""


KERNEL_STATUSES: Mapping[str, str] = {
    RunStatus.PULLING.value: RunStatus.PREPARING.value,
    RunStatus.ERROR.value: RunStatus.TERMINATED.value,
}
"""What clients see instead of statuses that they do not know."""


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


def kernel_view(detail: KernelDetail) -> KernelView:
    """Describe a kernel."""
    kernel, session, spec = detail.kernel, detail.session, detail.spec
    request, id_ = _request_of(spec), UUID(kernel.id)
    return KernelView(
        id=id_,
        field_id=id_,
        image_id=named_uuid(IMAGE, session.image),
        startup_command=request.get("startup_command"),
        session_info=KernelSession(
            session_id=UUID(session.id),
            creation_id=session.creation_id,
            name=session.name,
            session_type=session.type.value,
        ),
        user_info=KernelUser(
            user_id=named_uuid(USER, session.user),
            access_key=session.access_key or None,
            domain_name=session.domain,
            group_id=named_uuid(PROJECT, session.project),
        ),
        network=KernelNetwork(preopen_ports=request.get("preopen_ports")),
        cluster=KernelCluster(
            cluster_role="sub" if kernel.rank else "main",
            cluster_idx=kernel.rank or 1,
            local_rank=kernel.rank,
            cluster_hostname=host_name(kernel.rank),
        ),
        resource=KernelResource(
            agent_id=kernel.node or None,
            resource_group_name=session.resource_group or None,
            allocation=_allocation(
                spec.resources,
                1,
                in_use=bool(kernel.node) and kernel.status not in RUN_TERMINAL,
                started=kernel.started_at is not None,
            ),
        ),
        lifecycle=KernelLifecycle(
            status=KERNEL_STATUSES.get(kernel.status, kernel.status.value),
            result=_result_of(kernel).value,
            created_at=moment(kernel.created_at),
            terminated_at=moment_or_none(kernel.terminated_at),
            starts_at=moment_or_none(session.starts_at),
            status_info=kernel.status_info or None,
            exit_code=kernel.exit_code,
        ),
    )


def _result_of(kernel: Kernel) -> SessionResult:
    if kernel.exit_code is None:
        return SessionResult.FAILURE if kernel.status is RunStatus.ERROR else SessionResult.UNDEFINED
    return SessionResult.FAILURE if kernel.exit_code else SessionResult.SUCCESS


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


def session_step_view(row: HistoryRow) -> SessionHistoryView:
    """Describe a step of a session."""
    started, ended = moment(row.created_at), moment(row.updated_at)
    return SessionHistoryView(
        **_step_fields(row),
        sub_steps=[
            SubStepView(
                step=part.name,
                result=part.outcome.value.upper(),
                error_code=part.error_code or None,
                message=part.message or None,
                started_at=started,
                ended_at=ended,
            )
            for part in row.steps
        ],
    )


def kernel_step_view(row: HistoryRow) -> KernelHistoryView:
    """Describe a step of a kernel."""
    fields = _step_fields(row)
    rank = int(row.id.rpartition("/")[2])
    return KernelHistoryView(**fields, kernel_id=UUID(kernel_id(str(fields["session_id"]), rank)))


def _step_fields(row: HistoryRow) -> dict[str, Any]:
    job_id, retry_count, *_ = row.id.split("/")
    id_ = UUID(step_id(row))
    return {
        "id": id_,
        "field_id": id_,
        "session_id": UUID(session_id(job_id, int(retry_count))),
        "phase": row.phase,
        "from_status": KERNEL_STATUSES.get(row.from_status, row.from_status),
        "to_status": KERNEL_STATUSES.get(row.to_status, row.to_status),
        "result": row.outcome.value,
        "error_code": row.error_code or None,
        "message": row.message or None,
        "attempts": row.attempts,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
    }
