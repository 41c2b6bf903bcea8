"""``holdfast attempts``: every try at a job."""

from dataclasses import dataclass
from functools import partial

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.options import FormatOption, JobArgument
from holdfast.cli.printing import print_things, read_format
from holdfast.cli.render.jobs import attempt_table


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsOptions:
    """What ``attempts`` can be told."""

    job: JobArgument
    output: FormatOption = "table"


def attempts(options: AttemptsOptions, cli: Cli) -> int:
    """List a job's attempts: how each ended and what was decided."""
    form = read_format(options.output)
    with cli.connect() as client:
        found = client.attempts(options.job)
    print_things(
        cli.output(),
        found,
        form,
        table=partial(attempt_table, now_s=cli.clock()),
        name=lambda attempt: str(attempt.number),
    )
    return exit_codes.OK


ATTEMPTS = Command("attempts", AttemptsOptions, attempts, "Look")
