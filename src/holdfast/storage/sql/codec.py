"""Converts records to rows and back.

Tuples follow the tables' column order, which ``batch`` checks when a statement is built. ``_value_`` of an enumeration
member is a plain attribute, at a third of the cost of ``value``.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from holdfast.compiled.records import dump_json, dump_record, load_json, load_record, record_of, storable
from holdfast.compiled.workloads import COMMON, dump_state, load_workload
from holdfast.domain.containers import Capability, EngineInfo
from holdfast.domain.devices import Device
from holdfast.domain.failure import Failure, RunOutcome
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, EntityKind, HistoryRow, Outcome, RunStatus, SubStep
from holdfast.domain.lifecycle.statuses import Interruption
from holdfast.domain.policy.model import Decision
from holdfast.domain.sessions.model import Kernel, RetryState, Session, SessionResult, SessionStatus, SessionType
from holdfast.domain.sessions.policy import SessionRetryPolicy
from holdfast.domain.shortage import Short
from holdfast.domain.terms.workload_kinds import JOB_KINDS
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.workloads.base import Workload

    Row = Sequence[Any]

_Word = TypeVar("_Word", bound=StrEnum)


class Vocabulary(dict[str, _Word]):
    """The values of an enumerated column by their text; a lookup here is faster than asking the enumeration."""

    def __init__(self, words: type[_Word]) -> None:
        super().__init__((word.value, word) for word in words)

    def __missing__(self, word: str) -> NoReturn:
        """Refuse a value that this version does not know."""
        message = f"the database holds {word!r}, which this version of Holdfast does not know"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")


_STATES = Vocabulary(JobState)
_ATTEMPT_STATUSES = Vocabulary(AttemptStatus)
_RUN_STATUSES = Vocabulary(RunStatus)
_SESSION_STATUSES = Vocabulary(SessionStatus)
_SESSION_TYPES = Vocabulary(SessionType)
_RESULTS = Vocabulary(SessionResult)
_RETRY_STATES = Vocabulary(RetryState)
_OUTCOMES = Vocabulary(Outcome)
_KINDS = Vocabulary(EntityKind)
_STATUSES: Mapping[EntityKind, Mapping[str, str]] = {
    EntityKind.ATTEMPT: _ATTEMPT_STATUSES,
    EntityKind.SESSION: _SESSION_STATUSES,
    EntityKind.KERNEL: _RUN_STATUSES,
}
_ENDINGS = Vocabulary(Ending)
_NONE_COUNTED: Mapping[str, int] = {}
"""Shared by all jobs without a retry: a million empty dicts take 64 MB."""
_GPU = "gpu"
"""The key of a GPU share among the named amounts."""


@lru_cache(maxsize=4096)
def read_amount(cpu_m: int, memory: int, gpu: int, named: str | None) -> Resources:
    """Build an amount from its columns; equal amounts share one object."""
    amounts = {} if named is None else load_json(named)
    return Resources(cpu_m, memory, gpu, amounts.pop(_GPU, 0), tuple(sorted(amounts.items())))


def named_amounts(request: Resources) -> str | None:
    """Return the amounts beside whole GPUs, memory and CPUs as stored; ``None`` for none."""
    if not request.named and not request.share_m:
        return None
    share = {_GPU: request.share_m} if request.share_m else {}
    return dump_json({**share, **dict(request.named)})


def changed_job_row(job: Job) -> tuple[Any, ...]:
    """Return a job's mutable columns in table order, then its id."""
    request = job.request
    return (
        request.cpu_m,
        request.memory,
        request.gpu,
        job.state._value_,
        job.reason and storable(job.reason),
        job.attempt,
        job.queued_at,
        job.retry_at,
        job.updated_at,
        job.started_at,
        job.ended_at,
        dump_json(dict(job.counters)) if job.counters else "{}",
        job.retries,
        job.avoid_node,
        job.cancel_requested,
        job.ready_at,
        None if not job.met else dump_json(job.met),
        None if not job.avoid_devices else dump_json(job.avoid_devices),
        None if not job.avoid_nodes else dump_json(job.avoid_nodes),
        None if not job.tried else dump_json(job.tried),
        job.id,
    )


