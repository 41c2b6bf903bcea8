"""``holdfast why``: explanations of decisions."""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import OF_WORK, Noun
from holdfast.cli.options import AttemptOption, DocumentOption
from holdfast.cli.printing import TEXT_FORMATS, plain
from holdfast.cli.render.arrays import print_array_why
from holdfast.cli.render.decisions import considered_table, failed_pod_table, limit_table
from holdfast.cli.render.jobs import condition_table, pod_facts
from holdfast.cli.render.words import when
from holdfast.cli.targets import job_or_set
from holdfast.cli.watching.staleness import note_if_stale
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.cli.render.output import Output
    from holdfast.cli.targets import Target
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayWhy
    from holdfast.wire.decisions import Why
    from holdfast.wire.jobs import PodsView
    from holdfast.wire.jobsets import JobSetDecisionTrace, JobSetWhy
    from holdfast.wire.workloads import WorkloadWhy


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] NAME",
            help="A job's id, its name (the newest of that name), or the start of its id; or a KIND and its name.",
        ),
    ]
    attempt: AttemptOption = None
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="NAME", help="For a job set: only the decisions about this job."),
    ] = None
    all: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also show rules that did not match, all limits, a job's pods, and each of several like decisions.",
        ),
    ] = False
    output: DocumentOption = "text"


def why(options: WhyOptions, cli: Cli) -> int:
    """Explain why a job, a job set or an array is in its state.

    For a job set, shows the decisions about its failed jobs, like ones in a row as one; for an array, its failed tasks,
    grouped by cause and decision. JSON and YAML always contain everything that --all shows.
    """
    target = job_or_set(options.what)
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    what = "job sets" if target.noun == Noun.JOB_SET else target.noun
    if options.attempt and target.noun != Noun.JOB:
        flags.wrong("--attempt", f"does not apply to {what}", hint="holdfast why JOB --attempt N")
    if options.job and target.noun != Noun.JOB_SET:
        flags.wrong("--job", f"does not apply to {what}", hint="holdfast why jobset NAME --job JOB")
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    flags.finish()
    with cli.connect() as client:
        if target.noun == Noun.JOB_SET:
            set_why = client.job_set_why(target.only_name, job=options.job)
            note_if_stale(client, cli, set_why)
            _print(set_why, form, lambda: print_set_why(set_why, cli.output(), everything=options.all), cli)
        elif target.noun not in {Noun.JOB, Noun.ARRAY}:
            owner_why = client.of(OF_WORK[target.noun]).why(target.only_name)
            note_if_stale(client, cli, owner_why)
            _print(owner_why, form, lambda: print_why(owner_why, cli.output()), cli)
        elif (array_why := _array_why(client, target)) is not None:
            _print(array_why, form, lambda: print_array_why(array_why, cli.output()), cli)
        else:
            answer = client.why(target.only_name, attempt=attempt)
            note_if_stale(client, cli, answer)
            _print(answer, form, lambda: _print_job(client, answer, cli.output(), everything=options.all), cli)
    return exit_codes.OK


def _array_why(client: "Client", target: "Target") -> "ArrayWhy | None":
    """Explain an array that is named with its kind, or by a name that no job has."""
    if target.noun == Noun.ARRAY:
        return client.array_why(target.only_name)
    try:
        client.job(target.only_name)
    except NotFound:
        with suppress(NotFound):
            return client.array_why(target.only_name)
    return None


def _print(
    answer: "Why | JobSetWhy | ArrayWhy | WorkloadWhy", form: str, as_text: "Callable[[], None]", cli: Cli
) -> None:
    if form == "text":
        as_text()
    else:
        cli.output().document(plain(answer), form)


def _print_job(client: "Client", answer: "Why", output: "Output", *, everything: bool) -> None:
    print_why(answer, output)
    decision = answer.decision
    hidden = sum(not rule.matched for rule in decision.considered) if decision else 0
    if hidden and not everything:
        output.paragraph(f"{hidden} rule{'' if hidden == 1 else 's'} did not match; --all shows them.")
    if not everything:
        return
    for columns, rows in (considered_table(decision), limit_table(decision)) if decision else ():
        if rows:
            output.text("")
            output.table(columns, rows)
    if answer.pods:
        output.text("")
        output.table(*failed_pod_table(answer.pods))
    pods = client.job(answer.job).pods
    if pods is not None:
        print_pods(pods, output)


def print_why(answer: "Why | WorkloadWhy", output: "Output") -> None:
    """Print an explanation in sentences."""
    output.heading(answer.headline)
    for sentence in answer.summary:
        output.paragraph(sentence)


def print_pods(pods: "PodsView", output: "Output") -> None:
    """Print the state of a job's pods, and its conditions."""
    output.text("")
    output.facts(pod_facts(pods))
    if pods.conditions:
        output.text("")
        output.table(*condition_table(pods.conditions))


def print_set_why(answer: "JobSetWhy", output: "Output", *, everything: bool = False) -> None:
    """Print the state of a job set, then what was decided about its failed jobs, the latest last."""
    output.heading(answer.headline)
    for sentence in answer.summary:
        output.paragraph(sentence)
    if answer.omitted:
        output.text("")
        output.paragraph(f"{answer.omitted} earlier decisions are not shown.")
    for alike in [[single] for single in answer.traces] if everything else _runs_of_alike(answer.traces):
        *before, trace = alike
        output.text("")
        if before:
            since, attempts = when(before[0].at), f"{before[0].decision.attempt} to {before[-1].decision.attempt}"
            output.paragraph(f"{len(before)} similar decisions since {since} (attempts {attempts}); --all shows each.")
        output.heading(f"{when(trace.at)} {trace.decision.job}")
        for sentence in trace.summary:
            output.paragraph(sentence)
        if everything and trace.decision.considered:
            output.table(*considered_table(trace.decision))


_FEWEST_ALIKE = 3
"""The fewest like decisions in a row that take fewer lines when printed as one."""
_COUNTS = re.compile(r"^Attempt \d+|^This is restart .*|^It starts \S+ later|(?<= after )[\d.]+[a-z][\w.]*(?=:)")
"""The parts in which like decisions differ: the attempt, its duration, and counts."""


def _runs_of_alike(traces: "Sequence[JobSetDecisionTrace]") -> "Iterator[Sequence[JobSetDecisionTrace]]":
    """Group consecutive decisions that say the same about the same job."""
    for _, group in groupby(
        traces,
        lambda trace_before: (trace_before.decision.job, [_COUNTS.sub("", line) for line in trace_before.summary]),
    ):
        run = list(group)
        yield from [run] if len(run) >= _FEWEST_ALIKE else ([trace] for trace in run)


WHY = Command(
    "why",
    WhyOptions,
    why,
    "Look",
    examples=("holdfast why train", "holdfast why train --attempt 1 -o json", "holdfast why jobset train"),
)
