"""The calls about jobs: submit, read, follow, control."""

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
    """Which jobs a list is of; all that is given must hold."""

    states: Iterable[str]
    """Any of these."""
    queue: str | None
    name: str | None
    labels: Mapping[str, str] | None
    job_set: str | None
    """Name or id of the set they belong to."""
    quarantined: bool
    """Only those that Holdfast itself failed to look after."""
    array: str | None
    """Name or id of the array they are tasks of."""
    tasks: bool
    """Also the tasks of arrays; the default."""
    ids: Sequence[str] | None
    """Only these, at most 200."""
    user: str | None
    """Name of who submitted them."""
    group: str | None
    """With a slash at its end, also what is below it."""


class JobCalls:
    """What can be done with jobs; a job is named by its id, its name or a unique prefix of its id."""

    _connection: Connection

    def submit(self, manifest: Mapping[str, Any], *, key: str | None = None, lenient: bool = False) -> JobAccepted:
        """Submit one job; safe to send again with the same idempotency key (one is made when none is given).

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
        """Submit a Kubernetes Job unless the newest one of its name is the same; suspend or resume that as it says."""
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
        """Submit up to 10,000 jobs at once; ``atomic``: all or none, else what is valid."""
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
        """Have up to 10,000 jobs checked as if they were submitted; nothing is stored."""
        body = {"items": list(manifests)}
        params = {"dry_run": "true", **_lenient(lenient=lenient)}
        return self._connection.call(BulkResult, "POST", f"{API}/jobs", repeatable=True, params=params, json=body)

    def check(
        self, manifests: Sequence[Mapping[str, Any]], *, verb: str = "apply", lenient: bool = False
    ) -> BulkResult:
        """Have manifests of any kinds checked as if they were written together; nothing is stored.

        Args:
            manifests: Each may name what is written before it: policies, queues, categories, job sets, jobs.
            verb: ``apply``; ``create``, by which all must be new; or ``update``, by which all must exist.
            lenient: How manifests of Kubernetes are read.
        """
        body, params = {"items": list(manifests)}, {"verb": verb, **_lenient(lenient=lenient)}
        return self._connection.call(BulkResult, "POST", f"{API}/dry-run", repeatable=True, params=params, json=body)

    def job(self, reference: str) -> JobView:
        """Read a job with everything known of it."""
        return self._connection.get(_job_path(reference), JobView)

    def jobs(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobSummary]:
        """List jobs in order of submission, page by page; without a limit, all."""
        return self._pages(_filters(filters), limit)

    def full_jobs(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobView]:
        """List jobs with everything known of them."""
        for job in self._pages({**_filters(filters), "fields": "full"}, limit):
            if isinstance(job, JobView):
                yield job

    def job_outcomes(self, *, limit: int | None = None, **filters: Unpack[JobsWanted]) -> Iterator[JobOutcome]:
        """List jobs with their labels and how the last attempt of each went."""
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
        """List what was decided about a job's failures, by attempt."""
        return self._connection.get(_job_path(reference, "/decisions"), DecisionPage).items

    def history(self, reference: str) -> list[HistoryEntry]:
        """List the phases a job's attempts went through."""
        return self._connection.get(_job_path(reference, "/history"), HistoryPage).items

    def why(self, reference: str, *, attempt: int | None = None) -> Why:
        """Explain why a job is where it is, by its last decision or that of an attempt."""
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

        With ``newest``, from no earlier than where the newest of the runs that followed each other in the rank began.

        With ``stderr`` of standard error, which only jobs have apart whose ``logs`` are ``separate``.

        With ``since``, from no earlier than the first line that was written in that second; with ``timestamps`` each
        line begins with when it was written, and waits until it is whole.

        To follow, ask again with ``offset=next_offset`` until ``finished``.
        """
        params: dict[str, str | int | None] = {"attempt": attempt, "rank": rank, "offset": offset, "tail": tail}
        params |= {"newest": newest or None, "stream": "stderr" if stderr else None}
        params |= {"since": since.isoformat() if since is not None else None, "timestamps": timestamps or None}
        return self._connection.get(_job_path(reference, "/logs"), LogChunk, params)

    def cancel(self, reference: str, *, reason: str = "", unless_started: bool = False) -> JobSummary:
        """Ask for a job to be cancelled; with ``unless_started`` it is left alone once an attempt has begun.

        Whether it was is seen soon after: it is ``Cancelled``, or ``started_at`` is set.

        Raises:
            Conflict: It has ended, or started and is to be left alone then.
        """
        body = {"reason": reason, "unless_started": unless_started}
        path = _job_path(reference, "/cancel")
        return self._connection.call(JobSummary, "POST", path, repeatable=True, json=body)

    def hold(self, reference: str, *, reason: str = "") -> JobSummary:
        """Ask for a waiting job to be held until it is released."""
        return self.ask(reference, "hold", reason=reason)

    def release(self, reference: str, *, reason: str = "") -> JobSummary:
        """Ask to release a held job."""
        return self.ask(reference, "release", reason=reason)

    def retry(self, reference: str, *, reason: str = "", changes: Mapping[str, Any] | None = None) -> JobSummary:
        """Ask for another attempt of a job that has ended or waits; ``changes`` is a merge patch of its manifest."""
        body = {"reason": reason, "set": dict(changes or {})}
        return self._connection.call(JobSummary, "POST", _job_path(reference, "/retry"), repeatable=False, json=body)

    def preempt(self, reference: str, *, reason: str = "") -> JobSummary:
        """Ask for the place of a job that runs; policies decide whether it runs again."""
        return self.ask(reference, "preempt", reason=reason)

    def preempt_node(self, node: str, *, reason: str = "") -> list[JobSummary]:
        """Ask for the places of all that runs on the nodes of a name; returns the jobs."""
        path = f"{API}/nodes/{quote(node, safe='')}/preempt"
        page = self._connection.call(JobPage, "POST", path, repeatable=False, json={"reason": reason})
        return list(page.items)

    def cancel_many(self, ids: Sequence[str], *, reason: str = "", unless_started: bool = False) -> list[str]:
        """Ask for up to 10,000 jobs to be cancelled, all or none; returns those that had not ended, and are of no set.

        With ``unless_started`` those are left alone of which an attempt has begun when the server acts on it;
        ``job_states`` says which these are.
        """
        body = {"ids": list(ids), "reason": reason, "unless_started": unless_started}
        return list(self._connection.call(AskedJobs, "POST", f"{API}/jobs/cancel", repeatable=True, json=body).ids)

    def preempt_many(self, ids: Sequence[str], *, reason: str = "") -> list[str]:
        """Ask for the places of jobs, of all or none; returns the ids of those that run."""
        body = {"ids": list(ids), "reason": reason}
        return list(self._connection.call(AskedJobs, "POST", f"{API}/jobs/preempt", repeatable=False, json=body).ids)

    def reprioritize(self, reference: str, priority: int) -> JobSummary:
        """Ask for another priority of a job; higher ones go first."""
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
        """Ask for another priority of all jobs of a queue, a group, or with these ids; returns how many there are."""
        body = {"priority": priority, "queue": queue, "group": group, "ids": None if ids is None else list(ids)}
        path = f"{API}/jobs/reprioritize"
        return self._connection.call(Reprioritized, "POST", path, repeatable=True, json=body).count

    def ask(self, reference: str, act: str, *, reason: str = "") -> JobSummary:
        """Ask for something to be done with a job that needs nothing said beside a reason."""
        path, repeatable = _job_path(reference, f"/{act}"), act in REPEATABLE
        return self._connection.call(JobSummary, "POST", path, repeatable=repeatable, json={"reason": reason})


def _filters(filters: JobsWanted) -> dict[str, Any]:
    """Write filters as the parameters of the address; most have the same name."""
    parameters = dict[str, Any](filters)
    states, labels, tasks = parameters.pop("states", ()), parameters.pop("labels", None), parameters.pop("tasks", True)
    parameters |= {"state": list(states) or None, "label": label_params(labels), "id": parameters.pop("ids", None)}
    return {**parameters, "tasks": None if tasks else "false", "quarantined": filters.get("quarantined") or None}


def _lenient(*, lenient: bool) -> dict[str, str]:
    return {"lenient": "true"} if lenient else {}