def new_job_row(job: Job, spec: bytes) -> tuple[Any, ...]:
    """Return a new job's row without ``seq``."""
    child = job.child
    place = (None, None, None) if child is None else (child.set_id, child.group, child.index)
    cpu_m, memory, gpu, *changing, ready_at, met, avoided, kept_off, tried, key = changed_job_row(job)
    named = named_amounts(job.request)
    fixed = (key, job.name, job.queue, job.priority, job.submitted_at, spec, job.gang)
    submitter = (job.submitted_by, job.submitter_uid)
    last = (ready_at, met, avoided, kept_off, tried, *submitter, job.group or None, job.kind, job.parent or None)
    return (*fixed, cpu_m, memory, gpu, named, *changing, *place, *last)


def attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    """Return an attempt's row."""
    request = attempt.request
    return (
        attempt.job_id,
        attempt.number,
        attempt.status._value_,
        attempt.status_since,
        attempt.tries,
        attempt.dispatch,
        attempt.created_at,
        attempt.started_at,
        attempt.ended_at,
        request.cpu_m,
        request.memory,
        request.gpu,
        named_amounts(request),
        None if attempt.ending is None else attempt.ending._value_,
        attempt.failure and dump_record(attempt.failure),
        attempt.decision and dump_record(attempt.decision),
        attempt.retry_at,
        attempt.message and storable(attempt.message),
    )


def run_row(run: Run) -> tuple[Any, ...]:
    """Return a run's row."""
    request = run.request
    return (
        run.uid,
        run.job_id,
        run.attempt,
        run.dispatch,
        run.rank,
        run.status._value_,
        run.status_since,
        run.executor,
        run.node,
        request.cpu_m,
        request.memory,
        request.gpu,
        named_amounts(request),
        run.started_at,
        run.ended_at,
        run.outcome and dump_record(run.outcome),
        run.progress and storable(run.progress),
        run.failure and dump_record(run.failure),
        run.decision and dump_record(run.decision),
        run.generation,
        dump_json(run.devices) if run.devices else None,
        None if run.interrupted is None else run.interrupted._value_,
        run.token_digest or None,
        dump_json(run.ports) if run.ports else None,
    )


def history_row(row: HistoryRow) -> tuple[Any, ...]:
    """Return a history row's row."""
    return (
        row.kind._value_,
        row.id,
        row.seq,
        row.phase,
        str(row.from_status),
        str(row.to_status),
        row.outcome._value_,
        row.created_at,
        row.updated_at,
        row.error_code,
        row.message and storable(row.message),
        row.attempts,
        dump_json([[step.name, step.outcome.value, step.error_code, step.message] for step in row.steps])
        if row.steps
        else "",
    )


def session_row(session: Session) -> tuple[Any, ...]:
    """Return a session's row."""
    return (
        session.id,
        session.job_id,
        session.root_id,
        session.retry_count,
        session.parent_id,
        session.creation_id,
        storable(session.name),
        storable(session.tag),
        session.type._value_,
        session.user,
        session.access_key,
        session.project,
        session.domain,
        session.resource_group,
        session.image,
        session.cluster_mode,
        session.cluster_size,
        session.priority,
        session.job_priority,
        session.is_preemptible,
        session.batch_timeout_s,
        session.starts_at,
        session.max_retries,
        dump_record(session.policy),
        session.first_attempt,
        session.status._value_,
        session.status_since,
        session.status_info and storable(session.status_info),
        session.result._value_,
        session.retry_cause,
        session.retry_state._value_,
        session.retry_at,
        session.created_at,
        session.started_at,
        session.terminated_at,
    )


def kernel_row(kernel: Kernel) -> tuple[Any, ...]:
    """Return a kernel's row."""
    return (
        kernel.id,
        kernel.session_id,
        kernel.job_id,
        kernel.retry_count,
        kernel.rank,
        kernel.run,
        kernel.status._value_,
        kernel.status_since,
        kernel.status_info and storable(kernel.status_info),
        kernel.executor,
        kernel.node,
        kernel.exit_code,
        kernel.created_at,
        kernel.started_at,
        kernel.terminated_at,
    )


def node_row(node: Node) -> tuple[Any, ...]:
    """Return a node's row."""
    capacity = node.capacity
    return (
        node.executor,
        node.name,
        capacity.cpu_m,
        capacity.memory,
        capacity.gpu,
        named_amounts(capacity),
        dump_json(dict(node.labels)),
        node.seen_at,
        node.engine.name,
        " ".join(sorted(node.engine.capabilities)),
        dump_json(node.devices),
        node.short and dump_record(node.short),
    )


