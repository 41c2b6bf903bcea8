"""Sends policies, queues, categories and job sets to the server, one by one, and prints the result of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from holdfast.cli import exit_codes
from holdfast.cli.manifests import located, located_set, tell_warnings
from holdfast.cli.nouns import OWNERS, SINGULAR, Noun
from holdfast.cli.submission.order import in_order
from holdfast.cli.submission.sending import rehearse, submit_jobs
from holdfast.cli.things import WRITTEN, resource_writer
from holdfast.errors import HoldfastError, InvalidManifest, NotFound, Problem, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.manifests import Manifest
    from holdfast.cli.nouns import NounName
    from holdfast.client import Client

_DONE = {"create": "created", "update": "updated", "apply": "applied"}


@dataclass(frozen=True, slots=True)
class NamedManifest:
    """One thing to write."""

    noun: NounName
    name: str
    manifest: Mapping[str, Any]
    source: Manifest | None = None
    """The document it comes from, to locate errors."""

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Take it from a document.

        Raises:
            InvalidManifest: It has no name and asks for none, or its kind is unknown.
        """
        noun = manifest.noun
        if noun is None or not (manifest.name or manifest.asks_for_name):
            raise InvalidManifest(problems=[manifest.locate(Problem("metadata.name", "is required"))])
        return cls(noun, manifest.name, manifest.value, manifest)


def dry_run_of(written: Sequence[NamedManifest], verb: str, cli: Cli, *, lenient: bool = False) -> int:
    """Have the server check what would be sent, then print it, as YAML documents that can be applied.

    Raises:
        HoldfastError: The error that sending it would give.
    """
    sources = [thing.source for thing in written if thing.source is not None]
    with cli.connect() as client:
        if sources:
            rehearse(client, sources, verb, cli, lenient=lenient)
        else:
            for item in client.check([thing.manifest for thing in written], verb=verb).items:
                tell_warnings(item.warnings, None, cli)
    for place, thing in enumerate(written):
        if place:
            cli.output().text("---")
        cli.output().document(dict(thing.manifest), "yaml")
    return exit_codes.OK


def write_manifests(
    manifests: Sequence[Manifest], verb: str, cli: Cli, *, lenient: bool = False, dry_run: bool = False
) -> int:
    """Create or apply what files describe, and submit their jobs last; returns the exit code.

    Args:
        manifests: Manifests of any kind.
        verb: ``create`` or ``apply``.
        cli: Where to print the results.
        lenient: Whether to read manifests of Kubernetes leniently.
        dry_run: Only check the manifests, and print what would be sent.

    Raises:
        HoldfastError: The first refusal, located in its file; the others are printed, and everything else is written.
    """
    if verb != "create":
        require_names(manifests)
    jobs = [manifest for manifest in manifests if manifest.noun == Noun.JOB]
    written = [NamedManifest.of(manifest) for manifest in manifests if manifest.noun != Noun.JOB]
    if dry_run:
        everything = [*written, *(NamedManifest(Noun.JOB, job.name, job.value, job) for job in jobs)]
        return dry_run_of(everything, verb, cli, lenient=lenient)
    owners = [thing for thing in written if thing.noun in OWNERS]
    with cli.connect() as client:
        errors = _refusals(client, [thing for thing in written if thing not in owners], verb, cli, lenient=lenient)
        for part in in_order(manifests):
            batch = [manifests[place] for place in part]
            now = [thing for thing in owners if thing.source in batch]
            errors += _refusals(client, now, verb, cli, lenient=lenient)
            several = [item for item in batch if item.noun == Noun.JOB]
            errors += _submitted(client, several, verb, cli, lenient=lenient)
        _raise_first(errors, cli)
    if jobs:
        cli.note_unserved()
    elif owners:
        note_unserved(owners[0].noun, cli)
    return exit_codes.OK


def note_unserved(noun: NounName, cli: Cli) -> None:
    """Tell the user how such work starts if no server is running."""
    cli.note_unserved(f"{OWNERS[noun].noun}s start", f"holdfast wait {SINGULAR[noun]} NAME")


def require_names(manifests: Sequence[Manifest]) -> None:
    """Refuse ``generateName`` where a manifest has to name a thing that may exist.

    Raises:
        InvalidManifest: A manifest has it.
    """
    message, hint = "cannot name a thing that exists", "write name instead, or: holdfast create -f FILE"
    problem = Problem("metadata.generateName", message, hint=hint)
    problems = [manifest.locate(problem) for manifest in manifests if manifest.asks_for_name]
    if problems:
        raise InvalidManifest(problems=problems)


