"""Reads ``dependsOn`` of a job's manifest: what has to happen before the job may start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.dialects.reading import Fields, shown
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.kinds import KINDS
from holdfast.domain.workloads.dependencies import MOST_DEPENDENCIES, Condition, Dependency, OnUnmet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.errors import Problem

FIELD = "dependsOn"
DEPENDS_ON = "holdfast.dev/depends-on"
"""An annotation of what is written as for Kubernetes: texts such as ``prep:ok``, separated by commas."""
ON_UNMET = "holdfast.dev/on-unmet"
"""Another: what becomes of it when one of them can never happen any more."""
BY_INDEX = "index"
"""The word that makes each task wait for the one of its own index."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?")
_LONGEST_NAME = 128
"""Of a name or an id; those of tasks hold those of their arrays."""
_WORDS = (*(condition.value for condition in Condition), BY_INDEX)
_OF_SETS = "annotate the JobSet itself; jobs of it wait for each other by dependsOn"
_NONE = f"say what to wait for with {DEPENDS_ON}"
_FORM = "such as prep, prep:ended, array/sweep or sweep:index"


def read_dependencies(spec: Fields, *, is_array: bool) -> tuple[Dependency, ...]:
    """Read ``dependsOn``: a list of texts such as ``train:ok``, or of mappings; one alone needs no list."""
    value = spec.raw(FIELD)
    if value is None:
        return ()
    listed = value if isinstance(value, list) else [value]
    if len(listed) > MOST_DEPENDENCIES:
        spec.problem(FIELD, f"has {len(listed)} dependencies; at most {MOST_DEPENDENCIES} are allowed")
        return ()
    dependencies = []
    for place, item in enumerate(listed):
        at = f"{FIELD}[{place}]" if isinstance(value, list) else FIELD
        read = _read_mapping(spec, at, item) if isinstance(item, dict) else _read_text(spec, at, item)
        if read is not None:
            _check(spec, at, read, is_array=is_array)
            dependencies.append(read)
    return tuple(dependencies)


def annotated_dependencies(metadata: Fields, annotations: Mapping[str, str]) -> tuple[Dependency, ...]:
    """Read from annotations what has to happen before something may start."""
    texts = [item.strip() for item in annotations.get(DEPENDS_ON, "").split(",") if item.strip()]
    problems: list[Problem] = []
    read = read_dependencies(Fields({FIELD: texts}, "", problems), is_array=False)
    metadata.problems.extend(evolve(item, path=metadata.at(f"annotations.{DEPENDS_ON}")) for item in problems)
    if ON_UNMET not in annotations:
        return read
    at = f"annotations.{ON_UNMET}"
    if not texts:
        metadata.problem(at, "has no effect: nothing is waited for", hint=_NONE)
    on_unmet = Fields({at: annotations[ON_UNMET]}, metadata.path, metadata.problems).choice(at, OnUnmet)
    return tuple(evolve(item, on_unmet=on_unmet or OnUnmet.CANCEL) for item in read)


def refuse_annotated(metadata: Fields, annotations: Mapping[str, str]) -> None:
    """Refuse the annotations where they would have no effect: on a template of a job set's jobs."""
    for name in (DEPENDS_ON, ON_UNMET):
        if name in annotations:
            metadata.problem(f"annotations.{name}", "only a job set as a whole can wait for other work", hint=_OF_SETS)


def readable_dependencies(value: object) -> tuple[Dependency, ...]:
    """Read what can be read of ``dependsOn``; whatever cannot has no name, so that all keep their places."""
    dependencies = []
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        read = read_dependencies(Fields({FIELD: [item]}, "", []), is_array=True)
        dependencies.append(read[0] if read else Dependency(""))
    return tuple(dependencies[:MOST_DEPENDENCIES])


def written_dependencies(manifest: Mapping[str, object]) -> tuple[Dependency, ...]:
    """Read what can be read of what a manifest waits for, whichever its form."""
    spec, metadata = manifest.get("spec", manifest), manifest.get("metadata")
    own = spec.get(FIELD) if isinstance(spec, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(DEPENDS_ON) if isinstance(annotations, dict) else None
    annotated = [item.strip() for item in text.split(",")] if isinstance(text, str) else []
    return (*readable_dependencies(own), *readable_dependencies(annotated))


def _read_mapping(spec: Fields, at: str, value: dict[str, object]) -> Dependency | None:
    part = Fields(value, spec.at(at), spec.problems)
    name = part.text("name", required=True, longest=_LONGEST_NAME)
    condition, on_unmet = part.choice("condition", Condition), part.choice("onUnmet", OnUnmet)
    by_index = part.flag("byIndex")
    part.finish()
    dependency = None if name is None else _named(part, "name", name)
    if dependency is None:
        return None
    return evolve(
        dependency, condition=condition or Condition.OK, on_unmet=on_unmet or OnUnmet.CANCEL, by_index=by_index
    )


def _read_text(spec: Fields, at: str, value: object) -> Dependency | None:
    if not spec.check_text(at, value):
        return None
    name, *words = str(value).split(":")
    for word in words:
        if word not in _WORDS:
            message = f"{shown(word)} is not a condition"
            spec.problem(at, message, allowed=_WORDS, hint=closest(word, _WORDS) or _FORM)
            return None
    conditions = [Condition(word) for word in words if word != BY_INDEX]
    if len(conditions) > 1:
        spec.problem(at, f"{shown(value)} has two conditions", hint="write it twice, with one of them each")
        return None
    dependency = _named(spec, at, name)
    if dependency is None:
        return None
    return evolve(dependency, condition=(conditions or [Condition.OK])[0], by_index=BY_INDEX in words)


def _named(fields: Fields, at: str, text: str) -> Dependency | None:
    kind, slash, name = text.rpartition("/")
    if slash and kind not in KINDS:
        hint = closest(kind, KINDS) or _FORM
        fields.problem(at, f"{shown(kind)} is not a kind of work", allowed=tuple(KINDS), hint=hint)
        return None
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        fields.problem(at, f"{shown(name)} is not the name or the id of any work", hint=_FORM)
        return None
    return Dependency(name, target=kind if slash else None)


def _check(spec: Fields, at: str, read: Dependency, *, is_array: bool) -> None:
    """Check what does not depend on what it names."""
    if read.by_index and not is_array:
        hint = f"leave out {BY_INDEX}, or wait for one task: sweep-3"
        spec.problem(at, "only the tasks of an array can each wait for a task", hint=hint)


def write_dependencies(after: Sequence[Dependency]) -> list[dict[str, object]]:
    """Write dependencies as the mappings they are read from; what is known of each by its id."""
    return [_written(dependency) for dependency in after]


def _written(dependency: Dependency) -> dict[str, object]:
    written: dict[str, object] = {
        "name": dependency.name
        if dependency.target is None
        else f"{dependency.target}/{dependency.id or dependency.name}"
    }
    if dependency.condition is not Condition.OK:
        written["condition"] = dependency.condition.value
    if dependency.on_unmet is not OnUnmet.CANCEL:
        written["onUnmet"] = dependency.on_unmet.value
    if dependency.by_index:
        written["byIndex"] = True
    return written
