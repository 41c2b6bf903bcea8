"""Reads a manifest of a job set or a Job by itself, as cases give them: without whether any engine can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import Document
from holdfast.dialects.jobset.reading import READERS
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.manifests import located
from holdfast.domain.record import Struct
from holdfast.errors import InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.dialects.jobset.reading import KubeManifest


class ReadKube(Struct, frozen=True):
    """An accepted manifest and its warnings."""

    manifest: KubeManifest
    warnings: tuple[Problem, ...] = ()


def read_kube(document: Document | Mapping[str, Any], *, lenient: bool = False) -> ReadKube:
    """Read one manifest.

    Args:
        document: The manifest as written.
        lenient: Accept what upstream accepts, each time with a warning.

    Raises:
        InvalidManifest: With every problem found.
    """
    value = document.value if isinstance(document, Document) else document
    notes = ManifestNotes(lenient=lenient)
    kind = (str(value.get("apiVersion")), str(value.get("kind")))
    reader = READERS.get(kind)
    if reader is None:
        supported = tuple("/".join(pair) for pair in READERS)
        message = f"{kind[0]} {kind[1]} is neither a JobSet nor a Job"
        raise InvalidManifest(problems=[Problem("kind", message, supported)])
    found = reader(value, notes)
    if found is None or notes.problems:
        raise InvalidManifest(problems=[located(problem, document) for problem in notes.problems])
    before = document.warnings if isinstance(document, Document) else ()
    return ReadKube(found, (*before, *(located(warning, document) for warning in notes.warnings)))
