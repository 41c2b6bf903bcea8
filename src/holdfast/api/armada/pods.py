"""The names of pods."""

from __future__ import annotations

from functools import partial

from holdfast.domain.workloads import spec
from holdfast.service.manifests.armada import POD_NAMES

NAMESPACE = "default"
pod_name = partial(spec.pod_name, POD_NAMES)
"""Returns what the pod of a job's attempt is called."""
