"""Checks which job sets and Jobs are accepted, and with which words others are refused."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import read_documents
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.errors import InvalidManifest
from tools.cases.jobset_manifest import job_manifest, jobset_manifest
from tools.cases.kube_reading import read_kube
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.cases.results import Case

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def check(case: Case) -> list[Mismatch]:
    """Check one case."""
    expect = case["expect"]
    if "feature gate" in str(expect.get("error")):
        msg = (
            "upstream refuses this while an alpha feature gate is off; Holdfast has no gates, the feature is always on"
        )
        raise Skip(msg)
    problems = _problems(case)
    if not expect["rejected"] and problems and any("cannot depend on" in problem for problem in problems):
        msg = "refused at submission, as the case's own note asks: upstream overlooks it and the job never starts"
        raise Skip(msg)
    if bool(problems) != expect["rejected"]:
        return [Mismatch("rejected", expect["rejected"], problems)]
    error = expect.get("error")
    if error and not any(error in problem for problem in problems):
        return [Mismatch("error", error, problems)]
    return []


def _problems(case: Case) -> list[str]:
    compact = case["jobset"]
    if "yaml" in compact:
        return _refusals(lambda: read_documents(compact["yaml"]))
    manifest = job_manifest(case) if "job" in compact else jobset_manifest(case)
    problems = _refusals(lambda: read_kube(manifest))
    finished = False
    for step in case["event"]:
        if step["do"] in {"completed", "failed"}:
            finished = True
        elif step["do"] == "update":
            changed = updated(manifest, step)
            problems += check_change(manifest, changed, finished=finished)
            manifest = changed
        elif step["do"] != "submit":
            msg = f"no checker knows the event {step['do']!r} of a validation"
            raise Skip(msg)
    return problems


def _refusals(read: Any) -> list[str]:  # noqa: ANN401 - any reader without arguments
    try:
        read()
    except InvalidManifest as error:
        return [str(problem) for problem in error.problems]
    return []


def check_change(old: Mapping[str, Any], new: Mapping[str, Any], *, finished: bool = False) -> list[str]:
    """Return what is wrong with a change of a manifest."""
    notes = ManifestNotes()
    check_update(old, new, notes, finished=finished)
    return [str(problem) for problem in notes.problems]


def updated(manifest: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with a step's change: one field by path, or the size of every replicated job."""
    changed = copy.deepcopy(dict(manifest))
    if "path" in step:
        _put(changed, step["path"], step.get("value"))
        return changed
    for group in changed["spec"]["replicatedJobs"]:
        group["template"]["spec"].update({key: value for key, value in step.items() if key != "do"})
    return changed


def _put(manifest: dict[str, Any], path: str, value: object) -> None:
    place: Any = manifest
    steps = [name or int(index) for name, index in _STEP.findall(path)]
    for step in steps[:-1]:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    place[steps[-1]] = value
