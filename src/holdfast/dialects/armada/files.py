"""Writes queues and retry policies as Armada's files, which read back equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.armada.policy import ARMADA_FLAT, ARMADA_NESTED
from holdfast.dialects.armada.queues import write_queue
from holdfast.dialects.native.catalogue import read_queue_manifest
from holdfast.dialects.native.envelope import API_VERSION
from holdfast.errors import InvalidManifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Problem


def write_policy_file(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Write a retry policy; one that inherits its limit in the design document's form, which alone can express that.

    Args:
        name: Its name.
        spec: Its fields, as in a manifest of Holdfast.
    """
    if spec.get("retryLimit") is None:
        return {"apiVersion": ARMADA_NESTED, "kind": "RetryPolicy", "metadata": {"name": name}, "spec": dict(spec)}
    return {"apiVersion": ARMADA_FLAT, "kind": "RetryPolicy", "name": name, **spec}


def write_queue_file(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Write a queue without the fields that Armada does not know.

    Args:
        name: Its name.
        spec: Its fields, as in a manifest of Holdfast.

    Raises:
        InvalidManifest: The fields are not those of a queue.
    """
    problems: list[Problem] = []
    manifest = {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    queue = read_queue_manifest(manifest, path="", problems=problems)
    if queue is None:
        raise InvalidManifest(problems=problems)
    return {"apiVersion": ARMADA_FLAT, "kind": "Queue", **write_queue(queue)}
