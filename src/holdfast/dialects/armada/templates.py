"""Replaces ``{JobId}`` in a job's labels and annotations by its id.

Source: upstream's post-processing of submissions, which does so in no other field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.workloads.spec import JobSpec

_NAME = "JobId"
_TEMPLATE = re.compile(r"\{\{JobId\}\}|\{JobId\}")


def names_job_id(spec: JobSpec) -> bool:
    """Whether a specification contains the id of its job."""
    return any(_TEMPLATE.search(text) for texts in (spec.labels, spec.annotations) for text in texts.values())


def with_job_id(spec: JobSpec, job_id: str) -> JobSpec:
    """Return a specification with the job's id filled in, also where it is shown."""
    labels, annotations = _filled(spec.labels, job_id), _filled(spec.annotations, job_id)
    pod = spec.pod
    if pod is not None:
        metadata = ((name, pod.written.get(name)) for name in ("labels", "annotations"))
        shown = {name: _filled(texts, job_id) for name, texts in metadata if texts}
        pod = evolve(pod, written={**pod.written, **shown})
    return evolve(spec, labels=labels, annotations=annotations, pod=pod)


def _filled(texts: Mapping[str, str], job_id: str) -> dict[str, str]:
    """Replace ``{JobId}`` by the id, and ``{{JobId}}`` by ``{JobId}``, as upstream does."""

    def meant(match: re.Match[str]) -> str:
        return _NAME if match[0].startswith("{{") else job_id

    return {key: _TEMPLATE.sub(meant, text) for key, text in texts.items()}
