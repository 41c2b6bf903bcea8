"""Reads Jobs (``batch/v1``): a manifest of its own, or the template of a replicated job.

Checks and messages are the Job API's. A Job template in a set is checked at submission; upstream finds out only when it
creates the Job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset import wording
from holdfast.dialects.jobset.pod_policy import read_failure_rules, read_success_rules
from holdfast.dialects.jobset.pod_template import RETRY_POLICIES, PodTemplate, read_pod_template
from holdfast.dialects.jobset.program import read_program
from holdfast.dialects.jobset.values import count, domain_prefixed_path, one_of, or_default
from holdfast.domain.job import Resources
from holdfast.domain.record import Struct
from holdfast.domain.workloads.kubejob.model import (
    DEFAULT_BACKOFF_LIMIT,
    UNLIMITED,
    CompletionMode,
    KubeJobSpec,
    PodReplacement,
    RestartPolicy,
)
from holdfast.domain.workloads.kubejob.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.dialects.reading import Fields
    from holdfast.domain.workloads.kubejob.model import PodRule

API_VERSION = "batch/v1"
LONGEST_MANAGED_BY = 63
MOST_PARALLEL_INDEXED = 100_000
MOST_FAILED_INDEXES = 100_000
MANY_COMPLETIONS = 100_000
"""With more completions, a back-off limit per index has tighter bounds."""
TIGHTER_LIMIT = 10_000


class JobDefaults(Struct, frozen=True, kw_only=True):
    """Defaults of a Job; those in sets differ from those of plain Jobs."""

    mode: CompletionMode = CompletionMode.NON_INDEXED
    restart_policy: str = ""


PLAIN = JobDefaults()
IN_A_SET = JobDefaults(mode=CompletionMode.INDEXED, restart_policy=RestartPolicy.ON_FAILURE)


def annotated_policies(metadata: Fields, annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Read the retry policies that an annotation names; a repeated name counts at its first place."""
    names = dict.fromkeys(name.strip() for name in annotations.get(RETRY_POLICIES, "").split(",") if name.strip())
    for name in names:
        metadata.check_name(f"annotations.{RETRY_POLICIES}", name)
    return tuple(names)


class ReadJob(Struct, frozen=True):
    """A Job's specification, and the parts of its pod template that its set checks."""

    spec: KubeJobSpec
    program: Program
    pod: PodTemplate
    parallelism: int | None
    completions: int | None
    """Both as written; ``None`` if absent."""
    replacement: str | None
    backoff_limit: int | None


def read_job_spec(fields: Fields, notes: ManifestNotes, defaults: JobDefaults = PLAIN) -> ReadJob:
    """Read a Job's ``spec``, and finish the reader."""
    mode = one_of(fields, notes, "completionMode", CompletionMode) or defaults.mode
    indexed = mode is CompletionMode.INDEXED
    parallelism, completions = count(fields, notes, "parallelism"), count(fields, notes, "completions")
    per_index, max_failed = count(fields, notes, "backoffLimitPerIndex"), count(fields, notes, "maxFailedIndexes")
    limit = count(fields, notes, "backoffLimit")
    _check_indexes(fields, notes, indexed=indexed)
    pod = read_pod_template(fields, notes)
    rules = read_failure_rules(fields, notes, containers=pod.containers, per_index=fields.has("backoffLimitPerIndex"))
    restart = _read_restart_policy(fields, notes, pod.restart_policy or defaults.restart_policy)
    replacement = _read_replacement(fields, notes)
    spec = KubeJobSpec(
        parallelism=or_default(parallelism, 1),
        completions=default_completions(completions, parallelism, indexed=indexed),
        mode=mode,
        backoff_limit=or_default(limit, default_backoff_limit(per_index)),
        backoff_limit_per_index=per_index,
        max_failed_indexes=max_failed,
        failure_rules=rules,
        success_rules=read_success_rules(fields, notes, completions=completions, indexed=indexed),
        replacement=replacement or (PodReplacement.TERMINATING_OR_FAILED if rules is None else PodReplacement.FAILED),
        active_deadline_s=_seconds(count(fields, notes, "activeDeadlineSeconds")),
        ttl_s=_seconds(count(fields, notes, "ttlSecondsAfterFinished")),
        suspend=fields.flag("suspend"),
        restart_policy=restart or RestartPolicy.NEVER,
        managed_by=read_managed_by(fields, notes),
    )
    for ignored in ("selector", "manualSelector"):
        fields.raw(ignored)
    fields.finish()
    program = compiled_program(fields.raw("template"), notes, fields.at("template.spec"))
    if not notes.problems:
        _warn_of_absent(rules or (), program, fields, notes)
    return ReadJob(spec, program, pod, parallelism, completions, replacement, limit)


def _warn_of_absent(rules: Sequence[PodRule], program: Program, fields: Fields, notes: ManifestNotes) -> None:
    """Warn of rules about unknown containers, which a lenient reading leaves out."""
    run = {container.container for container in program.containers}
    for place, rule in enumerate(rules):
        if rule.container_name is not None and rule.container_name not in run:
            where = fields.at(f"podFailurePolicy.rules[{place}].onExitCodes.containerName")
            notes.warn(where, f"never matches: container {rule.container_name!r} is not run here")


