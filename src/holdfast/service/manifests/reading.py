"""Reads manifests from a request's text: JSON, YAML or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.dialects.diagnostics import all_problems
from holdfast.dialects.documents import Document, read_documents
from holdfast.dialects.jobset.wording import Engines, local
from holdfast.dialects.manifests import read_manifest, read_one, try_job
from holdfast.dialects.native import catalogue as native_catalogue
from holdfast.dialects.native.dependencies import FIELD, readable_dependencies
from holdfast.domain.policy.model import RetryPolicy, RetrySettings
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import DEFAULT_QUEUE, JobSpec
from holdfast.errors import HoldfastError, InvalidManifest, InvalidPolicy, InvalidRequest, InvalidSetting, Problem
from holdfast.ports.entries import kind_of
from holdfast.service.jobsets.sets import name_of
from holdfast.service.manifests.text import Format, Text, refuse
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from holdfast.domain.access.grants import Access
    from holdfast.domain.terms.entries import EntryInfo
    from holdfast.ports.entries import Entry

T = TypeVar("T")


def documents_of(body: Text, *, lenient: bool = False) -> list[Document]:
    """Read the documents of a body; ``lenient`` accepts duplicate keys and unfilled placeholders.

    Raises:
        InvalidManifest: It is not of its type, or holds none.
    """
    if body.format is Format.JSON:
        _check_json(body.text)
    try:
        documents = read_documents(body.text, name="the body", lenient=lenient)
    except InvalidManifest as error:
        raise InvalidManifest(error.message, problems=all_problems(body.text, error)) from error
    if not documents:
        refuse("is empty", hint="send a manifest")
    return documents


def _check_json(text: str) -> None:
    """Make sure a JSON body is JSON: the YAML reader accepts much else."""
    try:
        json.loads(text, parse_int=str)  # the reader checks numbers, and reports their places
    except json.JSONDecodeError as error:
        hint = "send many documents as application/x-ndjson" if error.msg == "Extra data" else None
        refuse(f"is not JSON: {error.msg}", line=error.lineno, hint=hint)
    except RecursionError:
        refuse("is nested too deep")


def one_document(body: Text, *, lenient: bool = False) -> Document:
    """Read the only document of a body.

    Raises:
        InvalidManifest: It is not of its type, or does not hold exactly one.
    """
    documents = documents_of(body, lenient=lenient)
    if len(documents) > 1:
        refuse(f"has {len(documents)} documents", hint="send one at a time")
    return documents[0]


def document_named(body: Text, name: str, *, lenient: bool = False) -> Document:
    """Read the only document of a body, which must have a name.

    Raises:
        InvalidManifest: It has another name.
    """
    document = one_document(body, lenient=lenient)
    if (written := name_of(document)) != name:
        raise InvalidManifest(problems=[_not_named(written, name)])
    return document


def _not_named(written: str | None, name: str) -> Problem:
    return Problem("metadata.name", f"{written!r} is not the name in the address", allowed=(name,))


def manifest_of(body: Text, kind: type[T], *, name: str | None = None) -> T:
    """Read the only manifest of a body, which must have a kind and, if given, a name.

    Raises:
        InvalidManifest: It has not; ``InvalidPolicy`` if ``kind`` is a policy.
    """
    try:
        manifest = read_manifest(one_document(body))
    except InvalidManifest as error:
        raise _as_error_of(kind)(problems=error.problems, hint=error.hint) from error
    if not isinstance(manifest, kind):
        expected = _KIND_NAMES[kind]
        problem = Problem("kind", f"{_KIND_NAMES[type(manifest)]!r} is not accepted here", allowed=(expected,))
        raise _as_error_of(kind)(problems=[problem])
    written = getattr(manifest, "name", None)
    if name is not None and written != name:
        raise _as_error_of(kind)(problems=[_not_named(written, name)])
    return manifest


_KIND_NAMES: dict[type, str] = {
    JobSpec: "Job",
    ArraySpec: "Job",
    JobSetSpec: "JobSet",
    **{kind_of(info).model: info.manifest for info in ENTRIES.values()},
}


def read_settings(body: Text) -> tuple[RetrySettings, str | None, Access]:
    """Read the operators' settings, the name of the default policy, and the access settings.

    Raises:
        InvalidSetting: They are not valid; with every problem found.
    """
    try:
        return native_catalogue.read_settings(one_document(body).value)
    except InvalidRequest as error:
        raise InvalidSetting(problems=error.problems) from error


def _as_error_of(kind: type) -> type[HoldfastError]:
    return InvalidPolicy if kind is RetryPolicy else InvalidManifest


def bulk_items(
    documents: list[Document], *, lenient: bool = False, engines: Engines = local
) -> list[WrittenJob | HoldfastError] | None:
    """Read a bulk submission: a job or an error for each item; ``None`` if it is a single job.

    Raises:
        InvalidRequest: ``items`` is not a list, or not the only field.
    """
    items = several(documents)
    if items is None:
        return None
    alike = _Alike(lenient=lenient, engines=engines)
    return [alike.read(item) if type(item) is dict else _item_of(item, engines, lenient=lenient) for item in items]


class _Alike:
    """Reads equal items only once, as people send thousands; an item that differs costs little more."""

    def __init__(self, *, lenient: bool, engines: Engines) -> None:
        self._lenient, self._engines = lenient, engines
        self._first: dict[str | None, tuple[dict[str, Any], WrittenJob]] = {}
        """The first item of each name; texts are compared only when a name comes again."""
        self._by_text: dict[str, WrittenJob] = {}
        """By their texts, those of names that came again."""

    def read(self, item: dict[str, Any]) -> WrittenJob | HoldfastError:
        """Read an item, or return the job of an equal one."""
        name = item.get("name")
        if not isinstance(name, str | None) or name not in self._first:
            written = self._read(item)
            if (
                isinstance(written, WrittenJob)
                and written.error is None
                and written.array is None
                and isinstance(name, str | None)
            ):
                self._first[name] = item, written
            return written
        first, its = self._first[name]
        if first:
            self._by_text[repr(first)], self._first[name] = its, ({}, its)
        alike = repr(item)
        kept = self._by_text.get(alike)
        if kept is not None:
            return kept
        written = self._read(item)
        if isinstance(written, WrittenJob) and written.error is None and written.array is None:
            self._by_text[alike] = written
        return written

    def _read(self, item: dict[str, Any]) -> WrittenJob | HoldfastError:
        return _item_of(item, self._engines, lenient=self._lenient)


def several(documents: list[Document]) -> Sequence[Any] | None:
    """Return the items of a body; ``None`` if it is a single manifest.

    Raises:
        InvalidRequest: ``items`` is not a list, or not the only field.
    """
    if len(documents) > 1:
        return documents
    value = documents[0].value
    if "items" not in value:
        return None
    problems = [
        Problem(str(field), "cannot be used with items", allowed=("items",)) for field in value if field != "items"
    ]
    if not isinstance(value["items"], list):
        problems.append(Problem("items", "must be a list of manifests"))
    if problems:
        raise InvalidRequest(problems=problems)
    items: Sequence[Any] = value["items"]
    return items


def _item_of(item: Any, engines: Engines, *, lenient: bool) -> WrittenJob | HoldfastError:  # noqa: ANN401 - an item may be anything
    if not isinstance(item, (dict, Document)):
        return no_mapping(item)
    return job_item(item, engines, lenient=lenient)


def job_item(item: Document | Mapping[str, Any], engines: Engines, *, lenient: bool) -> WrittenJob:
    """Read a job or an array, even if it is not valid; see ``written_job``."""
    if not has_array(item):
        return written_job(item, lenient=lenient, engines=engines)
    try:
        return written_array(item, engines)
    except InvalidManifest as error:
        value = item.value if isinstance(item, Document) else item
        return _unread(value, error)


def has_array(item: Document | Mapping[str, Any]) -> bool:
    """Whether a manifest is an array: a job with ``array``, nested or flat."""
    value = item.value if isinstance(item, Document) else item
    spec = value.get("spec", value)
    return value.get("kind", "Job") == "Job" and isinstance(spec, Mapping) and spec.get("array") is not None


def written_array(item: Document | Mapping[str, Any], engines: Engines) -> WrittenJob:
    """Read a manifest that must be an array.

    Raises:
        InvalidManifest: It is not.
    """
    reading = read_one(item, engines=engines)
    if reading.manifest is None:
        raise InvalidManifest(problems=reading.problems)
    if not isinstance(reading.manifest, ArraySpec):
        problem = Problem("spec.array", "is required", hint="a job without array is sent to /jobs")
        raise InvalidManifest(problems=[problem])
    value = item.value if isinstance(item, Document) else item
    manifest, flat = json.dumps(value, sort_keys=True), is_flat(value)
    return WrittenJob(reading.manifest.job, None, flat, reading.warnings, reading.manifest, manifest)


def is_flat(value: Mapping[str, Any]) -> bool:
    """Whether a job is in the short form."""
    return "spec" not in value and "metadata" not in value


def no_mapping(item: object) -> InvalidManifest:
    """Return the error for an item that cannot be a manifest."""
    return InvalidManifest(problems=[Problem("", f"a manifest is a mapping of fields, not {type(item).__name__}")])


def entry_manifest(item: Document | Mapping[str, Any], info: EntryInfo) -> Entry:
    """Read a manifest that must be of a kind of entry.

    Raises:
        InvalidManifest: It is not; ``InvalidPolicy`` of a retry policy.
    """
    reading = read_one(item)
    kind = kind_of(info)
    if not isinstance(reading.manifest, kind.model):
        raise _as_error_of(kind.model)(problems=reading.problems)
    entry: Entry = reading.manifest
    return entry


def written_job(
    document: Document | Mapping[str, Any], *, lenient: bool = False, engines: Engines = local
) -> WrittenJob:
    """Read a job; of an invalid one, only the names it refers to, so that all problems can be reported at once."""
    value = document.value if isinstance(document, Document) else document
    flat = is_flat(value)
    reading = try_job(document, lenient=lenient, engines=engines)
    if isinstance(reading.manifest, JobSpec):
        return WrittenJob(reading.manifest, flat=flat, warnings=reading.warnings)
    return _unread(value, InvalidManifest(problems=reading.problems))


def _unread(value: Mapping[str, Any], error: InvalidManifest) -> WrittenJob:
    flat = is_flat(value)
    return WrittenJob(
        _named(value if flat else value.get("spec"), value if flat else value.get("metadata")), error, flat
    )


def _named(fields: object, metadata: object) -> JobSpec:
    """Read a job's name, and the names of its queue, policies and dependencies, as far as they are valid."""
    mapping = fields if isinstance(fields, Mapping) else {}
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    queue, policies = mapping.get("queue"), mapping.get("retryPolicies")
    names = [name if isinstance(name, str) else None for name in policies] if isinstance(policies, list) else []
    return JobSpec(
        name=name if isinstance(name, str) and name else "unread",
        command=("unread",),
        queue=queue if isinstance(queue, str) and queue else DEFAULT_QUEUE,
        retry_policies=tuple(name for name in names if name) if all(names) else (),
        after=readable_dependencies(mapping.get(FIELD)),
    )
