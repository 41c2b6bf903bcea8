"""Reads the files of ``-f``, and traces errors to the line of the file.

The server checks the documents, because it knows what they refer to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.nouns import OF_ENTRIES, OF_WORK, Noun
from holdfast.domain.record import evolve
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.flags import Flags
    from holdfast.cli.nouns import NounName
    from holdfast.dialects.documents import Document
    from holdfast.errors import HoldfastError
    from holdfast.wire.problems import ProblemEntry

API_VERSION = "holdfast.dev/v1"
KINDS = {
    **{kind.manifest: noun for noun, kind in OF_WORK.items() if kind.manifest},
    **{info.manifest: noun for noun, info in OF_ENTRIES.items()},
}
_LARGEST_TEXT = 1 << 30
_LENIENT = "--lenient turns these into warnings"
_LARGEST_TRIED_LENIENTLY = 1 << 20
"""The largest text, in characters, that is read again after an error, to see whether ``--lenient`` would help."""
_ITEM = re.compile(r"items\[(\d+)\]\.?")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a file."""

    file: str
    document: Document

    @property
    def value(self) -> dict[str, Any]:
        """The document, as it is sent."""
        return dict(self.document.value)

    @property
    def noun(self) -> NounName | None:
        """What it describes: a document without a kind is a job in its short form; ``None`` when unknown."""
        return KINDS.get(str(self.document.value.get("kind", "Job")))

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its fields, nested or flat."""
        spec = self.document.value.get("spec")
        return spec if isinstance(spec, Mapping) else self.document.value

    @property
    def is_array(self) -> bool:
        """Whether it is a job that has ``array``, nested or flat."""
        return self.noun == Noun.JOB and self.spec.get("array") is not None

    @property
    def name(self) -> str:
        """Its name, nested or flat; empty when it has none."""
        metadata = self.document.value.get("metadata")
        nested = metadata.get("name") if isinstance(metadata, Mapping) else None
        return str(nested or self.document.value.get("name") or "")

    @property
    def asks_for_name(self) -> bool:
        """Whether it has Kubernetes' ``generateName`` instead of a name."""
        metadata = self.document.value.get("metadata")
        return isinstance(metadata, Mapping) and bool(metadata.get("generateName")) and not self.name

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems that only a lenient reading accepts, with their lines in the file."""
        return tuple(
            evolve(warning, path=f"{self.file}: {warning.path or 'input'}") for warning in self.document.warnings
        )

    def locate(self, problem: Problem) -> Problem:
        """Add the file and its line to a problem; a line that the server reports is one of the request."""
        line = self.document.line_of(problem.path)
        return evolve(problem, path=f"{self.file}: {problem.path or 'document'}", line=line)


def read_manifests(
    files: Sequence[str], cli: Cli, *, allowed: Sequence[NounName], lenient: bool = False
) -> list[Manifest]:
    """Read every document of every file, where ``-`` is standard input, and print the warnings of a lenient reading.

    Raises:
        InvalidManifest: A file cannot be read, is empty, or has a kind that is not allowed.
    """
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    hint: str | None = None
    for file in files:
        try:
            manifests_read = _read(file, cli, lenient=lenient)
        except InvalidManifest as error:
            problems.extend(evolve(problem, path=f"{file}: {problem.path}".rstrip(": ")) for problem in error.problems)
            hint = hint or error.hint
        else:
            usable = _without_others(manifests_read, cli) if lenient else manifests_read
            manifests.extend(usable)
            problems.extend(_unusable(file, usable, allowed))
    if problems:
        raise InvalidManifest(problems=problems, hint=hint)
    for warning in (warning for manifest in manifests for warning in manifest.warnings):
        cli.say(f"warning: {warning}")
    return manifests


def all_after(manifests: Sequence[Manifest], after: Sequence[str]) -> list[Manifest]:
    """Make jobs, arrays and job sets wait for ``after``, in addition to their own dependencies."""
    return [_after(manifest, after) for manifest in manifests] if after else [*manifests]


def _after(manifest: Manifest, after: Sequence[str]) -> Manifest:
    if _is_of_kubernetes(manifest):
        from holdfast.dialects.native.dependencies import DEPENDS_ON

        return _annotated(manifest, DEPENDS_ON, lambda before: ", ".join([*([before] if before else []), *after]))
    present = manifest.spec.get("dependsOn")
    return in_spec(
        manifest,
        {"dependsOn": [*(present if isinstance(present, list) else [] if present is None else [present]), *after]},
    )


def all_in_group(manifests: list[Manifest], group: str | None) -> list[Manifest]:
    """Put jobs, arrays and job sets into ``group``, if it is given, in place of their own."""
    if group is None:
        return manifests
    from holdfast.dialects.native.envelope import GROUP_FIELD
    from holdfast.domain.workloads.jobset.model import GROUP

    return [
        _annotated(manifest, GROUP, lambda _: group)
        if _is_of_kubernetes(manifest)
        else in_spec(manifest, {GROUP_FIELD: group})
        for manifest in manifests
    ]


def _is_of_kubernetes(manifest: Manifest) -> bool:
    return manifest.value.get("apiVersion") in {"batch/v1", "jobset.x-k8s.io/v1alpha2"}


def _annotated(manifest: Manifest, name: str, text: Callable[[str | None], str]) -> Manifest:
    """Replace an annotation by ``text`` of its present value."""
    metadata = manifest.value.get("metadata")
    annotations_before = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not (annotations_before is None or isinstance(annotations_before, Mapping)):
        return manifest  # the server reports what is wrong with it
    before = (annotations_before or {}).get(name)
    annotations = {**(annotations_before or {}), name: text(None if before is None else str(before))}
    value = {**manifest.value, "metadata": {**metadata, "annotations": annotations}}
    return Manifest(manifest.file, evolve(manifest.document, value=value))


def in_spec(manifest: Manifest, changes: Mapping[str, object]) -> Manifest:
    """Set fields of a manifest's spec, nested or flat."""
    spec, value = {**manifest.spec, **changes}, manifest.value
    nested = isinstance(value.get("spec"), Mapping)
    return Manifest(manifest.file, evolve(manifest.document, value={**value, "spec": spec} if nested else spec))


