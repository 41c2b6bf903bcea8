"""``holdfast bai``: sessions with retries, in the words of Backend.AI's users, by its door."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.printing import list_format, plain, print_things
from holdfast.cli.submission.session_flags import SessionFlags, is_payload, option, read_request
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.context import Cli
    from holdfast.client.backendai.calls import BackendAiCalls

_LISTS = frozenset({"attempts", "search", "history"})
_ONE_ID = frozenset({"get", "info", "attempts", "logs", "history"})
_ENQUEUE = frozenset({"enqueue"})
_SEARCH = frozenset({"search"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BaiOptions(SessionFlags):
    noun: Annotated[str, typer.Argument(metavar="session", help="The word session.")]
    verb: Annotated[
        str,
        typer.Argument(metavar="VERB", help="enqueue, get, info, attempts, search, terminate, logs or history."),
    ]
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[WORD...]",
            help="Ids of sessions. `enqueue`: after `--` a program and its arguments, or one line for the shell; or a "
            "request as JSON, or @FILE.",
        ),
    ] = field(default_factory=list)
    status: Annotated[
        list[str], option("--status", metavar="STATUSES", text="`search`: any of these. Comma-separated or repeated.")
    ] = field(default_factory=list)
    limit: Annotated[str | None, option("--limit", metavar="N", text="`search`: the most to list; default 100.")] = None
    forced: Annotated[bool, typer.Option("--forced", help="`terminate`: without time to end in peace.")] = False
    kernel: Annotated[
        str | None, option("--kernel", metavar="ID", text="`logs`: of this kernel; default the main one.")
    ] = None
    kernels: Annotated[bool, typer.Option("--kernels", help="`history`: of its kernels.")] = False
    output: Annotated[
        str | None,
        option("--output", "-o", metavar="FORMAT", text="Lists: table, wide, json, yaml, csv or name."),
    ] = None


_FLAGS: dict[str, frozenset[str]] = {
    **{field_.name: _ENQUEUE for field_ in fields(BaiOptions)},
    **dict.fromkeys(("name", "project"), _ENQUEUE | _SEARCH),
    **dict.fromkeys(("status", "limit"), _SEARCH),
    "forced": frozenset({"terminate"}),
    "kernel": frozenset({"logs"}),
    "kernels": frozenset({"history"}),
    "output": _LISTS,
}
"""The verbs that each flag is for."""
_ARGUMENTS = ("noun", "verb", "words")


def bai(options: BaiOptions, cli: Cli) -> int:
    """Enqueue sessions that are retried when they fail, and follow them, in the words of Backend.AI's users.

    The server is found by BACKEND_ENDPOINT, BACKEND_ACCESS_KEY and BACKEND_SECRET_KEY, or by what a server that was
    started with `--door backendai` left in the data directory. `enqueue` prints the session's id. `info` says which
    attempt it is, and what becomes of its failure; `get` prints everything as JSON. Backend.AI's own `backend.ai v2`
    works, too, but cannot ask for retries.
    """
    flags = Flags()
    flags.choice("session", options.noun, ("session",))
    verb = flags.choice("VERB", options.verb, tuple(_VERBS))
    _check_words(flags, options, verb)
    act = _VERBS[verb](options, flags, cli)
    flags.finish()
    from holdfast.app.data.backendai import find_door
    from holdfast.client.backendai.calls import BackendAiCalls

    with BackendAiCalls(find_door(environ=cli.environ), cli.clock) as calls:
        act(calls)
    return exit_codes.OK


def _check_words(flags: Flags, options: BaiOptions, verb: str) -> None:
    for field_ in fields(options):
        if field_.name not in _ARGUMENTS and getattr(options, field_.name) and verb not in _FLAGS[field_.name]:
            flags.wrong(f"--{field_.name.replace('_', '-')}", f"does not apply to {verb}")
    hint = f"holdfast bai session {verb} ID"
    if verb in _ONE_ID and len(options.words) != 1:
        flags.wrong("ID", f"{verb} takes the id of one session", hint=hint)
    elif verb == "terminate" and not options.words:
        flags.wrong("ID", "terminate needs the id of a session", hint=hint)
    elif verb == "search" and options.words:
        flags.wrong("WORD", "search takes only flags", hint="holdfast bai session search --status RUNNING")


def _enqueue(options: BaiOptions, flags: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    if is_payload(options.words):
        for name, verbs in _FLAGS.items():
            if name not in _ARGUMENTS and "enqueue" in verbs and getattr(options, name):
                flags.wrong(f"--{name.replace('_', '-')}", "does not apply to a request as JSON")
    from holdfast.client.backendai.requests import id_of

    request = read_request(flags, options, options.words, cli.environ)

    def act(calls: BackendAiCalls) -> None:
        try:
            created = calls.send_request(request)
        except NotFound as error:
            # The request names projects and images by ids; the user named them otherwise.
            message = error.message
            for kind, name in (("project", options.project), ("image", options.image)):
                message = message.replace(id_of(kind, name), repr(name)) if name else message
            raise NotFound(message) from error
        for warning in created.warnings:
            cli.say(f"warning: {warning}")
        cli.output().text(str(created.session.id))

    return act


def _get(options: BaiOptions, _: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    return lambda calls: cli.output().document(plain(calls.get(options.words[0])), "json")


def _info(options: BaiOptions, _: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    from holdfast.cli.render.sessions import session_facts

    return lambda calls: cli.output().facts(session_facts(calls.get(options.words[0]), cli.clock()))


def _attempts(options: BaiOptions, flags: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    from holdfast.cli.render.sessions import attempt_table
    from holdfast.client.backendai.views import BackendAiAttempt

    form = list_format(flags, options.output or "table")
    return lambda calls: print_things(
        cli.output(),
        calls.attempts(options.words[0]),
        form,
        table=lambda attempts: attempt_table(attempts, cli.clock()),
        name=lambda attempt: str(attempt.id),
        model=BackendAiAttempt,
    )


def _search(options: BaiOptions, flags: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    from holdfast.cli.render.sessions import session_table
    from holdfast.client.backendai.views import BackendAiSession

    form, limit = list_format(flags, options.output or "table"), flags.integer("--limit", options.limit or "100", low=1)
    statuses = flags.names(options.status)
    return lambda calls: print_things(
        cli.output(),
        list(calls.search(statuses=statuses, name=options.name, project=options.project, limit=limit)),
        form,
        table=lambda sessions: session_table(sessions, cli.clock()),
        name=lambda session: str(session.id),
        model=BackendAiSession,
    )


def _terminate(options: BaiOptions, _: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    def act(calls: BackendAiCalls) -> None:
        ended = calls.terminate(options.words, forced=options.forced)
        lists = {
            "cancelled": ended.cancelled,
            "terminating": ended.terminating,
            "force-terminated": ended.force_terminated,
            "skipped": ended.skipped,
        }
        for word, ids in lists.items():
            for session_id in ids:
                cli.output().text(f"{session_id} {word}")

    return act


def _logs(options: BaiOptions, _: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    return lambda calls: cli.output().raw(calls.logs(options.words[0], options.kernel))


def _history(options: BaiOptions, flags: Flags, cli: Cli) -> Callable[[BackendAiCalls], None]:
    from holdfast.cli.render.sessions import step_table
    from holdfast.client.backendai.views import BackendAiStep

    form = list_format(flags, options.output or "table")
    return lambda calls: print_things(
        cli.output(),
        list(calls.history(options.words[0], kernels=options.kernels)),
        form,
        table=step_table,
        name=lambda step: str(step.kernel_id or step.session_id),
        model=BackendAiStep,
    )


_VERBS: dict[str, Callable[[BaiOptions, Flags, Cli], Callable[[BackendAiCalls], None]]] = {
    "enqueue": _enqueue,
    "get": _get,
    "info": _info,
    "attempts": _attempts,
    "search": _search,
    "terminate": _terminate,
    "logs": _logs,
    "history": _history,
}

BAI = Command(
    "bai",
    BaiOptions,
    bai,
    "Operate",
    examples=(
        "holdfast bai session enqueue --retries 2 --retry-delay 30s -- python train.py",
        "holdfast bai session enqueue @request.json",
        "holdfast bai session info 6e3b2cde-5b3e-5a52-9a0a-27b1d7c0a111",
        "holdfast bai session search --status RUNNING,PENDING --name train",
        "holdfast bai session history 6e3b2cde-5b3e-5a52-9a0a-27b1d7c0a111 --kernels",
    ),
)
