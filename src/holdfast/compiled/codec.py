"""Writes compiled specifications and catalogue entries as canonical JSON, and reads them back.

Fields with their default are left out, and every text begins with its version. Only texts of this version are read
here: ``db upgrade`` rewrites older ones. A field may be added without a new version; renaming one, or changing its
meaning or default, needs a new version and a migration.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from holdfast.compiled.records import decoder_of, non_defaults
from holdfast.domain.access.grants import Access
from holdfast.domain.category import FailureCategory
from holdfast.domain.classify import CompiledCategories
from holdfast.domain.file_settings import FileSettings  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import RetryPolicy, RetrySettings
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.spec import JobSpec, KubeJob
from holdfast.errors import InvalidPolicy, UnreadableSpec

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.state import JobSet

T = TypeVar("T")
VERSION = 1
_PREFIX = f'{{"version":{VERSION},"spec":'
_OF_SOME_VERSION = re.compile(r'\{"version":\d+,"spec":')
LOSE_OR_RESTORE = "the database is damaged: restore it from a backup, or cancel or delete what cannot be read"
_CACHED = 16_384
_CACHED_SETS = 1024
_ENCODER = msgspec.json.Encoder(order="deterministic")


class SetChange(Struct, frozen=True):
    """The desired new specification of a job set."""

    manifest: str
    spec: str
    """The manifest that it was compiled from."""


class OperatorSettings(Struct, frozen=True):
    """The operator's settings."""

    settings: RetrySettings = field(default_factory=RetrySettings)
    default_policy: str | None = None
    access: Access = Access()
    configured: FileSettings | None = None
    """Settings from a file, which take precedence."""


def dump_spec(spec: object) -> str:
    """Write a specification of any kind of workload."""
    return f"{_PREFIX}{_ENCODER.encode(_plain(spec)).decode()}}}"


def load_as(kind: type[T], text: str) -> T:
    """Read a specification of a kind, written by ``dump_spec``.

    Raises:
        UnreadableSpec: It is invalid, or of another version.
    """
    if not text.startswith(_PREFIX):
        if _OF_SOME_VERSION.match(text):
            msg = f"a stored specification is not of version {VERSION}: {text[:40]}"
            raise UnreadableSpec(msg, hint="holdfast db upgrade")
        begins = f"it begins with {text[:40]!r}"
        raise _damaged(begins)
    try:
        return decoder_of(kind).decode(text[len(_PREFIX) : -1])
    except msgspec.MsgspecError as error:
        raise _damaged(error) from error


def _damaged(why: object, what: str = "specification") -> UnreadableSpec:
    return UnreadableSpec(f"a stored {what} cannot be read: {why}", hint=LOSE_OR_RESTORE)


def load_manifest(text: str) -> dict[str, Any]:
    """Read a stored manifest.

    Raises:
        UnreadableSpec: It is damaged.
    """
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise _damaged(error, "manifest") from error


@lru_cache(maxsize=_CACHED)
def load_spec(text: str) -> JobSpec:
    """Read a job's specification written by ``dump_spec``; equal texts share one object.

    Raises:
        UnreadableSpec: It is invalid, or of another version.
    """
    return load_as(JobSpec, text)


def load_kube(text: str) -> KubeJob | None:
    """Read the pods of a specification; ``None`` if it has none or is of another version."""
    return load_spec(text).kube if '"kube":' in text and text.startswith(_PREFIX) else None


def dump_set_spec(spec: JobSetSpec) -> str:
    """Write a job set's specification."""
    return dump_spec(spec)


@lru_cache(maxsize=_CACHED_SETS)
def load_set_spec(text: str) -> JobSetSpec:
    """Read a specification written by ``dump_set_spec``; equal texts share one object.

    Raises:
        UnreadableSpec: It is invalid, or of another version.
    """
    return load_as(JobSetSpec, text)


@lru_cache(maxsize=_CACHED_SETS)
def load_array(text: str) -> ArraySpec:
    """Read an array's specification written by ``dump_spec``; equal texts share one object.

    Raises:
        UnreadableSpec: It is invalid, or of another version.
    """
    return load_as(ArraySpec, text)


def dump_entry(entry: object) -> str:
    """Write an entry of the catalogue; a policy includes its revision."""
    return dump_spec(entry)


def load_entry(kind: type[T], text: str) -> T:
    """Read an entry written by ``dump_entry``; equal texts share one object.

    Raises:
        UnreadableSpec: It is invalid, or of another version.
    """
    entry_read: T = _load_entry(cast("Any", kind), text)
    return entry_read


@lru_cache(maxsize=_CACHED)
def _load_entry(kind: type[Any], text: str) -> Any:  # noqa: ANN401 - a cache knows no type variable
    entry = load_as(kind, text)
    try:  # Later users could not tell which entry a broken pattern belongs to.
        if isinstance(entry, RetryPolicy):
            PolicySet.compile([entry])
        elif isinstance(entry, FailureCategory):
            CompiledCategories.compile([entry])
    except InvalidPolicy as error:
        msg = f"a stored entry cannot be used: {error.problems[0].message}"
        raise UnreadableSpec(msg) from error
    return entry


def set_spec_of(job_set: JobSet) -> JobSetSpec:
    """Return a job set's specification; an empty one if the set has ended and it cannot be read any more.

    Raises:
        UnreadableSpec: It cannot be read, and the set has not ended.
    """
    if job_set.state.terminal and not job_set.spec:
        return JobSetSpec(name=job_set.name)
    return load_set_spec(job_set.spec)


def dump_change(change: SetChange) -> str:
    """Write a change of a job set for its request."""
    return _ENCODER.encode(change).decode()


def suspending(job_set: JobSet, *, suspend: bool) -> str | None:
    """Return the change that suspends or resumes a set; ``None`` if there is nothing to change."""
    spec = load_set_spec(job_set.spec)
    if spec.suspend is suspend:
        return None
    compiled = dump_set_spec(evolve(spec, suspend=suspend))
    return dump_change(SetChange(with_suspend(job_set.manifest, suspend=suspend), compiled))


def with_suspend(manifest: str, *, suspend: bool) -> str:
    """Return a stored manifest with ``suspend`` set or removed."""
    document = load_manifest(manifest)
    document.setdefault("spec", {})["suspend"] = suspend
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def load_change(text: str) -> SetChange:
    """Read a change written by ``dump_change``.

    Raises:
        UnreadableSpec: It is damaged.
    """
    try:
        return decoder_of(SetChange).decode(text)
    except msgspec.MsgspecError as error:
        raise _damaged(error, "change") from error


def _plain(value: object) -> object:
    """Leave out fields with their default, at every depth."""
    if isinstance(value, Struct):
        return {name: _plain(part) for name, part in non_defaults(value).items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value
