"""``holdfast update``: change policies, queues, categories and settings that exist."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.edits import (
    EDITED,
    EditOptions,
    check_target,
    limits_of_users,
    manifest_of,
    spec_of,
    with_limits,
    with_retry_fields,
)
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import read_manifests, tell_warnings
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.printing import plain
from holdfast.cli.render.catalogue import settings_table
from holdfast.cli.things import READERS, WRITTEN
from holdfast.cli.writing import NamedManifest, dry_run_of, require_names, write_each
from holdfast.domain.units import parse_amount

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.cli.nouns import NounName
    from holdfast.client import Client

_OF_SETTINGS = (
    "--global-max-retries",
    "--default-policy",
    "--retry-share",
    "--fluster",
    "--session-retry",
    "--session-retries",
    "--builtin-policy",
    "--handler-limit",
    "--resource",
    "--access",
    "--others-see",
)
_SIGHTS = ("nothing", "existence", "details", "everything")
_KEPT = frozenset({"access", "othersSee", "warnings"})
"""Fields of the settings that are not sent back: the server keeps the first two, and only answers the third."""
_UPDATED = (*EDITED, Noun.SETTINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOptions(EditOptions):
    global_max_retries: Annotated[
        str | None,
        typer.Option(metavar="N|none", help="Settings: cap on every job's retries; 0 stops all retries at once."),
    ] = None
    default_policy: Annotated[
        str | None,
        typer.Option(metavar="NAME|none", help="Settings: the policy for jobs that name none."),
    ] = None
    retry_share: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Settings: the largest share of the capacity that retries get while new jobs wait, from 0 to 1.",
        ),
    ] = None
    builtin_policy: Annotated[
        str | None,
        typer.Option(
            metavar="all|lost-only|none",
            help="Settings: how much of the built-in policy applies to jobs that came through no door.",
        ),
    ] = None
    fluster: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE",
            help="Settings: a default for jobs from Fluster's door, such as defaultMaxRetriesFailure=2. Repeatable.",
        ),
    ] = field(default_factory=list)
    session_retries: Annotated[
        bool | None,
        typer.Option(
            "--session-retries/--no-session-retries",
            help="Settings: whether failed sessions are retried; those that are enqueued already keep what held for"
            " them.",
        ),
    ] = None
    resource: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=AMOUNT",
            help="Settings: how much of a named resource the whole cluster has, such as licence/matlab=2; 0 removes it."
            " Repeatable.",
        ),
    ] = field(default_factory=list)
    access: Annotated[
        list[str],
        typer.Option(
            metavar="ROLE=SUBJECTS|none",
            help="Settings: who has a role (admin, operator, user, viewer), as user:NAME and group:NAME,"
            " comma-separated; replaces the previous ones. Repeatable.",
        ),
    ] = field(default_factory=list)
    others_see: Annotated[
        str | None,
        typer.Option(
            metavar="nothing|existence|details|everything",
            help="Settings: what users see of other users' jobs.",
        ),
    ] = None


def update(options: UpdateOptions, cli: Cli) -> int:
    """Change retry policies, queues, categories, job sets or the settings.

    Flags change only what they name; files replace the whole thing. A changed policy is a new revision and applies to
    failures judged from then on. So does a lowered limit, even for jobs that are already running.
    """
    flags = Flags()
    if not (options.kind and read_noun(options.kind, _UPDATED) == Noun.SETTINGS):
        check_target(options, flags, "update")
    flags.finish()
    if options.file:
        manifests = read_manifests(options.file, cli, allowed=WRITTEN, lenient=options.lenient)
        require_names(manifests)
        return _send([NamedManifest.of(manifest) for manifest in manifests], options, cli)
    noun = read_noun(options.kind or "", _UPDATED)
    return _update_settings(options, cli) if noun == Noun.SETTINGS else _update_things(options, noun, cli)


def _send(written: list[NamedManifest], options: UpdateOptions, cli: Cli) -> int:
    if options.dry_run:
        return dry_run_of(written, "update", cli, lenient=options.lenient)
    with cli.connect() as client:
        write_each(client, written, "update", cli, lenient=options.lenient)
    return exit_codes.OK


def _update_things(options: UpdateOptions, noun: NounName, cli: Cli) -> int:
    flags = Flags()
    changes = spec_of(options, noun, flags)
    with_limits({}, options.handler_limit, flags)
    if not changes and not options.handler_limit and not flags.problems:
        flags.wrong("KIND", "no flag says what to change", hint="holdfast update --help")
    flags.finish()
    with cli.connect() as client:
        written = [_changed(client, noun, name, changes, options) for name in options.names]
    return _send(written, options, cli)


def _changed(
    client: Client, noun: NounName, name: str, changes: dict[str, Any], options: UpdateOptions
) -> NamedManifest:
    before = READERS[noun].fetched(client, name).spec
    spec = {**before, **changes}
    if options.handler_limit:
        spec["handlerLimits"] = with_limits(before.get("handlerLimits", {}), options.handler_limit, Flags())
    if options.session_retry:
        spec["sessionRetry"] = with_retry_fields(before.get("sessionRetry", {}), options.session_retry, Flags())
    if options.per_user:
        spec["perUser"] = limits_of_users(before.get("perUser", {}), options.per_user, Flags())
    return NamedManifest(noun, name, manifest_of(noun, name, spec))


def _update_settings(options: UpdateOptions, cli: Cli) -> int:
    flags = Flags()
    changes: dict[str, Any] = {}
    if options.global_max_retries is not None:
        cap = options.global_max_retries
        changes["globalMaxRetries"] = None if cap == "none" else flags.integer("--global-max-retries", cap)
    if options.default_policy is not None:
        changes["defaultPolicyName"] = None if options.default_policy == "none" else options.default_policy
    if options.retry_share is not None:
        changes["retryShare"] = flags.number("--retry-share", options.retry_share, low=0.0, high=1.0)
    if options.builtin_policy is not None:
        changes["builtinPolicy"] = options.builtin_policy
    if options.session_retries is not None:
        changes["sessionRetries"] = options.session_retries
    of_other_kinds = spec_of(options, Noun.SETTINGS, flags)
    of_sessions = of_other_kinds.pop("sessionRetry", None)
    defaults = flags.pairs("--fluster", options.fluster)
    resources = flags.pairs("--resource", options.resource)
    for name, amount in resources.items():
        flags.parsed(f"--resource {name}", amount, parse_amount)
    roles, others_see = _rights(options, flags)
    if not any((changes, options.handler_limit, of_sessions, defaults, resources, roles, others_see)):
        flags.wrong("settings", "no flag says what to change", allowed=_OF_SETTINGS)
    if of_other_kinds:
        flags.wrong("settings", "takes only its own flags", allowed=_OF_SETTINGS)
    with_limits({}, options.handler_limit, flags)
    flags.finish()
    with cli.connect() as client:
        before = plain(client.settings())
        changed = {name: value for name, value in before.items() if name not in _KEPT} | changes
        changed["handlerLimits"] = with_limits(before["handlerLimits"], options.handler_limit, Flags())
        before_retry = before["sessionRetryDefault"]
        changed["sessionRetryDefault"] = with_retry_fields(before_retry, options.session_retry, Flags())
        changed["resources"] = {**before["resources"], **resources}
        typed = {name: int(text) if text.isdecimal() else text for name, text in defaults.items()}
        changed |= {"fluster": {**before["fluster"], **typed}} if typed else {}
        changed |= others_see | ({"access": {**before["access"], **roles}} if roles else {})
        if options.dry_run:
            tell_warnings(client.put_settings(changed, dry_run=True).warnings, None, cli)
            cli.output().document(changed, "yaml")
            return exit_codes.OK
        put = client.put_settings(changed)
        tell_warnings(put.warnings, None, cli)
        cli.output().table(*settings_table(put))
    return exit_codes.OK


def _rights(options: UpdateOptions, flags: Flags) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Read ``--access`` and ``--others-see``."""
    names_by_role = flags.pairs("--access", options.access)
    roles = {role: [] if names == "none" else flags.names([names]) for role, names in names_by_role.items()}
    if options.others_see is None:
        return roles, {}
    return roles, {"othersSee": flags.choice("--others-see", options.others_see, _SIGHTS)}


UPDATE = Command(
    "update",
    UpdateOptions,
    update,
    "Operate",
    examples=(
        "holdfast update -f policy.yaml",
        "holdfast update queue ml --weight 3 --no-paused",
        "holdfast update settings --global-max-retries 0",
        "holdfast update settings --handler-limit StartAttempts.timeout=5m",
        "holdfast update settings --access operator=user:ann,group:ops --others-see existence",
    ),
)
