"""Turns the flags of ``create`` and ``update`` into the spec of a queue, a domain or a retry policy."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from holdfast.cli.flags import Flags
from holdfast.cli.manifests import API_VERSION
from holdfast.cli.nouns import OF_ENTRIES, Noun, NounName
from holdfast.cli.options import DryRunOption, FilesOption, LenientOption

Text = str | None
_NONE = "none"
EDITED = (Noun.QUEUE, Noun.DOMAIN, Noun.RETRY_POLICY)
"""The kinds that flags can write."""
_OF_KIND = {
    "--retry-policy": Noun.QUEUE,
    "--weight": Noun.QUEUE,
    "--max-running-jobs": Noun.QUEUE,
    "--max-queued": Noun.QUEUE,
    "--submissions-per-minute": Noun.QUEUE,
    "--per-user": Noun.QUEUE,
    "--paused": Noun.QUEUE,
    "--domain": Noun.QUEUE,
    "--retry-limit": Noun.RETRY_POLICY,
    "--default-action": Noun.RETRY_POLICY,
}


_WITH_SESSIONS = (Noun.QUEUE, Noun.DOMAIN, Noun.SETTINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOptions:
    """The options that ``create`` and ``update`` share."""

    kind: Annotated[
        Text, typer.Argument(metavar="[KIND]", help="retrypolicy, queue or domain; leave it out with -f.")
    ] = None
    names: Annotated[list[str], typer.Argument(metavar="[NAME...]", help="One or more names.")] = field(
        default_factory=list
    )
    file: FilesOption = field(default_factory=list)
    lenient: LenientOption = False
    retry_policy: Annotated[
        list[str],
        typer.Option(
            metavar="NAMES", help="Queue: retry policies for all its jobs, in order. Comma-separated or repeated."
        ),
    ] = field(default_factory=list)
    weight: Annotated[Text, typer.Option(metavar="X", help="Queue: its share of the capacity when queues compete.")] = (
        None
    )
    max_running_jobs: Annotated[Text, typer.Option(metavar="N", help="Queue: run at most this many jobs at once.")] = (
        None
    )
    max_queued: Annotated[
        Text, typer.Option(metavar="N|none", help="Queue: let at most this many jobs wait, and refuse more.")
    ] = None
    submissions_per_minute: Annotated[
        Text, typer.Option(metavar="N|none", help="Queue: accept at most this many submissions in a minute.")
    ] = None
    per_user: Annotated[
        list[str],
        typer.Option(
            metavar="FIELD=VALUE",
            help="Queue: a limit for each user, such as maxRunningJobs=4 or maxRunning.gpu=2; VALUE may be none."
            " Repeatable.",
        ),
    ] = field(default_factory=list)
    paused: Annotated[bool | None, typer.Option("--paused/--no-paused", help="Queue: accept jobs, but start none.")] = (
        None
    )
    domain: Annotated[Text, typer.Option(metavar="NAME", help="Queue: the domain that it belongs to.")] = None
    session_retry: Annotated[
        list[str],
        typer.Option(
            metavar="FIELD=VALUE",
            help="Queue, domain or settings: a default of sessions' retry policy, such as max_retries=2; VALUE may be"
            " null or default. Repeatable.",
        ),
    ] = field(default_factory=list)
    handler_limit: Annotated[
        list[str],
        typer.Option(
            metavar="HANDLER.FIELD=VALUE",
            help="Queue or settings: a handler's timeout or max_tries; VALUE may be none or default. Repeatable.",
        ),
    ] = field(default_factory=list)
    retry_limit: Annotated[Text, typer.Option(metavar="N", help="Retry policy: how many retries each rule grants.")] = (
        None
    )
    default_action: Annotated[
        Text, typer.Option(metavar="ACTION", help="Retry policy: what happens when no rule matches, Retry or Fail.")
    ] = None
    dry_run: DryRunOption = False


def spec_of(options: EditOptions, noun: NounName, flags: Flags) -> dict[str, Any]:
    """Read the flags that were set, and report those that belong to another kind."""
    flags_given = {
        "--retry-policy": flags.names(options.retry_policy) or None,
        "--weight": flags.number("--weight", options.weight, low=0),
        "--max-running-jobs": flags.integer("--max-running-jobs", options.max_running_jobs, low=1),
        "--max-queued": _most("--max-queued", options.max_queued, flags),
        "--submissions-per-minute": _most("--submissions-per-minute", options.submissions_per_minute, flags),
        "--per-user": limits_of_users({}, options.per_user, flags) if options.per_user else None,
        "--paused": options.paused,
        "--domain": options.domain,
        "--retry-limit": flags.integer("--retry-limit", options.retry_limit),
        "--default-action": _action(options.default_action, flags),
    }
    present = {flag: value for flag, value in flags_given.items() if value is not None}
    for flag in present:
        if _OF_KIND[flag] is not noun:
            flags.wrong(flag, f"does not apply to {noun}", hint=f"it applies to {_OF_KIND[flag]}")
    spec = {_field(flag): None if value == _NONE else value for flag, value in present.items()}
    if options.session_retry:
        spec["sessionRetry"] = with_retry_fields({}, options.session_retry, flags)
        if noun not in _WITH_SESSIONS:
            flags.wrong(
                "--session-retry", f"does not apply to {noun}", hint="it applies to queues, domains and settings"
            )
    return spec


def with_limits(before: dict[str, Any], edits: list[str], flags: Flags) -> dict[str, Any]:
    """Return ``handlerLimits`` after edits written as ``HANDLER.FIELD=VALUE``."""
    limits = {handler: dict(fields) for handler, fields in before.items()}
    for edit in edits:
        name, _, value = edit.partition("=")
        handler, _, field_name = name.partition(".")
        if not (handler and field_name and value):
            flags.wrong("--handler-limit", f"{edit!r} is not HANDLER.FIELD=VALUE", hint="StartAttempts.timeout=5m")
            continue
        fields = limits.setdefault(handler, {})
        fields.pop(field_name, None)
        if value != "default":
            fields[field_name] = None if value == "none" else int(value) if value.isdecimal() else value
    return {handler: fields for handler, fields in limits.items() if fields}


def _most(flag: str, text: Text, flags: Flags) -> int | str | None:
    return _NONE if text == _NONE else flags.integer(flag, text)


def limits_of_users(before: dict[str, Any], edits: list[str], flags: Flags) -> dict[str, Any]:
    """Return ``perUser`` after edits written as ``FIELD=VALUE``."""
    limits = {name: dict(value) if isinstance(value, dict) else value for name, value in before.items()}
    for name, text in flags.pairs("--per-user", edits).items():
        head, dot, key = name.partition(".")
        if dot and not isinstance(limits.get(head), dict):
            limits[head] = {}
        part = limits[head] if dot else limits
        part.pop(key or head, None)
        if text != "none":
            part[key or head] = int(text) if text.isdecimal() else text
    return {name: value for name, value in limits.items() if value != {}}


def with_retry_fields(before: dict[str, Any], edits: list[str], flags: Flags) -> dict[str, Any]:
    """Return a partial retry policy of sessions after edits written as ``FIELD=VALUE``."""
    fields = dict(before)
    for name, text in flags.pairs("--session-retry", edits).items():
        fields.pop(name, None)
        if text != "default":
            fields[name] = text.split(",") if name == "eligible_causes" else _scalar(text)
    return fields


def _scalar(text: str) -> object:
    """Read a number, ``true``, ``false`` or ``null``; anything else is text."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def _action(text: str | None, flags: Flags) -> str | None:
    return None if text is None else flags.choice("--default-action", text, ("Retry", "Fail"))


def _field(flag: str) -> str:
    """Return the manifest's field for a flag: ``retryLimit`` for ``--retry-limit``."""
    first, *rest = flag.removeprefix("--").split("-")
    field_name = first + "".join(word.capitalize() for word in rest)
    return "retryPolicies" if field_name == "retryPolicy" else field_name


def manifest_of(noun: NounName, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Wrap a spec in its manifest."""
    return {"apiVersion": API_VERSION, "kind": OF_ENTRIES[noun].manifest, "metadata": {"name": name}, "spec": spec}


def check_target(options: EditOptions, flags: Flags, verb: str) -> None:
    """Report a command line that names neither files nor things, or both."""
    if options.lenient and not options.file:
        flags.wrong("--lenient", "only applies to files", hint="add -f FILE")
    if bool(options.file) == bool(options.kind):
        flags.wrong("KIND", "give either a kind with names, or files", hint=f"holdfast {verb} queue NAME, or -f FILE")
    elif options.kind and not options.names:
        flags.wrong("NAME", "is required", hint=f"holdfast {verb} {options.kind} NAME")
