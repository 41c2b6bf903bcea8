"""Sends manifests of jobs to the server, many in one request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli.manifests import located, located_set, tell_warnings
from holdfast.cli.nouns import OWNERS, Noun
from holdfast.cli.submission.order import in_order
from holdfast.cli.things import resource_writer
from holdfast.errors import HoldfastError, InvalidManifest, InvalidRequest, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.manifests import Manifest
    from holdfast.cli.nouns import NounName
    from holdfast.client import Client
    from holdfast.errors import Problem
    from holdfast.wire.jobs import BulkItem

_MOST_JOBS = 10_000
"""Of one request."""
_LARGEST = 15 << 20
"""Bytes of one request; a server takes 16 MiB."""


class NewWork(NamedTuple):
    """New work that is made of jobs."""

    noun: NounName
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """What was accepted, in the order of the files."""

    owners: Sequence[NewWork]
    """Work that is made of jobs, except arrays."""
    jobs: Sequence[BulkItem]
    arrays: Sequence[BulkItem] = ()


def submit_all(client: Client, manifests: Sequence[Manifest], cli: Cli, *, lenient: bool = False) -> Submitted:
    """Create work made of jobs, which must be new, and submit jobs, all or none; prints the server's warnings.

    Args:
        client: The connection.
        manifests: Manifests of work only.
        cli: Where to print warnings.
        lenient: Whether to read manifests of Kubernetes leniently.

    Raises:
        InvalidRequest: Some are not valid; each problem names its file and line.
        AlreadyExists: Such work, as a job set, exists.
    """
    owners = [manifest for manifest in manifests if manifest.noun in OWNERS]
    jobs = [manifest for manifest in manifests if manifest.noun == Noun.JOB]
    if owners and len(manifests) > 1:
        _check(client, owners, _parts(jobs) or [()], lenient=lenient)
    created: dict[int, NewWork] = {}
    items: dict[int, BulkItem] = {}
    for part in in_order(manifests):
        several = [place for place in part if manifests[place].noun == Noun.JOB]
        for place in part:
            if manifests[place].noun in OWNERS:
                created[place] = _create(client, manifests[place], cli, lenient=lenient)
        accepted = submit_jobs(client, [manifests[place] for place in several], cli, lenient=lenient)
        items |= zip(several, accepted, strict=True)
    submitted = [items[place] for place in sorted(items)]
    arrays = [item for item in submitted if item.kind == "array"]
    jobs_alone = [item for item in submitted if item.kind != "array"]
    return Submitted([created[place] for place in sorted(created)], jobs_alone, arrays)


def _create(client: Client, manifest: Manifest, cli: Cli, *, lenient: bool) -> NewWork:
    noun = manifest.noun or Noun.JOB_SET
    try:
        answer = resource_writer(client, noun, lenient=lenient).create(manifest.value)
    except HoldfastError as error:
        raise located_set(error, [manifest], lenient=lenient) from error
    tell_warnings(getattr(answer, "warnings", ()), manifest, cli)
    return NewWork(noun, answer.id, answer.name)


def submit_jobs(client: Client, manifests: Sequence[Manifest], cli: Cli, *, lenient: bool = False) -> list[BulkItem]:
    """Submit jobs and arrays, all or none; returns them in order, and prints the server's warnings.

    Args:
        client: The connection.
        manifests: Manifests of jobs and arrays only.
        cli: Where to print warnings.
        lenient: Whether to read Jobs of Kubernetes leniently.

    Raises:
        InvalidRequest: Some are not valid; each problem names its file and line.
    """
    parts = _parts(manifests)
    if len(parts) > 1:
        # One request is all or none by itself; of several, all must be valid before the first is stored.
        _check(client, (), parts, lenient=lenient)
    jobs: list[BulkItem] = []
    for part in parts:
        try:
            items = client.submit_bulk([manifest.value for manifest in part], lenient=lenient).items
        except HoldfastError as error:
            raise located(error, part) from error
        for item in items:
            tell_warnings(item.warnings, part[item.index], cli)
        jobs.extend(items)
    return jobs


def rehearse(client: Client, manifests: Sequence[Manifest], verb: str, cli: Cli, *, lenient: bool = False) -> None:
    """Have the server check manifests as if they were written together, and print its warnings.

    Args:
        client: The connection.
        manifests: Manifests of any kind.
        verb: ``apply``, ``create`` or ``update``.
        cli: Where to print warnings.
        lenient: Whether to read manifests of Kubernetes leniently.

    Raises:
        HoldfastError: The error that writing them would give, located in its file.
    """
    others = [manifest for manifest in manifests if manifest.noun != Noun.JOB]
    for part in _parts([manifest for manifest in manifests if manifest.noun == Noun.JOB]) or [()]:
        rehearsed = [*others, *part]
        try:
            items = client.check([manifest.value for manifest in rehearsed], verb=verb, lenient=lenient).items
        except HoldfastError as error:
            raise located_set(error, rehearsed, lenient=lenient) from error
        for item in items:
            tell_warnings(item.warnings, rehearsed[item.index], cli)


def _parts(manifests: Sequence[Manifest]) -> Sequence[Sequence[Manifest]]:
    parts: list[list[Manifest]] = []
    room = 0
    for manifest in manifests:
        size = len(json.dumps(manifest.value, default=str)) if len(manifests) > 1 else 0
        if not parts or size > room or len(parts[-1]) == _MOST_JOBS:
            parts.append([])
            room = _LARGEST
        parts[-1].append(manifest)
        room -= size
    return parts


def _check(client: Client, owners: Sequence[Manifest], parts: Sequence[Sequence[Manifest]], *, lenient: bool) -> None:
    """Check everything before the first request; any of it may wait for any other."""
    problems: list[Problem] = []
    hints: list[str | None] = []
    for part in parts:
        checked = [*owners, *part]
        try:
            client.check([manifest.value for manifest in checked], verb="create", lenient=lenient)
        except HoldfastError as error:
            refusal = located_set(error, checked, lenient=lenient)
            if not isinstance(error, InvalidRequest | Refused):
                raise refusal from error
            problems.extend(refusal.problems)
            hints.append(refusal.hint)
    if problems:
        msg = "some manifests are not valid; nothing was submitted"
        raise InvalidManifest(msg, problems=list(dict.fromkeys(problems)), hint=next(filter(None, hints), None))
