"""The jobs of the demo and what must become of each; leaves running and showing them to the others."""

from __future__ import annotations

import string
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.dialects.documents import read_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.wire.jobs import JobView
    from holdfast.wire.jobsets import JobSetSummary

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class Expected:
    """What must become of a job."""

    state: str = "Succeeded"
    attempts: int = 1
    code: str | None = None
    """Of its last decision; ``None``: it never failed."""


STORIES: Mapping[str, Expected] = {
    "copy-database": Expected("Succeeded", 3, "retry"),
    "build-index": Expected("Succeeded", 2, "retry"),
    "count-primes-wrongly": Expected("Failed", 1, "fail_rule"),
    "train-together": Expected("Succeeded", 2, "retry"),
    "simulate-slowly": Expected("Failed", 1, "fail_rule"),
    "publish-report": Expected("Held", 1, "hold"),
    "estimate-pi": Expected("Succeeded", 2, "retry"),
    "reach-archive": Expected("Failed", 3, "fail_policy_limit"),
}
SETS: Mapping[str, tuple[str, int]] = {"fine-tune": ("Completed", 1), "sweep": ("Failed", 1)}
"""How each job set must end, and how many restarts must count."""
EXPLAINED = "build-index"
"""The job whose ``why`` is printed."""


def catalogue() -> list[Mapping[str, Any]]:
    """Return what an operator applies first."""
    return _manifests("catalogue.yaml")


def jobs() -> list[Mapping[str, Any]]:
    """Return every job, with this machine's paths filled in."""
    return [*_manifests("stories.yaml"), *_manifests("crunch.jsonl")]


def job_sets() -> list[Mapping[str, Any]]:
    """Return the job sets."""
    return _manifests("jobsets.yaml")


def _manifests(name: str) -> list[Mapping[str, Any]]:
    paths = {"PYTHON": sys.executable, "PROGRAMS": str(EXAMPLES / "programs")}
    text = string.Template((EXAMPLES / "demo" / name).read_text()).substitute(paths)
    return [document.value for document in read_documents(text, name=name)]


def surprises(found: Iterable[JobView], sets: Iterable[JobSetSummary]) -> list[str]:
    """Say which jobs and job sets did not end as they must."""
    said = [
        f"{one.name}: expected {SETS[one.name]}, was {one.state} after {one.restarts_counted} restarts: {one.message}"
        for one in sets
        if SETS[one.name] != (one.state, one.restarts_counted)
    ]
    for job in found:
        expected = STORIES.get(job.name, Expected())
        code = next((one.decision.code for one in reversed(job.attempts) if one.decision), None)
        actual = Expected(job.state, len(job.attempts), code)
        if actual != expected:
            said.append(f"{job.name}: expected {expected}, was {actual}: {job.reason}")
    return said
