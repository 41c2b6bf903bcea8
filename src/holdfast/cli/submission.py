"""Sends manifests to the server, many in one request; leaves reading them to ``manifests``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.manifests import located
from holdfast.errors import InvalidManifest, InvalidRequest, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.manifests import Manifest
    from holdfast.client import Client
    from holdfast.errors import Problem
    from holdfast.wire.jobs import BulkItem

_MOST_JOBS = 10_000
"""Of one request."""


def submit_jobs(client: Client, manifests: Sequence[Manifest]) -> list[BulkItem]:
    """Submit jobs, all or none; returns them in order.

    Raises:
        InvalidRequest: Some are not valid; each problem names its file and line.
    """
    parts = [manifests[start : start + _MOST_JOBS] for start in range(0, len(manifests), _MOST_JOBS)]
    if len(parts) > 1:
        # One request is all or none by itself; before the first of several is stored, the last must be good.
        _check(client, parts)
    jobs: list[BulkItem] = []
    for part in parts:
        try:
            jobs.extend(client.submit_bulk([manifest.value for manifest in part]).items)
        except InvalidRequest as error:
            raise located(error, part) from error
    return jobs


def _check(client: Client, parts: Sequence[Sequence[Manifest]]) -> None:
    problems: list[Problem] = []
    for part in parts:
        try:
            client.check_bulk([manifest.value for manifest in part])
        except (InvalidRequest, Refused) as error:
            problems.extend(located(error, part).problems)
    if problems:
        msg = "some manifests are not valid; nothing was submitted"
        raise InvalidManifest(msg, problems=problems)
