"""Orders the work in files so that it can be sent: jobs and arrays many at once, other work one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.nouns import OF_WORK, OWNERS, Noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.cli.manifests import Manifest
    from holdfast.cli.nouns import NounName

_KINDS = {kind.name: noun if kind.manifest else Noun.JOB for noun, kind in OF_WORK.items()}


def in_order(manifests: Sequence[Manifest]) -> Iterator[list[int]]:
    """Yield work of all kinds in parts, each a list of its places, in the order of the files.

    A dependency is in an earlier part or, for a job or an array, in the same one. Work that waits in a circle is in the
    last part, for the server to refuse.
    """
    places = [place for place, manifest in enumerate(manifests) if manifest.noun in OF_WORK]
    owners = {place for place in places if manifests[place].noun in OWNERS}
    if not any(_waits_for(manifests[place]) for place in owners):
        yield places
        return
    awaited, left = _awaited(manifests, places), dict.fromkeys(places)
    while left:
        free = [place for place in left if place in owners and not awaited[place] & left.keys()]
        part = free or _together(left, owners, awaited) or list(left)
        yield part
        for place in part:
            del left[place]


def _together(left: dict[int, None], owners: set[int], awaited: dict[int, set[int]]) -> list[int]:
    """Return the jobs that wait only for each other, or for what has been sent."""
    together = {place for place in left if place not in owners}
    before = -1
    while before != len(together):
        before = len(together)
        together = {place for place in together if not (awaited[place] & left.keys()) - together}
    return sorted(together)


def _awaited(manifests: Sequence[Manifest], places: Sequence[int]) -> dict[int, set[int]]:
    """Return the places of each manifest's dependencies."""
    named: dict[str, list[int]] = {}
    for place in places:
        named.setdefault(manifests[place].name, []).append(place)
    return {
        place: {
            other
            for kind, name in _waits_for(manifests[place])
            for other in named.get(name, ())
            if other != place and (kind is None or manifests[other].noun == kind)
        }
        for place in places
    }


def _waits_for(manifest: Manifest) -> list[tuple[NounName | None, str]]:
    """List a manifest's dependencies, in either form, with their kinds if given; unreadable ones are left out."""
    from holdfast.dialects.native.dependencies import written_dependencies

    return [
        (_KINDS.get(str(dependency.target)), dependency.name)
        for dependency in written_dependencies(manifest.value)
        if dependency.name
    ]
