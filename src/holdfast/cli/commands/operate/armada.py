"""``holdfast armada``: the commands for queues and retry policies that Armada's design shows."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import Manifest, in_spec, read_manifests
from holdfast.cli.nouns import SINGULAR, Noun
from holdfast.cli.options import FilesOption
from holdfast.cli.targets import do_each
from holdfast.cli.things import READERS, resource_writer
from holdfast.cli.writing import NamedManifest, write_each
from holdfast.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.nouns import NounName
    from holdfast.client import Client

_WRITES = ("create", "update")
_VERBS = (*_WRITES, "get", "delete", "config")
_KINDS = {
    "queue": Noun.QUEUE,
    "queues": Noun.QUEUE,
    "retry-policy": Noun.RETRY_POLICY,
    "retrypolicy": Noun.RETRY_POLICY,
    "retry-policies": Noun.RETRY_POLICY,
    "retrypolicies": Noun.RETRY_POLICY,
}
_VERSION = "armadaproject.io/v1beta1"
_OWNERS = ("userOwners", "groupOwners", "permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmadaOptions:
    verb: Annotated[str, typer.Argument(metavar="VERB", help="create, get, update, delete; or config reload.")]
    kind: Annotated[str, typer.Argument(metavar="[KIND]", help="queue or retry-policy; left out with a file.")] = ""
    names: Annotated[list[str], typer.Argument(metavar="[NAME...]", help="Names; `get` without names shows all.")] = (
        field(default_factory=list)
    )
    file: FilesOption = field(default_factory=list)
    priority_factor: Annotated[
        str | None,
        typer.Option(metavar="X", help="Queue: 1 or more; a lower number makes the queue more important."),
    ] = None
    owners: Annotated[
        list[str], typer.Option(metavar="USERS", help="Queue: users who own it. Comma-separated or repeated.")
    ] = field(default_factory=list)
    group_owners: Annotated[
        list[str], typer.Option(metavar="GROUPS", help="Queue: groups that own it. Comma-separated or repeated.")
    ] = field(default_factory=list)
    labels: Annotated[list[str], typer.Option("--labels", "-l", metavar="KEY=VALUE", help="Queue: its labels.")] = (
        field(default_factory=list)
    )
    retry_policies: Annotated[
        list[str],
        typer.Option(
            "--retry-policies",
            "--retry-policy",
            metavar="NAMES",
            help="Queue: its retry policies, in order. Comma-separated or repeated.",
        ),
    ] = field(default_factory=list)
    cordon: Annotated[bool, typer.Option("--cordon", help="Queue: start none of its jobs.")] = False


def armada(options: ArmadaOptions, cli: "Cli") -> int:
    """Create, show, update and delete queues and retry policies, in the words and files of Armada's users.

    `create` and `update` take names and flags, or files in either form of a policy (`armadaproject.io/v1` and
    `v1beta1`). A new queue without owners is yours. `get` prints what `create -f` takes. `config reload` has the server
    read its `HOLDFAST_ARMADA_CONFIG` again. For everything else use Armada's own armadactl: it works with a server
    that was started with `--door armada`.
    """
    flags = Flags()
    verb = flags.choice("VERB", options.verb, _VERBS)
    if verb == "config":
        _check_reload(options, flags)
    else:
        (_check_written if verb in _WRITES else _check_named)(options, verb, flags)
    noun = _KINDS[flags.choice("KIND", options.kind, tuple(_KINDS))] if options.kind and verb != "config" else None
    queue = _queue(options, flags)
    flags.finish()
    if verb == "config":
        return _reload(cli)
    if verb in _WRITES:
        return _write(options, verb, noun, queue, cli)
    act = _show if verb == "get" else _delete
    return act(noun or Noun.QUEUE, options.names, cli)


def _check_reload(options: ArmadaOptions, flags: Flags) -> None:
    if (options.kind, *options.names) != ("reload",):
        flags.wrong("VERB", "config takes the word reload alone", hint="holdfast armada config reload")


def _check_written(options: ArmadaOptions, verb: str, flags: Flags) -> None:
    if options.file:
        if options.names or _is_described(options):
            flags.wrong("--file", "takes neither names nor a description", hint=f"holdfast armada {verb} -f FILE")
    elif _KINDS.get(options.kind) == Noun.RETRY_POLICY:
        flags.wrong("--file", "is required for a retry policy", hint=f"holdfast armada {verb} -f FILE")
    elif not (options.kind and options.names):
        hint = f"holdfast armada {verb} queue NAME, or: holdfast armada {verb} -f FILE"
        flags.wrong("NAME" if options.kind else "KIND", "is required", hint=hint)


def _check_named(options: ArmadaOptions, verb: str, flags: Flags) -> None:
    hint = f"holdfast armada {verb} queue NAME"
    if not options.kind:
        flags.wrong("KIND", "is required", allowed=("queue", "retry-policy"))
    elif verb == "delete" and not options.names:
        flags.wrong("NAME", "is required", hint=hint)
    if options.file or _is_described(options):
        flags.wrong("VERB", f"{verb} takes only names", hint=hint)


def _is_described(options: ArmadaOptions) -> bool:
    texts = (options.owners, options.group_owners, options.labels, options.retry_policies)
    return any(texts) or options.cordon or options.priority_factor is not None


def _queue(options: ArmadaOptions, flags: Flags) -> dict[str, Any]:
    """Describe a queue by the flags, as a file would; without a name."""
    factor = flags.number("--priority-factor", options.priority_factor or "1", low=1.0)
    owners, groups = flags.names(options.owners), flags.names(options.group_owners)
    labels = flags.pairs("--labels", flags.names(options.labels))
    parts = {"userOwners": owners, "groupOwners": groups, "labels": labels, "cordoned": options.cordon}
    policies = flags.names(options.retry_policies)
    described = {"priorityFactor": factor, **parts, "retryPolicies": policies}
    return {"apiVersion": _VERSION, "kind": "Queue", **{key: value for key, value in described.items() if value}}


def _write(options: ArmadaOptions, verb: str, noun: "NounName | None", queue: dict[str, Any], cli: "Cli") -> int:
    allowed = (Noun.QUEUE, Noun.RETRY_POLICY) if noun is None else (noun,)
    manifests = read_manifests(options.file, cli, allowed=allowed)
    with cli.connect() as client:
        if verb == "create":
            manifests = [_owned(manifest, client) for manifest in manifests]
            queue = queue if any(map(queue.get, _OWNERS)) else {**queue, "userOwners": [client.me().name]}
        written = [NamedManifest.of(manifest) for manifest in manifests]
        written += [NamedManifest(Noun.QUEUE, name, {**queue, "name": name}) for name in options.names]
        write_each(client, written, verb, cli)
    return exit_codes.OK


def _owned(manifest: Manifest, client: "Client") -> Manifest:
    """Make the caller the owner of a queue that names no owner."""
    if manifest.value.get("apiVersion") != _VERSION or manifest.noun != Noun.QUEUE:
        return manifest
    is_owned = any(map(manifest.value.get, _OWNERS))
    return manifest if is_owned else in_spec(manifest, {"userOwners": [client.me().name]})


def _delete(noun: "NounName", names: "Sequence[str]", cli: "Cli") -> int:
    with cli.connect() as client:
        delete = resource_writer(client, noun).delete
        return do_each(names, delete, cli, what=SINGULAR[noun], done="deleted")


def _show(noun: "NounName", names: "Sequence[str]", cli: "Cli") -> int:
    from holdfast.dialects.armada.files import write_policy_file, write_queue_file
    from holdfast.dialects.yaml_writing import write_yaml

    reader = READERS[noun]
    write = write_queue_file if noun == Noun.QUEUE else write_policy_file
    with cli.connect() as client:
        views: list[Any] = [reader.fetched(client, name) for name in names] or [*reader.listed(client)]
    cli.stdout.write("---\n".join(write_yaml(write(view.name, view.spec)) for view in views))
    return exit_codes.OK


def _reload(cli: "Cli") -> int:
    from holdfast.wire.problems import read_problem

    with cli.connect() as client:
        try:
            configuration = client.reload_settings()
        except InvalidSetting as error:
            message = f"{error.message}; the settings in force stay as they are"
            raise InvalidSetting(message, problems=error.problems, hint=error.hint) from error
    output = cli.output()
    output.text(f"{configuration.file} is in force{'' if configuration.changed else '; it has not changed'}")
    if configuration.enabled is not None:
        applied = "apply" if configuration.enabled else "do not apply to jobs of Armada's clients"
        output.text(f"Retry policies {applied}; at most {configuration.global_max_retries} retries of a job")
        output.text(f"Default retry policy: {configuration.default_policy_name or 'none'}")
    for warning in configuration.warnings:
        cli.say(f"warning: {configuration.file}: {read_problem(warning)}")
    output.text(f"Error categories: {', '.join(configuration.categories) or 'none'}")
    return exit_codes.OK


ARMADA = Command(
    "armada",
    ArmadaOptions,
    armada,
    "Operate",
    examples=(
        "holdfast armada create -f retry-policy.yaml",
        "holdfast armada create queue ml --priority-factor 2 --retry-policies infra,training",
        "holdfast armada get retry-policy infra",
        "holdfast armada config reload",
    ),
)
