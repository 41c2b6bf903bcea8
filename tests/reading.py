"""Reads what tests write: whole texts, single jobs, single rules, times."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import Document, read_documents
from holdfast.dialects.manifests import Manifest, read_one, try_job
from holdfast.dialects.native.job import read_job_manifest
from holdfast.domain.policy.compiled import CompiledRule, PolicySet
from holdfast.domain.policy.model import RetryPolicy, Rule
from holdfast.domain.sessions.model import kernel_id, session_id
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest
from holdfast.ports.sessions import Compare, Comparison, Order, PageRequest, StepField
from tools.cases.kube_reading import ReadKube, read_kube

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.domain.lifecycle import EntityKind, HistoryRow
    from holdfast.errors import Problem
    from holdfast.ports.sessions import SessionStore


def read_manifests(text: str) -> list[Manifest]:
    """Read every manifest of a text.

    Raises:
        InvalidManifest: With every problem of every document; paths start with ``document[N]`` when there are several.
    """
    return read_all(read_documents(text))


def read_all(documents: Iterable[Document], *, lenient: bool = False) -> list[Manifest]:
    """Read every document's manifest.

    Raises:
        InvalidManifest: With every problem of every document.
    """
    listed = list(documents)
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for document in listed:
        path = f"document[{document.index}]" if len(listed) > 1 else ""
        found = read_one(document, path=path, lenient=lenient)
        problems.extend(found.problems)
        if found.manifest is not None:
            manifests.append(found.manifest)
    if problems:
        raise InvalidManifest(problems=problems)
    return manifests


def read_job(document: Document | Mapping[str, Any]) -> JobSpec:
    """Read a manifest that must be a job; without ``apiVersion`` and ``kind`` it is taken for one.

    Raises:
        InvalidManifest: With every problem found.
    """
    found = try_job(document)
    if not isinstance(found.manifest, JobSpec):
        raise InvalidManifest(problems=found.problems)
    return found.manifest


def read_kube_text(text: str, *, name: str = "input", lenient: bool = False) -> list[ReadKube]:
    """Read every manifest of a text.

    Raises:
        InvalidManifest: With every problem of the first document that has any.
    """
    return [read_kube(document, lenient=lenient) for document in read_documents(text, name=name, lenient=lenient)]


def read_job_mapping(value: Mapping[str, Any]) -> JobSpec:
    """Read one job.

    Raises:
        InvalidManifest: With every problem found.
    """
    problems: list[Problem] = []
    job = read_job_manifest(value, path="", problems=problems)
    if job is None:
        raise InvalidManifest(problems=problems)
    assert isinstance(job, JobSpec)
    return job


def compile_rule(rule: Rule) -> CompiledRule:
    """Compile one rule by itself, to ask whether it matches and why."""
    return PolicySet.compile([RetryPolicy("", (rule,))]).rules[0]


def seconds_of(text: str) -> float:
    """Read a time of the outside back into seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def steps_of(store: SessionStore, kind: EntityKind, name: str) -> list[HistoryRow]:
    """Read the history of a session or a kernel, in order; ``name`` is its id there."""
    job_id, retry_count, *rank = name.split("/")
    key, field = session_id(job_id, int(retry_count)), StepField.SESSION_ID
    if rank:
        key, field = kernel_id(key, int(rank[0])), StepField.KERNEL_ID
    page = PageRequest(limit=1000, order=(Order(StepField.CREATED_AT),))
    return [*store.search_steps(kind, Compare(field, Comparison.EQUALS, key), page).items]
