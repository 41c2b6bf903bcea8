"""Damages rows of a real database: every text of every table, each in a row of its own where there are many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Text, create_engine, insert, select, true, update

from holdfast.domain.job import JOB_TERMINAL, Job, JobState
from holdfast.domain.sessions.model import SessionSpec
from holdfast.domain.sessions.records import first_kernels, first_session
from holdfast.storage.sql import tables
from holdfast.storage.sql.codec import kernel_row, session_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from sqlalchemy import ColumnElement, Connection

    from holdfast.client import Client

GARBAGE = "{"
"""No JSON, and no word that any column may hold."""
_JOBS = tables.jobs.c
VICTIMS: Mapping[str, Callable[[str], ColumnElement[bool]]] = {
    "jobs": lambda key: _JOBS.id == key,
    "job_labels": lambda key: tables.job_labels.c.job_id == key,
    "attempts": lambda key: tables.attempts.c.job_id == key,
    "runs": lambda key: tables.runs.c.job_id == key,
    "history": lambda key: tables.history.c.id.startswith(f"{key}/"),
    "events": lambda key: tables.events.c.job_id == key,
    "specs": lambda key: tables.specs.c.digest == select(_JOBS.spec).where(_JOBS.id == key).scalar_subquery(),
    "workloads": lambda key: tables.workloads.c.id == key,
    "set_log": lambda key: tables.set_log.c.set_id == key,
    "endpoints": lambda key: tables.metadata.tables["endpoints"].c.job_id == key,
    "sessions": lambda key: tables.sessions.c.job_id == key,
    "kernels": lambda key: tables.kernels.c.job_id == key,
    "names": lambda key: tables.metadata.tables["names"].c.job_id == key,
}
"""Which rows are a workload's, by the tables that have such rows."""
SHARED = frozenset({
    "audit", "discards", "entries", "idempotency", "intake", "leadership", "nodes", "notifications",
    "places", "policies", "policy_revisions", "quarantine", "requests", "reruns", "settings",
})  # fmt: skip
"""Tables whose rows belong to nobody in particular: all of them are damaged."""


LEFT_ALONE = {
    "jobs": {"named", "state", "counters", "met", "avoid_devices", "avoid_nodes", "tried", "kind"},
    "attempts": {"status", "named", "ending", "failure", "decision"},
    "runs": {"status", "named", "outcome", "failure", "decision", "devices", "interrupted", "ports"},
    "history": {"from_status", "to_status", "outcome", "steps"},
    "specs": {"body"},
    "sessions": {"type", "retry_policy", "status", "result", "retry_state"},
    "kernels": {"status"},
    "workloads": {"kind", "spec", "state"},
}
"""Damage that keeps Holdfast from looking after what it belongs to; the rest is for people to read, or names others."""
_RETRY = {"retryLimit": 9, "defaultAction": "Retry", "backoff": {"initialDelay": "0s"}}


class Damage(NamedTuple):
    """One column of one table."""

    table: str
    column: str

    @property
    def name(self) -> str:
        """What the workload is called whose row has it."""
        return f"bad-{self.table}-{self.column}".replace("_", "-")


def every_damage() -> list[Damage]:
    """List the texts of all tables that are no key of anything."""
    found = []
    for table in tables.metadata.sorted_tables:
        keys = {*_PAUSES, *table.primary_key.columns, *(column for column in table.columns if column.foreign_keys)}
        found += [
            Damage(table.name, column.name)
            for column in table.columns
            if isinstance(column.type.dialect_impl(_SQLITE), Text)
            and column not in keys | _PAUSES
            and not column.unique
        ]
    return found


_PAUSES = {tables.metadata.tables["settings"].c.paused}
"""What damaged pauses everything, which a test of its own shows."""
_SQLITE = create_engine("sqlite://").dialect


