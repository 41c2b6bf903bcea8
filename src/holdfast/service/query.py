"""Answers questions about jobs.

A job comes with its attempts, runs and explained decisions; lists come in pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.workloads.gang.reconcile import retried as retried_by_hand
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Internal, InvalidRequest, NotFound, Problem
from holdfast.ports.requests import RequestKind
from holdfast.service.quarantined import known_pods, kube_of, shown_jobs
from holdfast.service.summary import set_decisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.domain.workloads.jobset.state import SetDecision
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
    from holdfast.ports.store import JobFilter, Store
    from holdfast.service.explain import Explainer

MOST_STATES = 10_000
LARGEST_PAGE = 1000
_MOST_PENDING = 10_000


class JobDetail(Struct, frozen=True):
    """A job with everything known of it; the decisions say which rules were considered."""

    job: Job
    attempts: Sequence[Attempt]
    runs: Sequence[Run]
    pods: PodsOf | None = None
    """Of a job whose runs are pods."""
    set_decisions: Mapping[int, SetDecision] = field(default_factory=dict)
    """What its job set decided about its attempts, by their numbers; not in lists."""


class PodsOf(Struct, frozen=True):
    """What is known of a job's pods."""

    known: KubeJobRecord | None
    """``None`` before its first one."""
    asked: KubeJobSpec | None
    """What it asks for; ``None`` when that went with its job set."""


class Page(Struct, frozen=True):
    """A part of the list of jobs."""

    jobs: Sequence[Job]
    next_after: int | None
    """Where the list continues; ``None`` on the last page."""


class Queries(Struct, frozen=True):
    """Reads jobs and nodes."""

    store: Store
    explainer: Explainer

    def detail(self, reference: str) -> JobDetail:
        """Read a job with everything known of it.

        Raises:
            NotFound: There is no such job.
        """
        detail = self.detail_of(*self._shown([self.store.job(reference)], self.store.quarantined()))
        return evolve(detail, set_decisions=set_decisions(self.store, detail.job, detail.attempts))

    def detail_of(self, job: Job) -> JobDetail:
        """Read everything known of a job."""
        attempts = self.store.attempts(job.id)
        return JobDetail(job, self.explainer.explained(job, attempts), self.store.runs(job.id), self._pods_of(job))

    def _pods_of(self, job: Job) -> PodsOf | None:
        if job.of_set is None:
            kube = kube_of(job)
            return None if kube is None else PodsOf(known_pods(self.store, job), kube.spec)
        try:
            group = set_spec_of(self.store.workload(JobSet, job.of_set.set_id)).by_name.get(job.of_set.group)
        except (NotFound, Internal):
            group = None
        return PodsOf(known_pods(self.store, job), None if group is None else group.job)

    def page(self, where: JobFilter, *, after: int = 0, limit: int = LARGEST_PAGE) -> Page:
        """List jobs in order of submission; what is submitted meanwhile appears on later pages."""
        found = self.store.listed(where, after=after, limit=limit + 1)
        jobs, more = found.jobs, len(found.jobs) > limit
        return Page(self._shown(jobs[:limit], found.quarantined), jobs[limit - 1].seq if more else None)

    def history(self, reference: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through.

        Raises:
            NotFound: There is no such job.
        """
        return self.store.history(self.store.job(reference).id)

    def states(self, job_ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of jobs; unknown ids are left out."""
        if len(job_ids) > MOST_STATES:
            msg = "too many ids"
            raise InvalidRequest(msg, problems=[Problem("ids", f"has {len(job_ids)}; at most {MOST_STATES}")])
        states = self.store.job_states(job_ids)
        retried = self._retried() if JOB_TERMINAL.intersection(states.values()) else frozenset()
        return {key: JobState.QUEUED if key in retried else state for key, state in states.items()}

    def _shown(self, jobs: Sequence[Job], quarantined: Mapping[str, Quarantined]) -> Sequence[Job]:
        """Show jobs as they are: one that a user has just retried has not ended, though nobody has acted on it yet."""
        retried = self._retried() if any(job.terminal for job in jobs) else frozenset()
        found = [
            retried_by_hand(job, "", job.updated_at) if job.terminal and job.id in retried else job for job in jobs
        ]
        return shown_jobs(found, quarantined)

    def _retried(self) -> frozenset[str]:
        asked = self.store.requests(limit=_MOST_PENDING)
        return frozenset(key for one in asked if one.kind is RequestKind.RETRY for key in one.targets)
