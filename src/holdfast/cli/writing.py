"""Sends policies, queues and categories to the server, one after another, and says what became of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from holdfast.cli import exit_codes
from holdfast.cli.manifests import located
from holdfast.cli.things import SINGULAR, WRITTEN, desk
from holdfast.errors import HoldfastError, InvalidManifest, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.manifests import Manifest
    from holdfast.cli.nouns import Noun
    from holdfast.client import Client

_DONE = {"create": "created", "update": "updated", "apply": "applied"}


@dataclass(frozen=True, slots=True)
class Written:
    """One thing to write."""

    noun: Noun
    name: str
    manifest: Mapping[str, Any]
    source: Manifest | None = None
    """The document it comes from, to say where an error is."""

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Take it from a document.

        Raises:
            InvalidManifest: It has no name, or describes nothing that is written under a name.
        """
        noun = manifest.noun
        if noun is None or not manifest.name:
            raise InvalidManifest(problems=[manifest.locate(Problem("metadata.name", "is required"))])
        return cls(noun, manifest.name, manifest.value, manifest)


def print_dry_run(written: Sequence[Written], cli: Cli) -> int:
    """Print what would be sent, as YAML documents that can be applied."""
    for place, thing in enumerate(written):
        if place:
            cli.output().text("---")
        cli.output().document(dict(thing.manifest), "yaml")
    return exit_codes.OK


def write_each(client: Client, written: Sequence[Written], verb: str, cli: Cli) -> None:
    """Create, update or apply things, policies before the queues that name them.

    Raises:
        HoldfastError: The first refusal, located in its file; what was written before it stays.
    """
    for thing in sorted(written, key=lambda one: WRITTEN.index(one.noun)):
        try:
            _write(client, thing, verb)
        except HoldfastError as error:
            raise (located(error, [thing.source]) if thing.source else error) from error
        cli.output().text(f"{SINGULAR[thing.noun]} {thing.name} {_DONE[verb]}")


def _write(client: Client, thing: Written, verb: str) -> None:
    place = desk(client, thing.noun)
    if verb == "create":
        place.create(thing.manifest)
    else:
        place.put(thing.name, thing.manifest, must_exist=verb == "update")