def compiled_program(
    template: object,
    notes: ManifestNotes,
    path: str,
    default: Resources = Resources(0),
) -> Program:
    """Compile a pod template, unless the manifest has errors.

    Args:
        template: The template.
        notes: Where to add problems and warnings.
        path: The path of its pod.
        default: The requests of a container without any.
    """
    if notes.problems or not isinstance(template, dict):
        return Program()
    read = notes.programs[path] = read_program(template, notes.is_counted, default)
    if not notes.lenient:
        return read.program
    return read.program.within(read.program.closest(notes.engines()).capabilities)


def _seconds(value: int | None) -> float | None:
    return None if value is None else float(value)


def default_backoff_limit(per_index: int | None) -> int:
    """Return the default back-off limit, which depends on the limit per index."""
    return DEFAULT_BACKOFF_LIMIT if per_index is None else UNLIMITED


def default_completions(completions: int | None, parallelism: int | None, *, indexed: bool) -> int | None:
    """Return a Job's completions: 1 if parallelism is missing, too; otherwise it is a work queue."""
    if completions is not None:
        return completions
    return 1 if parallelism is None or indexed else None


def _check_indexes(fields: Fields, notes: ManifestNotes, *, indexed: bool) -> None:
    written: Mapping[str, Any] = fields.value
    if "maxFailedIndexes" in written and "backoffLimitPerIndex" not in written:
        notes.required(fields.at("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if not indexed:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if fields.has(name):
                notes.invalid(fields.at(name), written[name], "requires indexed completion mode")
        return
    # If both are missing, the API's defaults make both 1 before any check (SetDefaults_Job).
    if not fields.has("completions") and fields.has("parallelism"):
        notes.required(fields.at("completions"), f"when completion mode is {CompletionMode.INDEXED}")
    _check_sizes(fields, notes)


def _check_sizes(fields: Fields, notes: ManifestNotes) -> None:
    parallelism, completions, failed = (
        _number(fields, name) for name in ("parallelism", "completions", "maxFailedIndexes")
    )
    if parallelism > MOST_PARALLEL_INDEXED:
        most = f"must be less than or equal to {MOST_PARALLEL_INDEXED} when completion mode is {CompletionMode.INDEXED}"
        notes.invalid(fields.at("parallelism"), parallelism, most)
    if fields.has("completions") and failed > completions:
        notes.invalid(fields.at("maxFailedIndexes"), failed, "must be less than or equal to completions")
    if failed > MOST_FAILED_INDEXES:
        notes.invalid(fields.at("maxFailedIndexes"), failed, f"must be less than or equal to {MOST_FAILED_INDEXES}")
    if completions <= MANY_COMPLETIONS or not fields.has("backoffLimitPerIndex"):
        return
    if not fields.has("maxFailedIndexes"):
        notes.required(fields.at("maxFailedIndexes"), f"must be specified when completions is above {MANY_COMPLETIONS}")
    tight = (
        f"must be less than or equal to {TIGHTER_LIMIT} when completions are above {MANY_COMPLETIONS} and used with "
        "backoff limit per index"
    )
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value > TIGHTER_LIMIT:
            notes.invalid(fields.at(name), value, tight)


def _number(fields: Fields, name: str) -> int:
    value = fields.value.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _read_restart_policy(fields: Fields, notes: ManifestNotes, value: str) -> RestartPolicy | None:
    path = fields.at("template.spec.restartPolicy")
    never, on_failure = RestartPolicy.NEVER.value, RestartPolicy.ON_FAILURE.value
    if value in {"", "Always"}:
        notes.required(path, f'valid values: "{on_failure}", "{never}"')
        return None
    if value not in {never, on_failure}:
        notes.not_supported(path, value, [on_failure, never])
        return None
    if fields.has("podFailurePolicy") and value != never:
        notes.invalid(path, value, f'only "{never}" is supported when podFailurePolicy is specified')
    return RestartPolicy(value)


def _read_replacement(fields: Fields, notes: ManifestNotes) -> PodReplacement | None:
    value = fields.raw("podReplacementPolicy")
    if value is None:
        return None
    supported = [PodReplacement.FAILED.value]
    if not fields.has("podFailurePolicy"):
        supported.append(PodReplacement.TERMINATING_OR_FAILED.value)
    if value not in supported:
        notes.not_supported(fields.at("podReplacementPolicy"), value, supported)
        return None
    return PodReplacement(str(value))


def read_managed_by(fields: Fields, notes: ManifestNotes) -> str | None:
    """Read ``managedBy``: the controller of the object, if it is not Holdfast."""
    value = fields.text("managedBy")
    if value is None:
        return None
    path = fields.at("managedBy")
    for message in domain_prefixed_path(value):
        notes.forgivable(path, f"Invalid value: {wording.shown(value)}: {message}")
    if len(value) > LONGEST_MANAGED_BY:
        notes.error(path, f"Too long: may not be more than {LONGEST_MANAGED_BY} bytes")
    return value
