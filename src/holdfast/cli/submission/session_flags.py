"""Reads the command line of ``bai session enqueue`` into a request: flags and a command, or JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.domain.units import parse_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.flags import Flags
    from holdfast.client.backendai.requests import SessionOptions

_BACKOFFS = ("fixed", "exponential")
_MOST_RETRIES = 1000
_MOST_KERNELS = 10_000
_FILE, _OBJECT = "@", "{"


def option(*names: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - as Typer has it
    """Declare an option with a value."""
    return typer.Option(*names, metavar=metavar, help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFlags:
    """The flags that describe a session."""

    name: Annotated[
        str | None, option("--name", metavar="NAME", text="The session's name; `search`: a part of the name.")
    ] = None
    image: Annotated[
        str | None, option("--image", metavar="IMAGE", text="`enqueue`: an image's name or id; default `default`.")
    ] = None
    project: Annotated[
        str | None,
        option("--project", metavar="PROJECT", text="`enqueue`, `search`: a queue's name or id; default `default`."),
    ] = None
    cpu: Annotated[str | None, option("--cpu", metavar="N", text="`enqueue`: CPUs of each kernel; default 1.")] = None
    mem: Annotated[str | None, option("--mem", metavar="SIZE", text="`enqueue`: memory of each kernel: 2Gi.")] = None
    cluster_size: Annotated[
        str | None, option("--cluster-size", metavar="N", text="`enqueue`: kernels that run together; default 1.")
    ] = None
    env: Annotated[
        list[str], option("--env", "-e", metavar="KEY[=VALUE]", text="`enqueue`: a variable. Repeatable.")
    ] = field(default_factory=list)
    retries: Annotated[
        str | None, option("--retries", metavar="N", text="`enqueue`: retries after the first attempt.")
    ] = None
    retry_delay: Annotated[
        str | None, option("--retry-delay", metavar="DURATION", text="`enqueue`: the delay before the first retry.")
    ] = None
    backoff: Annotated[str | None, option("--backoff", metavar="STRATEGY", text="`enqueue`: fixed or exponential.")] = (
        None
    )
    causes: Annotated[
        list[str],
        option("--causes", metavar="CAUSES", text="`enqueue`: the only causes to retry. Comma-separated or repeated."),
    ] = field(default_factory=list)
    retry_policy: Annotated[
        str | None,
        option("--retry-policy", metavar="JSON|@FILE", text="`enqueue`: a retry policy, or some of its nine fields."),
    ] = None
    depends: Annotated[
        list[str],
        option("--depends", metavar="IDS", text="`enqueue`: sessions that must succeed before. Repeatable."),
    ] = field(default_factory=list)
    starts_at: Annotated[
        str | None, option("--starts-at", metavar="TIME", text="`enqueue`: when to start, in ISO 8601.")
    ] = None
    timeout: Annotated[str | None, option("--timeout", metavar="DURATION", text="`enqueue`: how long it may run.")] = (
        None
    )
    tag: Annotated[str | None, option("--tag", metavar="TEXT", text="`enqueue`: a tag.")] = None
    interactive: Annotated[
        bool, typer.Option("--interactive", help="`enqueue`: hold a place until the session is ended.")
    ] = False


def is_payload(words: Sequence[str]) -> bool:
    """Whether the words are a request as JSON, or ``@`` and the file that has it."""
    return len(words) == 1 and words[0].startswith((_FILE, _OBJECT))


def read_request(
    flags: Flags, options: SessionFlags, words: Sequence[str], environ: Mapping[str, str]
) -> Mapping[str, Any]:
    """Read what to enqueue; problems are noted in ``flags``."""
    from holdfast.client.backendai.requests import session_request

    if is_payload(words):
        return read_json(flags, "PAYLOAD", words[0])
    if options.interactive and words:
        flags.wrong("--interactive", "an interactive session has no command")
    elif not (options.interactive or words):
        flags.wrong("COMMAND", "is required", hint="holdfast bai session enqueue -- python train.py")
    for flag, value in (("--starts-at", options.starts_at), ("--timeout", options.timeout)):
        if options.interactive and value:
            flags.wrong(flag, "applies to batch sessions only")
    # A single word is a line for the shell; several are a program and its arguments.
    command = None if options.interactive else words[0] if len(words) == 1 else words
    return session_request(command, _described(flags, options, environ))


def _described(flags: Flags, options: SessionFlags, environ: Mapping[str, str]) -> SessionOptions:
    timeout_s = flags.duration("--timeout", options.timeout)
    values: dict[str, Any] = {
        "name": options.name,
        "image": options.image,
        "project": options.project,
        "cpu": flags.number("--cpu", options.cpu, low=0.0),
        "memory": flags.parsed("--mem", options.mem, parse_memory),
        "cluster_size": flags.integer("--cluster-size", options.cluster_size, low=1, high=_MOST_KERNELS),
        "environ": flags.pairs("--env", options.env, defaults=environ),
        "retry_policy": _policy(flags, options),
        "dependencies": flags.names(options.depends),
        "starts_at": flags.parsed("--starts-at", options.starts_at, _moment),
        "timeout_s": None if timeout_s is None else int(timeout_s),
        "tag": options.tag,
    }
    described: SessionOptions = {name: value for name, value in values.items() if value is not None}  # type: ignore[assignment]  # its keys are those above
    return described


def _policy(flags: Flags, options: SessionFlags) -> dict[str, Any]:
    """Read a partial retry policy: the document, with what the flags set in it."""
    document = dict(read_json(flags, "--retry-policy", options.retry_policy)) if options.retry_policy else {}
    values = {
        "max_retries": flags.integer("--retries", options.retries, high=_MOST_RETRIES),
        "retry_delay": flags.duration("--retry-delay", options.retry_delay),
        "backoff": flags.choice("--backoff", options.backoff, _BACKOFFS) if options.backoff else None,
        "eligible_causes": flags.names(options.causes) or None,
    }
    return document | {name: value for name, value in values.items() if value is not None}


def read_json(flags: Flags, flag: str, text: str) -> Mapping[str, Any]:
    """Read an object as JSON, or from the file that is named after ``@``; problems are noted in ``flags``."""
    try:
        content = Path(text[1:]).read_text(encoding="utf-8") if text.startswith(_FILE) else text
        value = json.loads(content)
    except OSError as error:
        flags.wrong(flag, f"{text[1:]} cannot be read: {error.strerror}")
        return {}
    except ValueError as error:
        flags.wrong(flag, f"is not JSON: {error}")
        return {}
    if not isinstance(value, dict):
        flags.wrong(flag, "is not a JSON object", hint='such as {"max_retries": 2}')
        return {}
    return value


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        msg = f"{value!r} is not a time in ISO 8601, such as 2026-12-01T06:00:00+09:00"
        raise ValueError(msg) from error
    return moment.astimezone()  # Without a zone it is local time.
