"""``holdfast why``: the explanation of a decision."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import AttemptOption, DocumentOption, JobArgument
from holdfast.cli.printing import TEXT_FORMATS, plain
from holdfast.cli.render.decisions import considered_table, limit_table

if TYPE_CHECKING:
    from holdfast.cli.render.output import Output
    from holdfast.wire.decisions import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    """What ``why`` can be told."""

    job: JobArgument
    attempt: AttemptOption = None
    output: DocumentOption = "text"


def why(options: WhyOptions, cli: Cli) -> int:
    """Explain why a job is where it is.

    Says what happened to an attempt, every rule that was looked at and why it did or did not match, the limits with
    their counts, and what was decided.
    """
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    flags.finish()
    with cli.connect() as client:
        found = client.why(options.job, attempt=attempt)
    if form == "text":
        print_why(found, cli.output())
    else:
        cli.output().document(plain(found), form)
    return exit_codes.OK


def print_why(found: "Why", output: "Output") -> None:
    """Print an explanation as prose and tables."""
    output.heading(found.headline)
    for sentence in found.prose:
        output.prose(sentence)
    if found.hint:
        output.prose(f"Hint: {found.hint}")
    if found.decision is None:
        return
    for columns, rows in (considered_table(found.decision), limit_table(found.decision)):
        if rows:
            output.text("")
            output.table(columns, rows)


WHY = Command("why", WhyOptions, why, "Look", examples=("holdfast why train", "holdfast why train --attempt 1 -o json"))