def _without_others(manifests: list[Manifest], cli: Cli) -> list[Manifest]:
    """Skip documents of kinds that Holdfast does not have, with a warning; if none is left, keep all to be refused."""
    usable = [manifest for manifest in manifests if manifest.noun is not None]
    if not usable:
        return manifests
    for other in (manifest for manifest in manifests if manifest.noun is None):
        skipped = Problem("kind", f"{other.value['kind']} is skipped: Holdfast has no such kind")
        cli.say(f"warning: {other.locate(skipped)}")
    return usable


def _read(file: str, cli: Cli, *, lenient: bool) -> list[Manifest]:
    text = cli.stdin.read() if file == "-" else _text_of(file)
    name = "standard input" if file == "-" else file
    return [Manifest(name, document) for document in _documents(text, name, lenient=lenient)]


def _documents(text: str, name: str, *, lenient: bool = False) -> list[Document]:
    from holdfast.dialects.diagnostics import all_problems
    from holdfast.dialects.documents import read_documents

    try:
        return read_documents(text, name=name, largest=_LARGEST_TEXT, lenient=lenient)
    except InvalidManifest as error:
        hint = None if lenient else _hint(text)
        raise InvalidManifest(error.message, problems=all_problems(text, error), hint=hint) from error


def _hint(text: str) -> str | None:
    from holdfast.dialects.documents import read_documents

    if len(text) > _LARGEST_TRIED_LENIENTLY:
        return None
    try:
        return lenient_hint(read_documents(text, lenient=True))
    except InvalidManifest:
        return None


def lenient_hint(documents: Sequence[Document]) -> str | None:
    """Suggest ``--lenient`` for manifests that are accepted with it and refused without it."""
    from holdfast.dialects.manifests import read_one

    if any(read_one(document, lenient=True).manifest is None for document in documents):
        return None
    # A refusal that a strict reading does not explain would remain with --lenient.
    refused = any(document.warnings or read_one(document).manifest is None for document in documents)
    return _LENIENT if refused else None


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InvalidManifest(problems=[Problem("", reason or str(error))]) from error


def _unusable(file: str, manifests: list[Manifest], allowed: Sequence[NounName]) -> list[Problem]:
    if not manifests:
        return [Problem(file, "contains no documents")]
    kinds = tuple(kind for kind, noun in KINDS.items() if noun in allowed)
    return [
        manifest.locate(Problem("kind", f"{manifest.value.get('kind', 'Job')!r} cannot be used here", allowed=kinds))
        for manifest in manifests
        if manifest.noun not in allowed
    ]


def located(error: HoldfastError, manifests: Sequence[Manifest]) -> HoldfastError:
    """Return a server's error about ``manifests`` with file and line added to each problem."""
    return type(error)(
        error.message, problems=[_locate(problem, manifests) for problem in error.problems], hint=error.hint
    )


def located_set(error: HoldfastError, manifests: Sequence[Manifest], *, lenient: bool) -> HoldfastError:
    """Locate a server's error about job sets, and suggest ``--lenient`` where it would help."""
    error_located = located(error, manifests)
    sets = [manifest.document for manifest in manifests if manifest.noun == Noun.JOB_SET]
    if sets and isinstance(error_located, InvalidManifest) and not lenient and (hint := lenient_hint(sets)):
        return InvalidManifest(error_located.message, problems=error_located.problems, hint=hint)
    return error_located


def _locate(problem: Problem, manifests: Sequence[Manifest]) -> Problem:
    item = _ITEM.match(problem.path)
    if item is None:
        return manifests[0].locate(problem) if len(manifests) == 1 else problem
    place = int(item[1])
    return (
        manifests[place].locate(evolve(problem, path=problem.path[item.end() :])) if place < len(manifests) else problem
    )


def tell_warnings(warnings: Sequence[ProblemEntry], source: Manifest | None, cli: Cli) -> None:
    """Print the server's warnings, located in ``source`` if they are about a document of a file."""
    from holdfast.wire.problems import read_problem

    for entry in warnings:
        problem = read_problem(entry)
        cli.say(f"warning: {problem if source is None else source.locate(problem)}")


def read_policy_specs(files: Sequence[str], flags: Flags) -> list[dict[str, Any]]:
    """Read retry policies from files as inline policies, each with its name; problems go to ``flags``."""
    specs: list[dict[str, Any]] = []
    for file in files:
        try:
            documents = _documents(_text_of(file), file)
        except InvalidManifest as error:
            flags.problems.extend(evolve(p, path=f"--policy {file}: {p.path}".rstrip(": ")) for p in error.problems)
            continue
        policies = [document.value for document in documents if document.value.get("kind") == "RetryPolicy"]
        if len(policies) != len(documents) or not policies:
            flags.wrong("--policy", f"{file} may contain only RetryPolicy documents")
        specs.extend(_inline(policy) for policy in policies)
    return specs


def _inline(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a manifest, nested (``metadata``, ``spec``) or flat, into an inline policy."""
    spec, metadata = policy.get("spec"), policy.get("metadata")
    if not isinstance(spec, Mapping):
        return {key: value for key, value in policy.items() if key not in {"apiVersion", "kind"}}
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return {**({"name": name} if name else {}), **spec}
