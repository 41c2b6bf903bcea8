"""``holdfast restart``: restart a job set, one of its replicated jobs, or one job by hand."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.nouns import OWNERS
from holdfast.cli.options import ReasonOption
from holdfast.cli.targets import do_each, required
from holdfast.domain.terms.kinds import KINDS
from holdfast.errors import InvalidRequest, Problem, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client import Client
    from holdfast.domain.terms.kinds import KindInfo

_KINDS = {
    **dict.fromkeys(("replicatedjob", "replicatedjobs", "rj"), "replicatedjob"),
    **dict.fromkeys(("job", "jobs", "j"), "job"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartOptions:
    kind: Annotated[str, typer.Argument(metavar="KIND", help="jobset, replicatedjob or job.")]
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Job sets; replicated jobs, as SET NAME or SET/NAME; or jobs of sets."),
    ] = field(default_factory=list)
    reason: ReasonOption = ""


def restart(options: RestartOptions, cli: Cli) -> int:
    """Restart a job set, one of its replicated jobs, or one of its jobs.

    Finished jobs are restarted, too, as long as their set has not ended. This counts against no limit.
    """
    words = {spelling: kind.name for kind in OWNERS.values() if "restart" in kind.acts for spelling in kind.spellings}
    words |= _KINDS
    kind = words.get(options.kind.lower().replace("-", "").replace("_", ""))
    if kind is None:
        problem = Problem("KIND", f"{options.kind!r} is unknown", allowed=tuple(dict.fromkeys(words.values())))
        msg = "The KIND is wrong."
        raise InvalidRequest(msg, problems=[problem])
    names = required(options.names, "holdfast restart jobset NAME")
    names = _groups(names) if kind == "replicatedjob" else names
    with cli.connect() as client:
        way = _WAYS.get(kind) or partial(_restart, KINDS[kind])
        return do_each(names, lambda name: way(client, name, options.reason), cli, what=kind, done="restart requested")


def _groups(words: "Sequence[str]") -> "Sequence[str]":
    """Read ``SET GROUP`` or ``SET/GROUP...`` as names of the second form."""
    if len(words) == len(("SET", "GROUP")) and not any("/" in word for word in words):
        return ["/".join(words)]
    wrong = [word for word in words if word.count("/") != 1 or not all(word.split("/"))]
    if wrong:
        problem = Problem(
            "NAME", f"{wrong[0]!r} does not name a replicated job", hint="holdfast restart replicatedjob SET GROUP"
        )
        msg = "A replicated job is named by its set and its name."
        raise InvalidRequest(msg, problems=[problem])
    return words


def _restart(kind: "KindInfo", client: "Client", name: str, reason: str) -> object:
    return client.of(kind).ask(name, "restart", reason=reason)


def _restart_group(client: "Client", name: str, reason: str) -> object:
    job_set, _, group = name.partition("/")
    return client.restart_job_set(job_set, replicated_job=group, reason=reason)


def _restart_job(client: "Client", name: str, reason: str) -> object:
    job = client.job(name)
    if job.job_set is None:
        msg = f"job {job.name} belongs to no job set"
        raise Refused(msg, hint="only jobs of job sets are restarted by hand")
    return client.restart_job_set(job.job_set, replicated_job=job.replicated_job, index=job.job_index, reason=reason)


_WAYS: "dict[str, Callable[[Client, str, str], object]]" = {
    "replicatedjob": _restart_group,
    "job": _restart_job,
}


RESTART = Command(
    "restart",
    RestartOptions,
    restart,
    "Steer",
    examples=(
        "holdfast restart jobset train",
        "holdfast restart replicatedjob train workers",
        "holdfast restart job train-workers-0",
    ),
)
