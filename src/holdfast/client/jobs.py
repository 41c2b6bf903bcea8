"""Calls about jobs: submit, read, follow, control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

from holdfast.client.connection import new_key
from holdfast.client.workloads import REPEATABLE, label_params
from holdfast.wire.base import API
from holdfast.wire.decisions import DecisionEntry, DecisionPage, Why
from holdfast.wire.jobs import (
    AskedJobs,
    AttemptPage,
    AttemptView,
    BulkResult,
    HistoryEntry,
    HistoryPage,
    JobAccepted,
    JobApplied,
    JobOutcome,
    JobPage,
    JobStates,
    JobSummary,
    JobView,
    LogChunk,
    Reprioritized,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from holdfast.client.connection import Connection

MOST_STATES = 10_000


def _job_path(reference: str, rest: str = "") -> str:
    return f"{API}/jobs/{quote(reference, safe='')}{rest}"


class JobsWanted(TypedDict, total=False):
    """A selection of jobs; every field that is set must hold."""

    states: Iterable[str]
    """Any of these states."""
    queue: str | None
    name: str | None
    labels: Mapping[str, str] | None
    job_set: str | None
    """The name or id of their job set."""
    quarantined: bool
    """Only quarantined jobs, which Holdfast itself failed to handle."""
    array: str | None
    """The name or id of their array."""
    tasks: bool
    """Whether to include tasks of arrays; the default."""
    ids: Sequence[str] | None
    """Only these ids, at most 200."""
    user: str | None
    """The name of their submitter."""
    group: str | None
    """Their group; a slash at its end includes the groups below it."""


class JobCalls:
    """Calls about jobs, each referred to by its id, its name or a unique prefix of its id."""

    _connection: Connection

    def submit(self, manifest: Mapping[str, Any], *, key: str | None = None, lenient: bool = False) -> JobAccepted:
        """Submit one job; safe to repeat with the same idempotency key (by default a new one).

        ``lenient`` accepts what Kubernetes accepts in its Jobs, with a warning for each.
        """
        return self._connection.call(
            JobAccepted,
            "POST",
            f"{API}/jobs",
            repeatable=True,
            params=_lenient(lenient=lenient),
            json=manifest,
            headers={"Idempotency-Key": key or new_key()},
        )

    def put_job(self, name: str, manifest: Mapping[str, Any], *, lenient: bool = False) -> JobApplied:
        """Submit a Kubernetes Job unless the newest of its name is the same; suspend or resume that if it says so."""
        return self._connection.call(
            JobApplied, "PUT", _job_path(name), repeatable=True, params=_lenient(lenient=lenient), json=manifest
        )

    def submit_bulk(
        self,
        manifests: Sequence[Mapping[str, Any]],
        *,
        atomic: bool = True,
        key: str | None = None,
        lenient: bool = False,
    ) -> BulkResult:
        """Submit up to 10,000 jobs at once; ``atomic``: all or none, otherwise the valid ones."""
        return self._connection.call(
            BulkResult,
            "POST",
            f"{API}/jobs",
            repeatable=True,
            params={"atomic": str(atomic).lower(), **_lenient(lenient=lenient)},
            json={"items": list(manifests)},
            headers={"Idempotency-Key": key or new_key()},
        )

    def check_bulk(self, manifests: Sequence[Mapping[str, Any]], *, lenient: bool = False) -> BulkResult:
        """Check up to 10,000 jobs as if they were submitted; nothing is stored."""
        body = {"items": list(manifests)}
        params = {"dry_run": "true", **_lenient(lenient=lenient)}
        return self._connection.call(BulkResult, "POST", f"{API}/jobs", repeatable=True, params=params, json=body)

    def check(
        self, manifests: Sequence[Mapping[str, Any]], *, verb: str = "apply", lenient: bool = False
    ) -> BulkResult:
        """Check manifests of any kinds as if they were written together; nothing is stored.

        Args:
            manifests: Each may name what earlier ones write: policies, queues, categories, job sets, jobs.
            verb: ``apply``; ``create`` if all must be new; ``update`` if all must exist.
            lenient: How manifests of Kubernetes are read.
        """
        body, params = {"items": list(manifests)}, {"verb": verb, **_lenient(lenient=lenient)}
        return self._connection.call(BulkResult, "POST", f"{API}/dry-run", repeatable=True, params=params, json=body)

    def job(self, reference: str) -> JobView:
        """Read a job with all its details."""
        return self._connection.get(_job_path(reference), JobView)

    def jobs(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobSummary]:
        """List jobs in order of submission, page by page; without a limit, all."""
        return self._pages(_filters(filters), limit)

    def full_jobs(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobView]:
        """List jobs with all their details."""
        for job in self._pages({**_filters(filters), "fields": "full"}, limit):
            if isinstance(job, JobView):
                yield job

    def job_outcomes(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobOutcome]:
        """List jobs with their labels and their last attempts."""
        for job in self._pages({**_filters(filters), "fields": "outcome"}, limit):
            if isinstance(job, JobOutcome):
                yield job

    def _pages(self, filters: Mapping[str, Any], limit: int | None) -> Iterator[JobSummary]:
        for page in self._connection.pages(f"{API}/jobs", JobPage, filters, limit):
            yield from page.items

    def states(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Read the states of many jobs; unknown ids are left out."""
        return self.job_states(job_ids).states

    def job_states(self, job_ids: Sequence[str]) -> JobStates:
        """Read the states of many jobs, and which of them have started; unknown ids are left out."""
        states, started = dict[str, str](), list[str]()
        for start in range(0, len(job_ids), MOST_STATES):
            body = {"ids": list(job_ids[start : start + MOST_STATES])}
            answer = self._connection.call(JobStates, "POST", f"{API}/jobs/states", repeatable=True, json=body)
            states.update(answer.states)
            started += answer.started
        return JobStates(states=states, started=started)

    def attempts(self, reference: str) -> list[AttemptView]:
        """List a job's attempts, by number."""
        return self._connection.get(_job_path(reference, "/attempts"), AttemptPage).items

    def attempt(self, reference: str, number: int) -> AttemptView:
        """Read one attempt."""
        return self._connection.get(_job_path(reference, f"/attempts/{number}"), AttemptView)

    def decisions(self, reference: str) -> list[DecisionEntry]:
        """List the decisions on a job's failures, by attempt."""
        return self._connection.get(_job_path(reference, "/decisions"), DecisionPage).items

    def history(self, reference: str) -> list[HistoryEntry]:
        """List the phases a job's attempts went through."""
        return self._connection.get(_job_path(reference, "/history"), HistoryPage).items

    def why(self, reference: str, *, attempt: int | None = None) -> Why:
        """Explain a job's state, by its last decision or that of an attempt."""
        return self._connection.get(_job_path(reference, "/why"), Why, {"attempt": attempt})

    def logs(  # noqa: PLR0913 - the parameters of an address
        self,
        reference: str,
        *,
        attempt: int | None = None,
        rank: int = 0,
        offset: int | None = None,
        tail: int | None = None,
        newest: bool = False,
        stderr: bool = False,
        since: datetime | None = None,
        timestamps: bool = False,
    ) -> LogChunk:
        """Read a part of a run's log: from ``offset`` bytes, or the last ``tail`` lines.

        With ``newest`` it starts no earlier than the output of the rank's newest run, with ``since`` no earlier than
        the first line written in that second. ``stderr`` selects standard error, for jobs whose ``logs`` are
        ``separate``. With ``timestamps`` each line begins with its time and comes only when it is complete.

        To follow, ask again with ``offset=next_offset`` until ``finished``.
        """
        params: dict[str, str | int | None] = {"attempt": attempt, "rank": rank, "offset": offset, "tail": tail}
        params |= {"newest": newest or None, "stream": "stderr" if stderr else None}
        params |= {"since": since.isoformat() if since is not None else None, "timestamps": timestamps or None}
        return self._connection.get(_job_path(reference, "/logs"), LogChunk, params)

    def cancel(self, reference: str, *, reason: str = "", unless_started: bool = False) -> JobSummary:
        """Request the cancellation of a job; with ``unless_started`` nothing happens if an attempt has begun.

        The result shows soon after: the job is ``Cancelled``, or ``started_at`` is set.

        Raises:
            Conflict: The job has ended, or has started and ``unless_started`` is set.
        """
        body = {"reason": reason, "unless_started": unless_started}
        path = _job_path(reference, "/cancel")
        return self._connection.call(JobSummary, "POST", path, repeatable=True, json=body)

    def hold(self, reference: str, *, reason: str = "") -> JobSummary:
        """Hold a waiting job until it is released."""
        return self.ask(reference, "hold", reason=reason)

    def release(self, reference: str, *, reason: str = "") -> JobSummary:
        """Release a held job."""
        return self.ask(reference, "release", reason=reason)

    def retry(self, reference: str, *, reason: str = "", changes: Mapping[str, Any] | None = None) -> JobSummary:
        """Request another attempt of a job that has ended or waits; ``changes`` is a merge patch of its manifest."""
        body = {"reason": reason, "set": dict(changes or {})}
        return self._connection.call(JobSummary, "POST", _job_path(reference, "/retry"), repeatable=False, json=body)

    def preempt(self, reference: str, *, reason: str = "") -> JobSummary:
        """Preempt a running job; policies decide whether it runs again."""
        return self.ask(reference, "preempt", reason=reason)

    def preempt_node(self, node: str, *, reason: str = "") -> list[JobSummary]:
        """Preempt all runs on the nodes of a name; returns the jobs."""
        path = f"{API}/nodes/{quote(node, safe='')}/preempt"
        page = self._connection.call(JobPage, "POST", path, repeatable=False, json={"reason": reason})
        return list(page.items)

    def cancel_many(self, ids: Sequence[str], *, reason: str = "", unless_started: bool = False) -> list[str]:
        """Cancel up to 10,000 jobs, all or none; returns those that had not ended and belong to no job set.

        With ``unless_started``, jobs with an attempt that has begun when the server acts on the request are left alone;
        ``job_states`` tells which.
        """
        body = {"ids": list(ids), "reason": reason, "unless_started": unless_started}
        return list(self._connection.call(AskedJobs, "POST", f"{API}/jobs/cancel", repeatable=True, json=body).ids)

    def preempt_many(self, ids: Sequence[str], *, reason: str = "") -> list[str]:
        """Preempt jobs, all or none; returns the ids of those that run."""
        body = {"ids": list(ids), "reason": reason}
        return list(self._connection.call(AskedJobs, "POST", f"{API}/jobs/preempt", repeatable=False, json=body).ids)

    def reprioritize(self, reference: str, priority: int) -> JobSummary:
        """Change a job's priority; higher numbers go first."""
        path = _job_path(reference, "/reprioritize")
        return self._connection.call(JobSummary, "POST", path, repeatable=True, json={"priority": priority})

    def reprioritize_many(
        self,
        priority: int,
        *,
        ids: Sequence[str] | None = None,
        queue: str | None = None,
        group: str | None = None,
    ) -> int:
        """Change the priority of all jobs of a queue or group, or with these ids; returns their number."""
        body = {"priority": priority, "queue": queue, "group": group, "ids": None if ids is None else list(ids)}
        path = f"{API}/jobs/reprioritize"
        return self._connection.call(Reprioritized, "POST", path, repeatable=True, json=body).count

    def ask(self, reference: str, act: str, *, reason: str = "") -> JobSummary:
        """Send a request about a job that needs nothing but a reason."""
        path, repeatable = _job_path(reference, f"/{act}"), act in REPEATABLE
        return self._connection.call(JobSummary, "POST", path, repeatable=repeatable, json={"reason": reason})


def _filters(filters: JobsWanted) -> dict[str, Any]:
    """Write filters as query parameters; most have the same name."""
    parameters = dict[str, Any](filters)
    states, labels, tasks = parameters.pop("states", ()), parameters.pop("labels", None), parameters.pop("tasks", True)
    parameters |= {"state": list(states) or None, "label": label_params(labels), "id": parameters.pop("ids", None)}
    return {**parameters, "tasks": None if tasks else "false", "quarantined": filters.get("quarantined") or None}


def _lenient(*, lenient: bool) -> dict[str, str]:
    return {"lenient": "true"} if lenient else {}
