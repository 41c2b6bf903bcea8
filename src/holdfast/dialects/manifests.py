"""Reads manifests of every supported kind; decides which reader takes which ``apiVersion`` and ``kind``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.dialects.armada.policy import (
    ARMADA_FLAT,
    ARMADA_NESTED,
    read_flat_policy_manifest,
    read_nested_policy_manifest,
)
from holdfast.dialects.documents import Document, read_documents
from holdfast.dialects.native.category import read_category_manifest
from holdfast.dialects.native.envelope import API_VERSION
from holdfast.dialects.native.job import read_job_manifest
from holdfast.dialects.native.policy import policy_warnings
from holdfast.dialects.native.queue import read_queue_manifest
from holdfast.dialects.native.retry_policy import read_policy_manifest
from holdfast.dialects.reading import shown
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.spec import JobSpec
from holdfast.domain.suggestion import closest
from holdfast.errors import InvalidManifest, InvalidPolicy, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Manifest: TypeAlias = JobSpec | RetryPolicy | Queue | FailureCategory
"""Everything a manifest can be."""

_READERS: dict[tuple[str, str], Callable[..., Manifest | None]] = {
    (API_VERSION, "Job"): read_job_manifest,
    (API_VERSION, "RetryPolicy"): read_policy_manifest,
    (API_VERSION, "Queue"): read_queue_manifest,
    (API_VERSION, "FailureCategory"): read_category_manifest,
    (ARMADA_NESTED, "RetryPolicy"): read_nested_policy_manifest,
    (ARMADA_FLAT, "RetryPolicy"): read_flat_policy_manifest,
}


def supported() -> tuple[str, ...]:
    """List what can be read, as ``apiVersion/kind``."""
    return tuple(f"{version}/{kind}" for version, kind in _READERS)


def read_manifest(document: Document | Mapping[str, Any], *, path: str = "") -> Manifest:
    """Read one manifest of any supported kind.

    Raises:
        InvalidManifest: With every problem found.
    """
    manifest, problems = try_manifest(document, path=path)
    if manifest is None:
        raise InvalidManifest(problems=problems)
    return manifest


def try_manifest(
    document: Document | Mapping[str, Any], *, path: str = ""
) -> tuple[Manifest | None, tuple[Problem, ...]]:
    """Read one manifest of any supported kind; the manifest is ``None`` when there are problems."""
    value = document.value if isinstance(document, Document) else document
    problems: list[Problem] = []
    reader = _reader(value, problems)
    manifest = None if reader is None else reader(value, path="", problems=problems)
    return manifest, tuple(_located(problem, document, path) for problem in problems)


def _located(problem: Problem, document: Document | Mapping[str, Any], path: str) -> Problem:
    line = document.line_of(problem.path) if isinstance(document, Document) and problem.line is None else problem.line
    where = f"{path}.{problem.path}" if path and problem.path else path or problem.path
    return replace(problem, path=where, line=line)


def _reader(value: Mapping[str, Any], problems: list[Problem]) -> Callable[..., Manifest | None] | None:
    version, kind = value.get("apiVersion"), value.get("kind")
    if version is None and kind is None and ("command" in value or "shell" in value):
        return read_job_manifest
    reader = _READERS.get((version, kind)) if isinstance(version, str) and isinstance(kind, str) else None
    if reader is not None:
        return reader
    versions, kinds = (list(dict.fromkeys(part)) for part in zip(*_READERS, strict=True))
    if version not in versions:
        problems.append(_unsupported("apiVersion", version, tuple(versions)))
    elif version != API_VERSION:
        message = f"kind must be RetryPolicy with apiVersion {version}, not {shown(kind)}"
        problems.append(Problem("kind", message, ("RetryPolicy",)))
        return None
    if kind not in kinds:
        problems.append(_unsupported("kind", kind, tuple(kinds)))
    return None


def _unsupported(field: str, value: object, allowed: tuple[str, ...]) -> Problem:
    if value is None:
        return Problem(field, "is required", allowed)
    return Problem(field, f"{field} {shown(value)} is not supported", allowed, closest(value, allowed))


def read_manifests(text: str, *, name: str = "input") -> list[Manifest]:
    """Read every manifest of a text.

    Raises:
        InvalidManifest: With every problem of every document; paths start with ``document[N]`` when there are several.
    """
    return read_all(read_documents(text, name=name))


def read_all(documents: Iterable[Document]) -> list[Manifest]:
    """Read every document's manifest.

    Raises:
        InvalidManifest: With every problem of every document.
    """
    listed = list(documents)
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for document in listed:
        manifest, found = try_manifest(document, path=f"document[{document.index}]" if len(listed) > 1 else "")
        problems.extend(found)
        if manifest is not None:
            manifests.append(manifest)
    if problems:
        raise InvalidManifest(problems=problems)
    return manifests


def manifest_warnings(manifest: Manifest) -> tuple[Problem, ...]:
    """Say what is legal in a manifest but dubious: rules nothing can reach, settings nothing uses."""
    if isinstance(manifest, RetryPolicy):
        return tuple(policy_warnings(manifest, "spec"))
    if isinstance(manifest, JobSpec):
        several = len(manifest.inline_policies) > 1
        paths = [f"spec.retry[{i}]" if several else "spec.retry" for i in range(len(manifest.inline_policies))]
        policies = zip(manifest.inline_policies, paths, strict=True)
        return tuple(problem for policy, path in policies for problem in policy_warnings(policy, path))
    return ()


def read_retry_policy_document(document: Document | Mapping[str, Any]) -> RetryPolicy:
    """Read a manifest that must be a retry policy, in any dialect.

    Raises:
        InvalidPolicy: With every problem found.
    """
    manifest, problems = try_manifest(document)
    if isinstance(manifest, RetryPolicy):
        return manifest
    value = document.value if isinstance(document, Document) else document
    other = Problem("kind", f"{shown(value.get('kind', 'Job'))} is not a retry policy", ("RetryPolicy",))
    raise InvalidPolicy(problems=problems or [other])


def read_job(document: Document | Mapping[str, Any], *, path: str = "") -> JobSpec:
    """Read a manifest that must be a job; without ``apiVersion`` and ``kind`` it is taken for one.

    Raises:
        InvalidManifest: With every problem found.
    """
    value = document.value if isinstance(document, Document) else document
    problems: list[Problem] = []
    job: JobSpec | None = None
    version, kind = value.get("apiVersion", API_VERSION), value.get("kind", "Job")
    if (version, kind) == (API_VERSION, "Job"):
        job = read_job_manifest(value, path="", problems=problems)
    else:
        problems.append(Problem("kind", f"{shown(version)} {shown(kind)} is not a job", (f"{API_VERSION}/Job",)))
    if job is None:
        raise InvalidManifest(problems=[_located(problem, document, path) for problem in problems])
    return job
