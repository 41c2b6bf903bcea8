"""Reads manifests of every supported kind, by their ``apiVersion`` and ``kind``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from holdfast.dialects.armada.policy import (
    ARMADA_FLAT,
    ARMADA_NESTED,
    read_flat_policy_manifest,
    read_nested_policy_manifest,
)
from holdfast.dialects.armada.queues import read_queue_manifest as read_armada_queue
from holdfast.dialects.backendai.entries import (
    read_domain_manifest,
    read_group_manifest,
    read_image_manifest,
    read_keypair_manifest,
    write_domain,
    write_group,
    write_image,
    write_keypair,
)
from holdfast.dialects.documents import Document
from holdfast.dialects.jobset.job import API_VERSION as BATCH_VERSION
from holdfast.dialects.jobset.loading import plain_job_spec
from holdfast.dialects.jobset.manifest import API_VERSION as JOBSET_VERSION
from holdfast.dialects.jobset.pod_template import ARMADA_POLICY
from holdfast.dialects.jobset.reading import READERS as KUBE_READERS
from holdfast.dialects.jobset.runnable import check_runnable
from holdfast.dialects.jobset.wording import Engines, ManifestNotes, local
from holdfast.dialects.native.catalogue import read_queue_manifest, write_queue
from holdfast.dialects.native.category import category_warnings, read_category_manifest, write_category
from holdfast.dialects.native.envelope import API_VERSION
from holdfast.dialects.native.job import read_job_manifest
from holdfast.dialects.native.notify import read_notifier_manifest, write_notifier
from holdfast.dialects.native.policy import policy_warnings, read_policy_manifest
from holdfast.dialects.native.writing import write_policy
from holdfast.dialects.reading import shown
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import Struct, evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms import entries
from holdfast.domain.terms.kinds import KINDS
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.dialects.jobset.reading import KubeManifest

Manifest: TypeAlias = (
    JobSpec
    | ArraySpec
    | JobSetSpec
    | RetryPolicy
    | Queue
    | FailureCategory
    | Notifier
    | Domain
    | ResourceGroup
    | Image
    | KeyPair
)
"""Every result of reading a manifest."""


class Reading(Struct, frozen=True):
    """The result of reading one manifest."""

    manifest: Manifest | None
    """``None`` if there are problems."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """What is legal but dubious, accepted by a lenient reading, or ignored here."""


def _of_problems(read: Callable[..., Manifest | None]) -> Callable[[Mapping[str, Any], ManifestNotes], Manifest | None]:
    """Adapt a reader that reports problems only."""
    return lambda value, notes: read(value, path="", problems=notes.problems)


def _of_kubernetes(kind: tuple[str, str]) -> Callable[[Mapping[str, Any], ManifestNotes], Manifest | None]:
    """Adapt a reader of job sets or Jobs, and check that they can run here."""
    return lambda value, notes: _as_manifest(KUBE_READERS[kind](value, notes), notes)


def _as_manifest(kube_manifest: KubeManifest | None, notes: ManifestNotes) -> Manifest | None:
    if kube_manifest is None or notes.problems:
        return None
    check_runnable(kube_manifest, notes)
    if notes.problems:
        return None
    return kube_manifest if isinstance(kube_manifest, JobSetSpec) else plain_job_spec(kube_manifest)


def _of_package(package: str) -> Callable[[Mapping[str, Any], ManifestNotes], Any]:
    """Find the reader of a kind that has its code in one place."""
    return lambda value, notes: import_module(f"{package}.manifest").read(value, notes)


class EntryFormat(NamedTuple):
    """Reads and writes the manifests of one kind of entry."""

    read: Callable[..., Any]
    write: Callable[[Any], dict[str, Any]]
    """Writes ``spec``, which reads back equal."""


_FORMATS = {
    entries.POLICY: EntryFormat(read_policy_manifest, write_policy),
    entries.QUEUE: EntryFormat(read_queue_manifest, write_queue),
    entries.CATEGORY: EntryFormat(read_category_manifest, write_category),
    entries.NOTIFIER: EntryFormat(read_notifier_manifest, write_notifier),
    entries.DOMAIN: EntryFormat(read_domain_manifest, write_domain),
    entries.RESOURCE_GROUP: EntryFormat(read_group_manifest, write_group),
    entries.IMAGE: EntryFormat(read_image_manifest, write_image),
    entries.KEYPAIR: EntryFormat(read_keypair_manifest, write_keypair),
}


def format_of(info: entries.EntryInfo) -> EntryFormat:
    """Return the format of a kind of entry."""
    return _FORMATS[info]


_READERS: dict[tuple[str, str], Callable[[Mapping[str, Any], ManifestNotes], Manifest | None]] = {
    (API_VERSION, "Job"): _of_problems(read_job_manifest),
    (API_VERSION, "JobSet"): _of_kubernetes((API_VERSION, "JobSet")),
    **{(API_VERSION, info.manifest): _of_problems(format_of(info).read) for info in entries.ENTRIES.values()},
    (JOBSET_VERSION, "JobSet"): _of_kubernetes((JOBSET_VERSION, "JobSet")),
    (BATCH_VERSION, "Job"): _of_kubernetes((BATCH_VERSION, "Job")),
    (ARMADA_NESTED, "RetryPolicy"): _of_problems(read_nested_policy_manifest),
    (ARMADA_FLAT, "RetryPolicy"): _of_problems(read_flat_policy_manifest),
    (ARMADA_FLAT, "Queue"): _of_problems(read_armada_queue),
    **{(API_VERSION, kind.manifest): _of_package(kind.package) for kind in KINDS.values() if kind.package},
}
JOB_KINDS = ((API_VERSION, "Job"), (BATCH_VERSION, "Job"))
"""The kinds that can be submitted as a job."""


def read_one(
    document: Document | Mapping[str, Any], *, path: str = "", lenient: bool = False, engines: Engines = local
) -> Reading:
    """Read one manifest of any supported kind, with its problems and warnings.

    Args:
        document: The manifest as written.
        path: The prefix of the problems' paths.
        lenient: Accept what Kubernetes accepts in its kinds, with a warning for each.
        engines: Lists the engines that may run it; what none of them supports is refused.
    """
    value = document.value if isinstance(document, Document) else document
    notes = ManifestNotes(lenient, engines)
    reader = _reader(value, notes.problems)
    manifest = None if reader is None else reader(value, notes)
    if notes.problems:
        manifest = None
    before = document.warnings if isinstance(document, Document) else ()
    dubious = () if manifest is None else manifest_warnings(manifest)
    return Reading(
        manifest,
        tuple(located(problem, document, path) for problem in notes.problems),
        (*before, *(located(warning, document, path) for warning in (*notes.warnings, *dubious))),
    )


def read_manifest(document: Document | Mapping[str, Any], *, path: str = "", lenient: bool = False) -> Manifest:
    """Read one manifest of any supported kind; see ``read_one``.

    Raises:
        InvalidManifest: With every problem found.
    """
    result = read_one(document, path=path, lenient=lenient)
    if result.manifest is None:
        raise InvalidManifest(problems=result.problems)
    return result.manifest


def located(problem: Problem, document: Document | Mapping[str, Any], path: str = "") -> Problem:
    """Give a problem its line in a document, and prefix its path by ``path``."""
    line = document.line_of(problem.path) if isinstance(document, Document) and problem.line is None else problem.line
    where = f"{path}.{problem.path}" if path and problem.path else path or problem.path
    return evolve(problem, path=where, line=line)


def _reader(
    value: Mapping[str, Any], problems: list[Problem]
) -> Callable[[Mapping[str, Any], ManifestNotes], Manifest | None] | None:
    version, kind = value.get("apiVersion"), value.get("kind")
    if version is None and kind is None and ("command" in value or "shell" in value):
        return _READERS[API_VERSION, "Job"]
    reader = _READERS.get((version, kind)) if isinstance(version, str) and isinstance(kind, str) else None
    if reader is not None:
        return reader
    versions, kinds = (list(dict.fromkeys(part)) for part in zip(*_READERS, strict=True))
    if version not in versions:
        problems.append(_unsupported("apiVersion", version, tuple(versions)))
    elif version != API_VERSION:
        allowed = tuple(name for of, name in _READERS if of == version)
        message = f"kind must be {' or '.join(allowed)} with apiVersion {version}, not {shown(kind)}"
        problems.append(Problem("kind", message, allowed))
        return None
    if kind not in kinds:
        problems.append(_unsupported("kind", kind, tuple(kinds)))
    return None


def _unsupported(field: str, value: object, allowed: tuple[str, ...]) -> Problem:
    if value is None:
        return Problem(field, "is required", allowed)
    return Problem(field, f"{field} {shown(value)} is not supported", allowed, closest(value, allowed))


def manifest_warnings(manifest: object) -> tuple[Problem, ...]:
    """List what is legal but dubious in a manifest: unreachable rules, unused settings, impossible matches.

    Warnings of job sets and Kubernetes Jobs are found while they are read, see ``read_one``.
    """
    if isinstance(manifest, RetryPolicy):
        return tuple(policy_warnings(manifest, "spec"))
    if isinstance(manifest, FailureCategory):
        return tuple(category_warnings(manifest, "spec"))
    if isinstance(manifest, ArraySpec):
        manifest = manifest.job
    if isinstance(manifest, JobSpec):
        several = len(manifest.inline_policies) > 1
        paths = [f"spec.retry[{i}]" if several else "spec.retry" for i in range(len(manifest.inline_policies))]
        own = manifest.inline_policies
        ends = (
            manifest.on_unknown_end,
            manifest.array_on_unknown_end,
            *(policy_read.on_unknown_end for policy_read in own),
        )
        says = next(filter(None, ends), None)
        policies = zip(own, paths, strict=True)
        warnings = [problem for policy, path in policies for problem in policy_warnings(policy, path, says)]
        if manifest.kube is None and ARMADA_POLICY in manifest.annotations:
            path = f"metadata.annotations.{ARMADA_POLICY}"
            warnings.append(Problem(path, "has no effect here", hint="name retry policies in retryPolicies"))
        return tuple(warnings)
    return ()


def try_job(
    document: Document | Mapping[str, Any], *, path: str = "", lenient: bool = False, engines: Engines = local
) -> Reading:
    """Read a manifest that must be a job, with its problems and warnings; see ``read_job``."""
    value = document.value if isinstance(document, Document) else document
    version, kind = value.get("apiVersion", API_VERSION), value.get("kind", "Job")
    if (version, kind) in JOB_KINDS:
        full = {**value, "apiVersion": version, "kind": kind}
        whole = evolve(document, value=full) if isinstance(document, Document) else full
        reading = read_one(whole, path=path, lenient=lenient, engines=engines)
        if not isinstance(reading.manifest, ArraySpec):
            return reading
        field = "spec.array" if "spec" in value else "array"
        why = "an array cannot be submitted as a job"
        problem = Problem(field, why, hint="arrays are sent to /arrays, one at a time")
        return Reading(None, (located(problem, document, path),))
    allowed = tuple("/".join(pair) for pair in JOB_KINDS)
    hint = "job sets are sent to /jobsets" if kind == "JobSet" else None
    problem = Problem("kind", f"{shown(version)} {shown(kind)} is not a job", allowed, hint)
    return Reading(None, (located(problem, document, path),))
