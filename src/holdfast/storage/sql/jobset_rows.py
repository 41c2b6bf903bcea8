"""Records of job sets and of jobs made of pods to rows and back, in the tables' column order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.workloads.jobset.record import job_record, job_state, pods_of, pods_record, set_record, set_state
from holdfast.domain.workloads.jobset.stored import JobSet, SetLogEntry
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.storage.sql.codec import storable
from holdfast.storage.sql.facts import dump_json, dump_set_fact, load_json, load_set_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = Sequence[Any]


def job_set_changes(job_set: JobSet) -> tuple[Any, ...]:
    """Return a job set's changing columns, in table order."""
    return (
        job_set.manifest,
        job_set.lenient,
        job_set.generation,
        job_set.updated_at,
        job_set.deleting,
        dump_json(set_record(job_set.state)),
        job_set.spec,
    )


def job_set_row(job_set: JobSet) -> tuple[Any, ...]:
    """Return a job set's row."""
    *changes, spec = job_set_changes(job_set)
    return (job_set.id, job_set.name, job_set.created_at, *changes, job_set.version, spec)


def read_job_set(row: Row) -> JobSet:
    """Build a job set from its row."""
    set_id, name, created_at, manifest, lenient, generation, updated_at, deleting, state, version, spec = row
    return JobSet(
        id=set_id,
        name=name,
        created_at=created_at,
        manifest=manifest,
        spec=spec,
        lenient=lenient,
        generation=generation,
        updated_at=updated_at,
        deleting=deleting,
        state=set_state(load_json(state)),
        version=version,
    )


def set_log_row(entry: SetLogEntry) -> tuple[Any, ...]:
    """Return an entry's row without ``seq``."""
    return (entry.set_id, entry.at, *dump_set_fact(entry.what))


def read_set_log(row: Row) -> SetLogEntry:
    """Build an entry from its row.

    Raises:
        Internal: It is of a kind this version does not know.
    """
    seq, set_id, at, kind, body = row
    return SetLogEntry(set_id=set_id, at=at, what=load_set_fact(kind, body), seq=seq)


def pod_job_row(job: KubeJobRecord) -> tuple[Any, ...]:
    """Return the row of a job made of pods."""
    return (
        job.job_id,
        job.restart,
        job.job_restart,
        job.present,
        job.suspended,
        job.deleting_since,
        storable(job.domain),
        job.parallelism,
        job.completions,
        job.expires_at,
        dump_json({"state": job_record(job.state), "pods": pods_record(job.pods)}),
    )


def read_pod_job(row: Row) -> KubeJobRecord:
    """Build a job made of pods from its row."""
    job_id, restart, job_restart, present, suspended, deleting_since, domain, parallelism, completions, *rest = row
    expires_at, text = rest
    record = load_json(text)
    return KubeJobRecord(
        job_id=job_id,
        restart=restart,
        job_restart=job_restart,
        present=present,
        suspended=suspended,
        deleting_since=deleting_since,
        domain=domain,
        parallelism=parallelism,
        completions=completions,
        expires_at=expires_at,
        state=job_state(record["state"]),
        pods=pods_of(record["pods"]),
    )
