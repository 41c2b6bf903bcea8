"""Sends manifests to the server, many in one request; leaves reading them to ``manifests``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.manifests import located
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.manifests import Manifest
    from holdfast.client import Client
    from holdfast.wire.jobs import BulkItem

_MOST_JOBS = 10_000
"""Of one request."""


def submit_jobs(client: Client, manifests: Sequence[Manifest]) -> list[BulkItem]:
    """Submit jobs, each request all or none; returns them in order.

    Raises:
        InvalidRequest: Some are not valid; each problem names its file and line.
    """
    jobs: list[BulkItem] = []
    for start in range(0, len(manifests), _MOST_JOBS):
        part = manifests[start : start + _MOST_JOBS]
        try:
            jobs.extend(client.submit_bulk([manifest.value for manifest in part]).items)
        except InvalidRequest as error:
            raise located(error, part) from error
    return jobs