def _submitted(client: Client, jobs: Sequence[Manifest], verb: str, cli: Cli, *, lenient: bool) -> list[HoldfastError]:
    """Submit or apply jobs and arrays, print the results, and return the refusals."""
    errors: list[HoldfastError] = []
    named = [job for job in jobs if verb == "apply" and job.value.get("apiVersion") == "batch/v1" and job.name]
    manifests = _changed_arrays(client, jobs, cli, errors) if verb == "apply" else []
    errors += [error for job in named if (error := _applied(client, job, cli, lenient=lenient)) is not None]
    try:
        others = [job for job in jobs if job not in named and job not in manifests]
        for job in submit_jobs(client, others, cli, lenient=lenient):
            message = f"array {job.name}" if job.kind == "array" else f"job {job.id} {job.name}"
            cli.output().text(f"{message} submitted")
    except HoldfastError as error:
        errors.append(error)
    return errors


def _applied(client: Client, manifest: Manifest, cli: Cli, *, lenient: bool) -> HoldfastError | None:
    """Apply a Kubernetes Job and print the result, or return the refusal."""
    try:
        job = client.put_job(manifest.name, manifest.value, lenient=lenient)
    except Unavailable:
        raise
    except HoldfastError as error:
        return located(error, [manifest])
    tell_warnings(job.warnings, manifest, cli)
    cli.output().text(f"job {job.id} {job.name} {'submitted' if job.result == 'created' else job.result}")
    return None


def _changed_arrays(
    client: Client, manifests: Sequence[Manifest], cli: Cli, errors: list[HoldfastError]
) -> Sequence[Manifest]:
    """Change the limits of arrays that exist, print the results, and return the manifests of those arrays."""
    existing = []
    for manifest in manifests:
        if not manifest.is_array or not manifest.name:
            continue
        try:
            array = client.put_array(manifest.name, manifest.value)
        except Unavailable:
            raise
        except NotFound:
            continue
        except HoldfastError as error:
            errors.append(located(error, [manifest]))
        else:
            tell_warnings(array.warnings, manifest, cli)
            cli.output().text(f"array {array.name} {array.result}")
        existing.append(manifest)
    return existing


def write_each(client: Client, written: Sequence[NamedManifest], verb: str, cli: Cli, *, lenient: bool = False) -> None:
    """Create or update things, policies before the queues that name them, job sets last.

    Args:
        client: The connection.
        written: The things, in any order.
        verb: ``create``, ``update`` or ``apply``.
        cli: Where to print the results and the server's warnings.
        lenient: Whether to read job sets leniently.

    Raises:
        HoldfastError: The first refusal, located in its file; the others are printed, and everything else is written.
    """
    _raise_first(_refusals(client, written, verb, cli, lenient=lenient), cli)


def _raise_first(errors: Sequence[HoldfastError], cli: Cli) -> None:
    for error in errors[1:]:
        cli.say(f"error: {error}")
    if errors:
        raise errors[0]


def _refusals(
    client: Client, written: Sequence[NamedManifest], verb: str, cli: Cli, *, lenient: bool = False
) -> list[HoldfastError]:
    """Write things in order, and return the refusals, located in their files."""
    errors: list[HoldfastError] = []
    for thing in sorted(written, key=lambda item: WRITTEN.index(item.noun)):
        try:
            answer = _write(client, thing, verb, lenient=lenient)
        except Unavailable:
            raise
        except HoldfastError as error:
            errors.append(_located(error, thing, lenient=lenient))
            continue
        tell_warnings(getattr(answer, "warnings", ()), thing.source, cli)
        name = thing.name or getattr(answer, "name", "")
        cli.output().text(f"{SINGULAR[thing.noun]} {name} {getattr(answer, 'result', _DONE[verb])}")
    return errors


def _located(error: HoldfastError, thing: NamedManifest, *, lenient: bool) -> HoldfastError:
    if thing.source is None:
        return error
    if thing.noun == Noun.JOB_SET:
        return located_set(error, [thing.source], lenient=lenient)
    return located(error, [thing.source])


def _write(client: Client, thing: NamedManifest, verb: str, *, lenient: bool) -> object:
    place = resource_writer(client, thing.noun, lenient=lenient)
    if verb == "create":
        return place.create(thing.manifest)
    return place.put(thing.name, thing.manifest, must_exist=verb == "update")
