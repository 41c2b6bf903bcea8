"""Options that several commands share, so that each is spelt and explained once."""

from __future__ import annotations

from typing import Annotated

import typer

FormatOption = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help="Output format: table, wide, json, yaml, csv, name, or custom-columns=NAME:.path,... of the JSON.",
    ),
]
DocumentOption = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FORMAT", help="Output format: text, json or yaml."),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="GROUP", help="Only this group; with a final slash (sweeps/), also groups below it."
    ),
]
JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="A job's id, its name (the newest of that name), or the start of its id."),
]
FilesOption = Annotated[
    list[str],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="A file of YAML or JSON documents, or of one JSON document per line; '-' is standard input. Repeatable.",
    ),
]
AttemptOption = Annotated[
    str | None,
    typer.Option("--attempt", metavar="N", help="Number of the attempt, from 1; default the newest."),
]
IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="I", help="The task with this index, if JOB is an array."),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="Give up waiting after this long, such as 90s or 1h; exit code 124."
    ),
]
ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="The reason, recorded for others to see."),
]
ExportOption = Annotated[
    str | None,
    typer.Option(
        metavar="ALL|NONE|NAMES",
        help="Variables of this shell to pass on, such as PATH,CUDA_*; default PATH, VIRTUAL_ENV, CONDA_*,"
        " LD_LIBRARY_PATH and PYTHONPATH.",
    ),
]
SecretEnvOption = Annotated[
    list[str],
    typer.Option(
        "--secret-env",
        metavar="K[=FILE]",
        help="Set a variable to its current value, or to a file's content, stored separately from the job. Repeatable.",
    ),
]
LenientOption = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Only warn about what Kubernetes tolerates, such as duplicate keys and unfilled {{placeholders}}.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything as usual, print the manifests, and change nothing."),
]
AfterOption = Annotated[
    list[str],
    typer.Option(
        "--after",
        metavar="NAME[:CONDITION]",
        help="Wait for a job, an array or a job set: :ok (the default), :failed, :ended or :started; "
        "with :index each task of an array waits for the task of the same index. Repeatable.",
    ),
]
