"""Options that several commands share, so that each is spelt and explained once."""

from __future__ import annotations

from typing import Annotated

import typer

FormatOption = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FORMAT", help="How to print: table, json, yaml or name."),
]
DocumentOption = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FORMAT", help="How to print: text, json or yaml."),
]
JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="A job's id, its name (the newest of that name), or the start of its id."),
]
JobsArgument = Annotated[
    list[str],
    typer.Argument(metavar="JOB...", help="Ids, names (the newest of that name), or starts of ids."),
]
FilesOption = Annotated[
    list[str],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="YAML or JSON, any number of documents, or one JSON document a line; '-' is standard input.",
    ),
]
AttemptOption = Annotated[
    str | None,
    typer.Option("--attempt", metavar="N", help="Number of the attempt, from 1; default the newest."),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="Give up waiting after this long, such as 90s or 1h; exit code 124."
    ),
]
ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="The reason, shown to everyone who looks at it."),
]
LenientOption = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Only warn about duplicate keys, unfilled {{placeholders}} and whatever else Kubernetes tolerates.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Have everything checked as it would be, print the manifests, and change nothing."),
]