def native(kind: str, name: str, **spec: object) -> dict[str, Any]:
    """Write a manifest of ours."""
    return {"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _kube(shell: str, retries: int) -> dict[str, Any]:
    container = {"name": "main", "command": ["sh", "-c", shell], "resources": {"requests": {"cpu": "10m"}}}
    return {"backoffLimit": retries, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}


def _set(name: str, shell: str, **policy: object) -> dict[str, Any]:
    spec = {**policy, "replicatedJobs": [{"name": "w", "template": {"spec": _kube(shell, 0)}}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def submit_job(client: Client, name: str, shell: str, **spec: object) -> str:
    """Submit a small job and return its id."""
    return client.submit(native("Job", name, shell=shell, resources={"cpu": 0.01}, **spec)).id


def submit_each_kind(client: Client, prefix: str, shell: str) -> list[str]:
    """Submit a Kubernetes Job, an array and a job set, and return their ids."""
    array = native("Job", f"{prefix}-array", shell=shell, array={"indices": "0-1"}, resources={"cpu": 0.01})
    kube = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{prefix}-kube"}, "spec": _kube(shell, 6)}
    made_of_jobs = client.create_job_set(_set(f"{prefix}-set", shell)).id
    return [client.submit(kube).id, client.submit_array(array).id, made_of_jobs]


def submit_victims(client: Client, shell: str) -> dict[Damage, list[str]]:
    """Submit something to damage for every text of the tables that have rows of workloads, and a row for the others."""
    client.notifiers.create(native("Notifier", "ops", type="webhook", url="https://127.0.0.1:1"))
    client.queues.create(native("Queue", "other"))
    client.policies.create(native("RetryPolicy", "patient", **_RETRY))
    client.categories.create(native("FailureCategory", "odd", rules=[{"onTerminationMessage": {"pattern": "odd"}}]))
    client.put_settings({"globalMaxRetries": 50})
    client.create_token("ci")
    submit_job(client, "told", "exit 5", notify=["ops"])
    victims = {}
    for each in every_damage():
        if each.table == "workloads":
            victims[each] = submit_each_kind(client, each.name, shell)
        elif each.table == "set_log":
            restarted = _set(each.name, shell, failurePolicy={"maxRestarts": 5})
            victims[each] = [client.create_job_set(restarted).id]
        elif each.table in VICTIMS:
            job = native("Job", each.name, shell=shell, resources={"cpu": 0.01}, retry=_RETRY)
            job["metadata"]["labels"] = {"of": each.table}
            victims[each] = [client.submit(job).id]
    return victims


def damage(url: str, victims: Mapping[Damage, list[str]]) -> None:
    """Damage every text there is, those of workloads in the rows of these; there is a row for each."""
    engine = create_engine(url)
    with engine.begin() as connection:
        taken_in = {"queue": "other", "submitted_by": "ann", "at": 1.0, "count": 1}
        connection.execute(insert(tables.metadata.tables["intake"]).values(taken_in))
        connection.execute(insert(tables.quarantine).values(id="nobody", kind="gang", since=1.0, message="gone"))
        asked = {"kind": "hold", "job_ids": '["nobody"]', "created_at": 1.0, "actor": "", "reason": ""}
        connection.execute(insert(tables.requests).values(asked))
        for each in every_damage():
            table = tables.metadata.tables[each.table]
            if each.table == "endpoints":
                texts = dict.fromkeys(("system", "name", "address", "job_name"), "x")
                [job_id] = victims[each]
                answers = {"id": each.name, "job_id": job_id, "attempt": 1, "rank": 0, "metadata": "{}", **texts}
                connection.execute(insert(table).values(answers))
            if each.table in {"sessions", "kernels"}:
                [job_id] = victims[each]
                add_session(connection, job_id)
            whose = [true()] if each.table in SHARED else map(VICTIMS[each.table], victims[each])
            rows = [
                connection.execute(update(table).where(one).values({each.column: GARBAGE})).rowcount for one in whose
            ]
            assert all(rows), f"nothing was damaged: {each}"
    engine.dispose()


def add_session(connection: Connection, job_id: str) -> None:
    """Add the first session of a job, as if it were one of Backend.AI's."""
    session = first_session(Job(job_id, "x", "default", 0, 1.0, ""), SessionSpec())
    rows = [(tables.sessions, session_row(session))]
    rows += [(tables.kernels, kernel_row(kernel)) for kernel in first_kernels(session)]
    for table, row in rows:
        connection.execute(insert(table).values(dict(zip(table.columns.keys(), row, strict=True))))


def check(client: Client, victims: Mapping[Damage, list[str]], left_alone: AbstractSet[str]) -> None:
    """Whoever is damaged has not ended, and says so where nobody looks after it; all lists can be read."""
    found: dict[str, set[str]] = {}
    for each, ids in victims.items():
        if not left_alone.isdisjoint(ids):
            found.setdefault(each.table, set()).add(each.column)
    assert found == LEFT_ALONE
    listed = {job.id: job for job in client.jobs()}
    jobs = [listed[key] for ids in victims.values() for key in ids if key in listed]
    assert not [(job.name, job.state) for job in jobs if JobState(job.state) in JOB_TERMINAL]
    assert {job.id for job in client.jobs(quarantined=True)} == left_alone & listed.keys()
    for each_of in (client.nodes, client.arrays, client.job_sets, client.events, client.audit, client.notifications):
        list(each_of())
