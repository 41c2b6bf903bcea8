"""Reads in which group a job, an array or a job set is: ``group``, and where there is no such field an annotation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.reading import Fields
from holdfast.domain.access.group import LONGEST
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem

FIELD = "group"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read_group(spec: Fields) -> str:
    """Read ``group``: any text of one line; empty where there is none."""
    group = spec.text(FIELD, longest=LONGEST) or ""
    if _CONTROL.search(group):
        spec.problem(FIELD, "must not contain control characters", hint="write it in one line")
    return group


def check_annotated_group(metadata: Fields, annotations: Mapping[str, str]) -> None:
    """Note what is wrong with the annotation that says it, if there is one."""
    if GROUP in annotations:
        problems: list[Problem] = []
        read_group(Fields({FIELD: annotations[GROUP]}, "", problems))
        metadata.problems.extend(evolve(problem, path=metadata.at(f"annotations.{GROUP}")) for problem in problems)
