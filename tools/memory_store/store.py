"""The whole store in memory: one lock makes every method atomic."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.compiled.workloads import needs_of
from holdfast.domain.job import JobState
from holdfast.domain.placement.intake import Load
from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.dependencies import AwaitedState, standing_of
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Internal
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import Listed, News
from holdfast.storage.intake import incoming_of, not_made, require_room, submitter_of
from holdfast.storage.references import gone_policy, gone_queue
from holdfast.storage.rules import (
    audited_changes,
    audited_submission,
    ends_of,
    first_jobs,
    gone_awaited,
    gone_job,
    ids_of,
    kept_key,
    known_jobs,
    newer_job,
    overtaken,
    queues_of,
    refuse_unmet,
    request_of,
    require_free_lease,
    require_own_work,
    retried_already,
    reused_key,
    submission_events,
    taken_job,
    unknown_job,
    without,
)
from tools.memory_store.endpoints import MemoryEndpointStore
from tools.memory_store.figures import MemoryFigureStore
from tools.memory_store.jobs import JobTable, in_set
from tools.memory_store.names import MemoryNameStore
from tools.memory_store.notifications import MemoryNotificationStore
from tools.memory_store.overview import MemoryOverviewStore
from tools.memory_store.retention import MemoryRetentionStore
from tools.memory_store.workloads import MemoryWorkloadStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.access.grants import Seen
    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.ports.requests import Request
    from holdfast.ports.store import Changes, JobFilter, RunsAs, Snapshot, Submission


class MemoryStore(
    MemoryNotificationStore,
    MemoryWorkloadStore,
    MemoryRetentionStore,
    MemoryOverviewStore,
    MemoryFigureStore,
    MemoryNameStore,
    MemoryEndpointStore,
):
    """Every part of the ``Store`` port; safe to use from many threads."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = RLock()
        self._table = JobTable()
        MemoryNotificationStore.__init__(self, self._lock, self._table)
        MemoryWorkloadStore.__init__(self, self._lock, self._table)
        MemoryRetentionStore.__init__(self, self._lock, self._table)
        MemoryOverviewStore.__init__(self, self._lock, self._table)
        MemoryFigureStore.__init__(self, self._lock, self._table)
        MemoryNameStore.__init__(self, self._lock, self._table)
        MemoryEndpointStore.__init__(self, self._lock, self._table)
        self._requested = 0
        self._submitted = 0
        self._intake: list[tuple[str, str, float, int]] = []
        """Queue, user, time and count of what was submitted to queues that limit that."""
        self._epoch, self._leader, self._leads_until, self._as_submitters = 0, "", 0.0, False

    def load(self) -> Snapshot:
        """Read everything that is still going on."""
        with self._lock:
            return evolve(self._table.snapshot(), losses=self.recent_losses())

    def mark(self) -> object:
        """Return a mark that equals an earlier one only if no request was made and no catalogue changed since."""
        with self._lock:
            return self._version, self._requested

    def news(self) -> News:
        """Return whether anybody wants something."""
        with self._lock:
            return News(self._version, is_asked=bool(self._requests))

    def requests(self, *, limit: int) -> Sequence[Request]:
        """Return the oldest requests not handled yet, without removing them."""
        with self._lock:
            return list(self._requests.values())[:limit]

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        """Return those jobs, in order of submission; unknown ids are left out."""
        with self._lock:
            known = self._table.by_id
            return sorted((known[job_id] for job_id in {*job_ids} if job_id in known), key=attrgetter("seq"))

    def lead(
        self,
        owner: str,
        ttl_s: float,
        now: float,
        *,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> int:
        """Become, or stay, the one writer of lifecycle state until ``now + ttl_s``."""
        with self._lock:
            require_free_lease(owner, heir_of=heir_of, holder=self._leader, left_s=self._leads_until - now)
            if runs_as is not None and self._leader != owner:
                self._settle_accounts(runs_as.account)
            if place and self._leader != owner:
                self.come_to(place, now)
            self._epoch += self._leader != owner
            self._leader, self._leads_until = owner, now + ttl_s
            return self._epoch

    def _settle_accounts(self, account: Principal | None) -> None:
        if account is not None and self._as_submitters:
            submitters = {(job.submitted_by, job.submitter_uid) for job in self._table.by_id.values()}
            owners = [work for work in self._table.workloads.values() if isinstance(work, Owner)]
            submitters |= {(owner.submitted_by, owner.submitter_uid) for owner in owners}
            own = {(account.name, None), (account.name, account.uid)}
            require_own_work(account, {name for name, _ in submitters - own if name})
        self._as_submitters = account is None

    def commit(self, changes: Changes) -> None:
        """Make all changes durable in one step, or none."""
        with self._lock:
            if changes.epoch is not None and changes.epoch != self._epoch:
                raise overtaken(changes.epoch, newest=self._epoch)
            self._require_known_jobs(changes)
            self.require_known_workloads(changes)
            table = self._table
            self._append_jobs(changes.new_jobs.values())
            table.by_id.update(changes.jobs)
            table.attempts.update(changes.attempts)
            table.runs.update(changes.runs)
            table.history.update(changes.history)
            table.nodes.update(changes.nodes)
            table.quarantine(changes.quarantined)
            self.commit_workloads(changes)
            for number in changes.handled:
                self._requests.pop(number, None)
            self.append_notifications(changes.notifications)
            self.append_events(changes.events.values())

    def _require_known_jobs(self, changes: Changes) -> None:
        subjects = {*changes.jobs, *(job_id for job_id, _ in changes.attempts)}
        subjects |= {row.job_id for row in changes.history.values()}
        subjects |= {run.job_id for run in changes.runs.values()}
        if not self._table.by_id.keys() >= subjects:
            raise unknown_job()

    def submit(self, submission: Submission) -> tuple[str, ...]:
        """Append jobs and the request to take them in, in one step; ``seq`` is given here."""
        ids = ids_of(submission)
        if not ids and submission.owner is None:
            return ()
        with self._lock:
            known = self._known_answer(submission)
            if known is not None:
                return known
            claims = {job_id: kept_key(key, submission.by) for job_id, key in submission.claims.items()}
            claimed = {job_id: self._keys[key][1][0] for job_id, key in claims.items() if key in self._keys}
            claimed |= self.taken_names(submission.names)
            ids = tuple(claimed.get(each, each) for each in ids)
            submission = without(submission, claimed.keys())
            if not ids_of(submission) and submission.owner is None:
                return ids
            request = request_of(submission)
            self._require_named(submission)
            intake = self._take_in(submission, request.created_at)
            self.require_new_workload(submission.owner)
            for each in submission.also:
                self.require_new_workload(each)
            self._require_new(submission)
            self.claim_tasks(submission.rerun)
            if submission.owner is not None:
                self._table.workloads[submission.owner.id] = submission.owner
            self._table.workloads.update({each.id: each for each in submission.also})
            self._append_jobs(submission.jobs)
            self._table.labels.update(submission.labels)
            if submission.idempotency_key is not None:
                kept = kept_key(submission.idempotency_key, submission.by)
                self._keys[kept] = (submission.fingerprint, ids, request.created_at)
            for job_id, key in claims.items():
                self._keys.setdefault(key, ("", (job_id,), request.created_at))
            self.take_names(submission.names, request.created_at)
            self._intake += intake
            self._append(request)
            for end, by in ends_of(submission):
                self._append(end)
                self.append_audited(audited_changes(end, by, {}))
            self.append_events(submission_events(submission))
            self.append_audited(audited_submission(submission))
        return ids

    def _require_named(self, submission: Submission) -> None:
        for name in sorted(queues_of(submission) - self._queues.keys()):
            raise gone_queue(name)
        for name in sorted({*submission.policies} - self._policies.keys()):
            raise gone_policy(name)
        for key in sorted({*submission.awaited} - self._table.by_id.keys() - self._table.workloads.keys()):
            raise gone_awaited(key)

    def require_room(self, submission: Submission, now: float) -> None:
        """Make sure that queues would take something in, without noting that they did."""
        with self._lock:
            self._take_in(submission, now)

    def _take_in(self, submission: Submission, now: float) -> list[tuple[str, str, float, int]]:
        """Check that queues have room, and return what is to be noted of that."""
        incoming = incoming_of(submission)
        queues = [self._queues[name] for name in incoming.keys() & {*submission.limited}]
        if not queues:
            return []
        user = submitter_of(submission)
        loads = {(queue.name, whose): self._load(queue.name, whose) for queue in queues for whose in (None, user)}
        require_room(queues, loads, submission, now)
        return [(queue.name, user, now, incoming[queue.name].submissions) for queue in queues]

    def _load(self, queue: str, user: str | None) -> Load:
        jobs = (job for job in self._table.by_id.values() if job.queue == queue and user in {None, job.submitted_by})
        waiting = sum(not job.terminal and job.state is not JobState.RUNNING for job in jobs)
        for each in self._table.workloads.values():
            if needs_of(each).queue == queue and user in {None, each.submitted_by}:
                waiting += not_made(each)
        taken = [(at, count) for name, whose, at, count in self._intake if name == queue and user in {None, whose}]
        return Load(waiting, taken)

    def _append_jobs(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._submitted += 1
            self._table.by_id[job.id] = evolve(job, seq=self._submitted)

    def _known_answer(self, submission: Submission) -> tuple[str, ...] | None:
        key = submission.idempotency_key
        known = None if key is None else self._keys.get(kept_key(key, submission.by))
        if key is None or known is None:
            return None
        fingerprint, ids, _ = known
        if fingerprint != submission.fingerprint:
            raise reused_key(key)
        return ids

    def _require_new(self, submission: Submission) -> None:
        ids = [job.id for job in submission.jobs]
        twice = {job_id for job_id, times in Counter(ids).items() if times > 1} | self._table.by_id.keys() & {*ids}
        if twice:
            raise known_jobs(twice)
        if submission.newest is not None:
            name = submission.jobs[0].name
            of_name = [job.id for job in self._table.by_id.values() if job.name == name]
            if submission.newest != (of_name[-1] if of_name else ""):
                raise newer_job(name)
        self._require_own_jobs(submission)
        if not {*ids} >= submission.labels.keys():
            message = "labels are about a job that is not submitted with them"
            raise Internal(message)

    def _require_own_jobs(self, submission: Submission) -> None:
        names = {*first_jobs(submission)}
        for job in self._table.by_id.values() if names else ():
            there = None if job.child is None else self._table.workloads.get(job.child.set_id)
            if job.name in names and isinstance(there, JobSet) and submission.owner is not None:
                raise taken_job(job.name, submission.owner.name, there.name)

    def append(self, request: Request, *, by: Caller | None = None, version: int | None = None) -> None:
        """Append a request; with a caller, also to the audit log. The version of a named workload grows by one."""
        with self._lock:
            if request.kind is RequestKind.RETRY:
                self._require_retriable(request)
            named = self.move_versions(request, version)
            self.append_audited(audited_changes(request, by, named))
            self._append(request)

    def _require_retriable(self, request: Request) -> None:
        [key] = request.targets
        job = self._table.by_id.get(key)
        if job is None:
            raise gone_job(key)
        if self._is_about_to_be_retried(key):
            raise retried_already(key)
        if job.terminal and '"after"' in (spec := request.payload or job.spec):
            after = load_spec(spec).after
            refuse_unmet(job, after, [self._standing(one.id) for one in after])
        if job.queue not in self._queues:
            raise gone_queue(job.queue)

    def _is_about_to_be_retried(self, key: str) -> bool:
        asked = [one.kind for one in self._requests.values() if key in one.targets]
        return [kind for kind in asked if kind in {RequestKind.RETRY, RequestKind.CANCEL}][-1:] == [RequestKind.RETRY]

    def _standing(self, key: str) -> AwaitedState:
        if self._is_about_to_be_retried(key):
            return AwaitedState()
        workload = self._table.workloads.get(key)
        return standing_of(workload if isinstance(workload, Owner) else self._table.by_id.get(key))

    def _append(self, request: Request) -> None:
        self._requested += 1
        self._requests[self._requested] = evolve(request, id=self._requested)

    def job(self, reference: str, *, seen: Seen | None = None) -> Job:
        """Find a job by id, newest name, or unique id prefix, among those that somebody may know of."""
        with self._lock:
            return self._table.find(reference, seen)

    def jobs(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Sequence[Job]:
        """List jobs in order of submission, those with ``seq > after``."""
        with self._lock:
            return self._table.select(where, after=after, limit=limit)

    def listed(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Listed:
        """List jobs as ``jobs`` does, with what is quarantined of them."""
        with self._lock:
            return Listed(self._table.select(where, after=after, limit=limit), dict(self._table.quarantined))

    def job_states(self, job_ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of those jobs; unknown ids are left out."""
        with self._lock:
            known = self._table.by_id
            return {job_id: known[job_id].state for job_id in job_ids if job_id in known}

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state: all, or those of a workload that is made of jobs."""
        with self._lock:
            jobs = self._table.by_id.values()
            return dict(Counter(job.state.value for job in jobs if owner is None or in_set(job, owner)))

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""
        with self._lock:
            return sorted(
                (each for each in self._table.attempts.values() if each.job_id == job_id), key=attrgetter("number")
            )

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""
        with self._lock:
            return [run for run in self._table.sorted_runs() if run.job_id == job_id]

    def run(self, uid: str) -> Run | None:
        """Return a run, if there is one."""
        with self._lock:
            return self._table.runs.get(uid)

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through, in order."""
        with self._lock:
            rows = [row for row in self._table.history.values() if row.job_id == job_id]
            return sorted(rows, key=attrgetter("attempt", "seq"))

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return the workloads that are quarantined, by id."""
        with self._lock:
            return dict(self._table.quarantined)

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""
        with self._lock:
            return [node for _, node in sorted(self._table.nodes.items())]

    def running(self) -> Iterable[Run]:
        """List runs that are not terminal."""
        with self._lock:
            return self._table.active_runs()

    def close(self) -> None:
        """Do nothing: the data lives as long as this object."""