def workload_row(workload: Workload) -> tuple[Any, ...]:
    """Return a workload's row."""
    return (
        workload.id,
        workload.kind,
        workload.owner or None,
        workload.name or None,
        workload.generation,
        workload.spec,
        workload.manifest,
        workload.deleting,
        workload.expires_at,
        workload.version,
        workload.created_at,
        workload.updated_at,
        workload.submitted_by,
        workload.submitter_uid,
        workload.group or None,
        workload.queue,
        dump_state(workload),
    )


def read_workload(row: Sequence[Any]) -> Workload:
    """Build a workload from its row.

    Raises:
        Internal: It is damaged, or of a kind or version that this version does not know.
    """
    _, kind, *_, state = row
    return load_workload(kind, common_of(row), state)


def common_of(row: Sequence[Any]) -> Mapping[str, Any]:
    """Return the fields that all kinds of workloads share."""
    key, _, owner, name, *rest, group, queue, _ = row
    return dict(zip(COMMON, (key, owner or "", name or "", *rest, group or "", queue), strict=True))


class Reader:
    """Builds the records of one query; equal specifications, amounts and values share one object."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._policies: dict[str, SessionRetryPolicy] = {}

    def job(self, row: Row) -> Job:
        """Build a job from its columns and its specification's text; further columns are ignored."""
        (
            seq, job_id, name, queue, priority, submitted_at, _, gang, cpu_m, memory, gpu, named, state, reason,
            attempt, queued_at, retry_at, updated_at, started_at, ended_at, counters, retries, avoid_node,
            cancel_requested, set_id, group, index, ready_at, met, avoided, kept_off, tried, submitter, uid, grouped,
            kind, parent, spec, *_,
        ) = row  # fmt: skip
        share = self._words.setdefault
        return Job(
            id=job_id,
            name=share(name, name),
            queue=share(queue, queue),
            priority=priority,
            submitted_at=submitted_at,
            spec=share(spec, spec),
            request=read_amount(cpu_m, memory, gpu, named),
            gang=gang,
            seq=seq,
            state=_STATES[state],
            reason=share(reason, reason),
            attempt=attempt,
            queued_at=submitted_at if queued_at == submitted_at else queued_at,
            retry_at=retry_at,
            updated_at=submitted_at if updated_at == submitted_at else updated_at,
            started_at=started_at,
            ended_at=ended_at,
            counters=_NONE_COUNTED if counters == "{}" else load_json(counters),
            retries=retries,
            avoid_node=avoid_node,
            cancel_requested=cancel_requested,
            child=None if set_id is None else ChildOf(share(set_id, set_id), share(group, group), index),
            ready_at=ready_at,
            met=() if met is None else tuple(load_json(met)),
            avoid_devices=() if avoided is None else tuple(load_json(avoided)),
            avoid_nodes=() if kept_off is None else tuple(load_json(kept_off)),
            tried=() if tried is None else tuple(load_json(tried)),
            submitted_by=share(submitter, submitter),
            submitter_uid=uid,
            group="" if grouped is None else share(grouped, grouped),
            kind=JOB_KINDS[kind],
            parent="" if parent is None else share(parent, parent),
        )

    def attempt(self, row: Row) -> Attempt:
        """Build an attempt from its row."""
        job_id, number, status, since, tries, dispatch, created, started, ended, *amounts, ending = row[:14]
        failure, decision, retry_at, message = row[14:]
        return Attempt(
            job_id=job_id,
            number=number,
            status=_ATTEMPT_STATUSES[status],
            status_since=since,
            tries=tries,
            dispatch=dispatch,
            created_at=created,
            started_at=started,
            ended_at=ended,
            request=read_amount(*amounts),
            ending=None if ending is None else _ENDINGS[ending],
            failure=load_record(Failure, failure),
            decision=load_record(Decision, decision),
            retry_at=retry_at,
            message=message,
        )

    def run(self, row: Row) -> Run:
        """Build a run from its row."""
        uid, job_id, attempt, _, rank, status, since, executor, node, *amounts, started, ended = row[:15]
        outcome, progress, failure, decision, generation, devices, interrupted, digest, ports = row[15:]
        share = self._words.setdefault
        return Run(
            uid=uid,
            job_id=job_id,
            attempt=attempt,
            rank=rank,
            status=_RUN_STATUSES[status],
            status_since=since,
            executor=share(executor, executor),
            node=share(node, node),
            request=read_amount(*amounts),
            started_at=started,
            ended_at=ended,
            outcome=load_record(RunOutcome, outcome),
            progress=progress,
            failure=load_record(Failure, failure),
            decision=load_record(Decision, decision),
            generation=generation,
            devices=() if devices is None else tuple(load_json(devices)),
            interrupted=None if interrupted is None else Interruption(interrupted),
            token_digest=digest or "",
            ports={} if ports is None else load_json(ports),
        )

    def history(self, row: Row) -> HistoryRow:
        """Build a history row from its row."""
        word, name, seq, phase, before, after, outcome, created, updated, error_code, message, attempts, steps = row
        kind = _KINDS[word]
        return HistoryRow(
            kind=kind,
            id=name,
            seq=seq,
            phase=phase,
            from_status=_STATUSES[kind][before],
            to_status=_STATUSES[kind][after],
            outcome=_OUTCOMES[outcome],
            created_at=created,
            updated_at=updated,
            error_code=error_code,
            message=message,
            attempts=attempts,
            steps=tuple(SubStep(step, _OUTCOMES[word], *texts) for step, word, *texts in load_json(steps or "[]")),
        )

    def session(self, row: Row) -> Session:
        """Build a session from its row."""
        (
            key, job_id, _, retry_count, _, created_as, name, tag, kind, user, access_key, project, domain, group,
            image, mode, size, priority, job_priority, preemptible, timeout_s, starts_at, _, policy, first, status,
            since, info, result, cause, retry_state, retry_at, created, started, terminated,
        ) = row  # fmt: skip
        share = self._words.setdefault
        return Session(
            id=key,
            job_id=job_id,
            retry_count=retry_count,
            creation_id=created_as,
            name=name,
            tag=share(tag, tag),
            type=_SESSION_TYPES[kind],
            user=share(user, user),
            access_key=share(access_key, access_key),
            project=share(project, project),
            domain=share(domain, domain),
            resource_group=share(group, group),
            image=share(image, image),
            cluster_mode=share(mode, mode),
            cluster_size=size,
            priority=priority,
            job_priority=job_priority,
            is_preemptible=preemptible,
            batch_timeout_s=timeout_s,
            starts_at=starts_at,
            policy=self._policy(policy),
            first_attempt=first,
            status=_SESSION_STATUSES[status],
            status_since=since,
            status_info=share(info, info),
            result=_RESULTS[result],
            retry_cause=cause,
            retry_state=_RETRY_STATES[retry_state],
            retry_at=retry_at,
            created_at=created,
            started_at=started,
            terminated_at=terminated,
        )

    def _policy(self, text: str) -> SessionRetryPolicy:
        """Build a session's policy; equal ones share one object."""
        policy = self._policies.get(text)
        if policy is None:
            policy = self._policies[text] = load_record(SessionRetryPolicy, text) or SessionRetryPolicy()
        return policy

    def kernel(self, row: Row) -> Kernel:
        """Build a kernel from its row."""
        key, session, job_id, retry_count, rank, run, status, since, info, executor, node, code, *times = row
        share = self._words.setdefault
        created, started, terminated = times
        return Kernel(
            id=key,
            session_id=session,
            job_id=job_id,
            retry_count=retry_count,
            rank=rank,
            run=run,
            status=_RUN_STATUSES[status],
            status_since=since,
            status_info=share(info, info),
            executor=share(executor, executor),
            node=share(node, node),
            exit_code=code,
            created_at=created,
            started_at=started,
            terminated_at=terminated,
        )

    def node(self, row: Row) -> Node:
        """Build a node from its row."""
        executor, name, cpu_m, memory, gpu, named, labels, seen_at, engine, capabilities, devices, short = row
        return Node(
            name=name,
            executor=executor,
            capacity=read_amount(cpu_m, memory, gpu, named),
            labels=load_json(labels),
            seen_at=seen_at,
            engine=EngineInfo(engine, frozenset(map(Capability, capabilities.split()))),
            devices=record_of(tuple[Device, ...], load_json(devices)),
            short=load_record(Short, short),
        )
