"""``holdfast attempts``: every try at a job."""

from dataclasses import dataclass
from functools import partial

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import FormatOption, IndexOption, JobArgument
from holdfast.cli.printing import fields_of, list_format, print_things
from holdfast.cli.render.jobs import attempt_table, short_attempt_table
from holdfast.cli.targets import task_or_job
from holdfast.cli.watching.staleness import note_if_stale


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsOptions:
    job: JobArgument
    index: IndexOption = None
    output: FormatOption = "table"


def attempts(options: AttemptsOptions, cli: Cli) -> int:
    """List a job's attempts: how each ended and what was decided."""
    from holdfast.wire.jobs import AttemptView

    flags = Flags()
    form = list_format(flags, options.output, lambda: fields_of(AttemptView))
    index = flags.integer("--index", options.index)
    flags.finish()
    with cli.connect() as client:
        job = task_or_job(client, options.job, index, command="attempts", what="attempts")
        listed = client.attempts(job.id)
        note_if_stale(client, cli, job)
    print_things(
        cli.output(),
        listed,
        form,
        table=partial(attempt_table if form == "wide" else short_attempt_table, now_s=cli.clock()),
        name=lambda attempt: str(attempt.number),
        model=AttemptView,
    )
    return exit_codes.OK


ATTEMPTS = Command("attempts", AttemptsOptions, attempts, "Look")
