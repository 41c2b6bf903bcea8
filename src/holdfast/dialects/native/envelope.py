"""Reads what native manifests share: the envelope (``apiVersion``, ``kind``, ``metadata``, ``spec``) and ``group``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.reading import LONGEST_NAME, Fields, shown
from holdfast.domain.access.group import LONGEST
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.model import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.errors import Problem

API_VERSION = "holdfast.dev/v1"
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
GROUP_FIELD = "group"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Opened(Struct, frozen=True):
    """The parts of an envelope."""

    metadata: Fields | None
    spec: Fields | None
    """``None`` if it is missing or not a mapping; the problem is noted already."""
    name: str | None


def take_kind(root: Fields) -> None:
    """Consume the two fields that the dispatcher has checked."""
    root.raw("apiVersion")
    root.raw("kind")


def _read_name(metadata: Fields) -> str | None:
    return metadata.name("name", required=True)


def open_envelope(
    root: Fields, *, spec_required: bool = True, read_name: Callable[[Fields], str | None] = _read_name
) -> Opened:
    """Open an envelope with nested ``metadata`` and ``spec``; the caller finishes the two parts."""
    take_kind(root)
    metadata = root.nested("metadata", required=True)
    name = read_name(metadata) if metadata else None
    spec = root.nested("spec", required=spec_required)
    root.finish()
    return Opened(metadata, spec, name)


def close_envelope(opened: Opened) -> None:
    """Report unknown fields of both parts."""
    for part in (opened.metadata, opened.spec):
        if part is not None:
            part.finish()


def read_job_name(metadata: Fields) -> str | None:
    """Read the name of a job or an array."""
    name = metadata.text("name", longest=LONGEST_NAME)
    if name is not None and not (name and LABEL_VALUE.fullmatch(name)):
        rule = "letters, digits, '-', '_' and '.', with a letter or digit first and last"
        metadata.problem("name", f"name {shown(name)} is invalid", hint=rule)
    return name


def read_group(spec: Fields) -> str:
    """Read ``group``: one line of text; empty if there is none."""
    group = spec.text(GROUP_FIELD, longest=LONGEST) or ""
    if _CONTROL.search(group):
        spec.problem(GROUP_FIELD, "must not contain control characters", hint="write it in one line")
    return group


def check_annotated_group(metadata: Fields, annotations: Mapping[str, str]) -> None:
    """Check the annotation for a group, if there is one."""
    if GROUP in annotations:
        problems: list[Problem] = []
        read_group(Fields({GROUP_FIELD: annotations[GROUP]}, "", problems))
        metadata.problems.extend(evolve(problem, path=metadata.at(f"annotations.{GROUP}")) for problem in problems)
