"""Checks which fields of an existing JobSet change: few may, and a few more while it is suspended.

Compares manifests by their meaning, not as written.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset.canonical import canonical_set, mapping
from holdfast.dialects.native.dependencies import DEPENDS_ON, ON_UNMET
from holdfast.dialects.native.dependencies import FIELD as DEPENDENCIES
from holdfast.dialects.native.envelope import API_VERSION, GROUP_FIELD
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.model import GROUP, QUEUE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.dialects.jobset.wording import ManifestNotes

FIXED = ("failurePolicy", "successPolicy", "startupPolicy", "network", "coordinator", "volumeClaimPolicies")
MUTABLE_WHILE_SUSPENDED = (
    ("metadata", ("labels", "annotations")),
    ("spec", ("nodeSelector", "tolerations", "schedulingGates")),
)
_ELASTIC = ("parallelism", "completions")
_MOST_TOLD = 5


class _Form(Struct, frozen=True):
    """The places of the mutable fields in one form of job sets."""

    groups: str
    """The list of replicated jobs in ``spec``."""
    job: tuple[str, ...]
    """The path from a replicated job to its Job's spec."""
    fixed: tuple[str, ...] = FIXED


_UPSTREAM = _Form("replicatedJobs", ("template", "spec"))
_NATIVE = _Form("jobs", (), (*FIXED, "startup", "queue", "priority", GROUP_FIELD, DEPENDENCIES))
_NATIVE_WHILE_SUSPENDED = ("labels", "nodeSelector")


def check_update(
    old: Mapping[str, Any], new: Mapping[str, Any], notes: ManifestNotes, *, finished: bool = False
) -> None:
    """Check a change of a set's manifest.

    Args:
        old: The current manifest.
        new: The new manifest.
        notes: Where to add problems.
        finished: Whether the set has ended.
    """
    if old.get("apiVersion") != new.get("apiVersion"):
        hint = f"it was written as {old.get('apiVersion')}; write it so again, or delete it first"
        notes.error("apiVersion", "Invalid value: field is immutable", hint=hint)
        return
    form = _NATIVE if old.get("apiVersion") == API_VERSION else _UPSTREAM
    old, new = canonical_set(old), canonical_set(new)
    before, after = mapping(old, "spec"), mapping(new, "spec")
    _check_fixed(old, new, notes, form)
    suspended = bool(before.get("suspend")) or bool(after.get("suspend"))
    old_groups = {str(group.get("name")): group for group in _groups(before, form)}
    munged = []
    for place, group in enumerate(_groups(after, form)):
        existing = old_groups.get(str(group.get("name")))
        if existing is None:
            munged.append(group)
            continue
        path = ".".join((f"spec.{form.groups}[{place}]", *form.job))
        _check_elastic(_job(existing, form), _job(group, form), notes, path, finished=finished)
        munged.append(_munged(existing, group, form, suspended=suspended))
    if munged != (present := list(_groups(before, form))):
        hint = f"what may not change: {', '.join(islice(_changes(present, munged), _MOST_TOLD))}"
        notes.error(f"spec.{form.groups}", "Invalid value: field is immutable", hint=hint)


def _changes(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[str]:
    """List the changes: replicated jobs added, removed or moved, or else the changed fields."""
    old, new = ({str(group.get("name")): group for group in groups} for groups in (before, after))
    yield from (f"{name} is new" for name in new if name not in old)
    yield from (f"{name} is gone" for name in old if name not in new)
    for name in (name for name in new if name in old):
        yield from (f"{path} of {name}" for path in _differing(old[name], new[name], ""))
    if old == new:
        yield "their order"


def _differing(old: object, new: object, path: str) -> Iterator[str]:
    """Name the innermost fields that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differing(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (old_item, other) in enumerate(zip(old, new, strict=True)):
            yield from _differing(old_item, other, f"{path}[{place}]")
    elif old != new:
        yield path


def _check_fixed(old: Mapping[str, Any], new: Mapping[str, Any], notes: ManifestNotes, form: _Form) -> None:
    before, after = mapping(old, "spec"), mapping(new, "spec")
    for name in form.fixed:
        if before.get(name) != after.get(name):
            notes.error(f"spec.{name}", "Invalid value: Value is immutable")
    queues = [mapping(manifest, "metadata", "labels").get(QUEUE_LABEL) for manifest in (old, new)]
    if queues[0] != queues[1]:
        notes.invalid(f"metadata.labels.{QUEUE_LABEL}", queues[1], "field is immutable")
    awaited = [mapping(manifest, "metadata", "annotations") for manifest in (old, new)]
    for name in (DEPENDS_ON, ON_UNMET, GROUP):
        if awaited[0].get(name) != awaited[1].get(name):
            notes.invalid(f"metadata.annotations.{name}", awaited[1].get(name), "field is immutable")
    if before.get("managedBy") != after.get("managedBy"):
        notes.invalid("spec.managedBy", after.get("managedBy"), "field is immutable")


def _groups(spec: Mapping[str, Any], form: _Form) -> Iterator[dict[str, Any]]:
    groups = spec.get(form.groups)
    return (group for group in (groups if isinstance(groups, list) else ()) if isinstance(group, dict))


def _job(group: dict[str, Any], form: _Form) -> dict[str, Any]:
    return mapping(group, *form.job)


def _check_elastic(
    old: Mapping[str, Any], new: Mapping[str, Any], notes: ManifestNotes, path: str, *, finished: bool
) -> None:
    """Check a change of size: parallelism and completions of an Indexed Job may change together."""
    if new.get("completionMode", "Indexed") != "Indexed" or all(old.get(name) == new.get(name) for name in _ELASTIC):
        return
    if finished:
        state = "when JobSet is in a terminal state (Completed or Failed)"
        notes.error(path, f"Forbidden: Cannot mutate parallelism or completions {state}")
        return
    for name in _ELASTIC:
        if isinstance(new.get(name), int) and new[name] < 1 and old.get(name) != new[name]:
            notes.invalid(f"{path}.{name}", new[name], f"{name} must be >= 1")
    if None not in [new.get(name) for name in _ELASTIC] and new["parallelism"] != new["completions"]:
        message = "completions must be equal to parallelism for Elastic Indexed Jobs"
        notes.invalid(f"{path}.completions", new["completions"], message)


def _munged(old: dict[str, Any], new: dict[str, Any], form: _Form, *, suspended: bool) -> dict[str, Any]:
    """Return the new replicated job with its mutable fields taken from the old one."""
    munged = deepcopy(new)
    job, before = _job(munged, form), _job(old, form)
    if job.get("completionMode", "Indexed") == "Indexed":
        _take(job, before, _ELASTIC)
    if suspended and form is _NATIVE:
        _take(job, before, _NATIVE_WHILE_SUSPENDED)
    elif suspended:
        pod, pod_before = job.setdefault("template", {}), mapping(before, "template")
        for part, names in MUTABLE_WHILE_SUSPENDED:
            inner = pod.setdefault(part, {})
            _take(inner, mapping(pod_before, part), names)
            if not inner and part not in pod_before:
                del pod[part]
    return munged


def _take(into: dict[str, Any], source: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        into.pop(name, None)
        if name in source:
            into[name] = source[name]
