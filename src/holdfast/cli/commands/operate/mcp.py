"""``holdfast mcp``: tools for AI agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.submission.export import exported
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from holdfast.cli.context import Cli

_OWN = {"submitted-by": "agent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only tools that read.")] = False
    queue: Annotated[
        list[str],
        typer.Option(
            "--queue",
            "-q",
            metavar="QUEUE",
            help="See and submit only jobs of this queue. Repeatable; the first is the default.",
        ),
    ] = field(default_factory=list)
    label: Annotated[
        list[str],
        typer.Option(
            "--label",
            "-l",
            metavar="K=V",
            help="Label its jobs, and change only jobs that have it. Repeatable; default submitted-by=agent.",
        ),
    ] = field(default_factory=list)
    any_job: Annotated[bool, typer.Option("--any-job", help="Let it retry and cancel other people's jobs, too.")] = (
        False
    )
    max_jobs: Annotated[str, typer.Option(metavar="N", help="Jobs it may submit in one session.")] = "100"
    max_per_call: Annotated[str, typer.Option(metavar="N", help="Jobs it may submit at once.")] = "20"


def mcp(options: McpOptions, cli: Cli) -> int:
    """Serve tools for an AI agent on standard input and output (Model Context Protocol).

    The agent can submit jobs, list and read them, ask why they are in their state, read their logs, retry and cancel
    them. Submitting means running any program as you. Ends when the agent closes its input.
    """
    flags = Flags()
    per_session = flags.integer("--max-jobs", options.max_jobs)
    per_call = flags.integer("--max-per-call", options.max_per_call, low=1, high=10_000)
    labels = flags.pairs("--label", options.label)
    env = exported(None, cli, flags)
    flags.finish()
    try:
        from holdfast.agents import server
    except ModuleNotFoundError as error:
        message = f"`holdfast mcp` needs {error.name}, which is not installed"
        raise InvalidRequest(message, hint="pip install 'holdfast-scheduler[mcp]'") from error
    from holdfast.agents.limits import ToolLimits
    from holdfast.agents.tools import ToolContext

    limits = ToolLimits(
        read_only=options.read_only,
        queues=tuple(options.queue),
        labels=labels or _OWN,
        any_job=options.any_job,
        per_call=per_call or 0,
        per_session=per_session or 0,
    )
    server.serve(ToolContext(cli.connect, cli.is_looked_after, cli.cwd(), env), limits)
    return exit_codes.OK


MCP = Command(
    "mcp",
    McpOptions,
    mcp,
    "Operate",
    examples=("holdfast mcp --read-only", "holdfast mcp --queue agents --max-jobs 10"),
)
