"""Separates kinds from names where a command takes both: ``wait jobset train``, ``wait jobset/train``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.nouns import OF_WORK, SINGULAR, Noun, find_noun, nouns_with, read_noun
from holdfast.errors import HoldfastError, InvalidRequest, NotFound, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.nouns import NounName
    from holdfast.client import Client
    from holdfast.wire.jobs import JobView


def spread(values: Mapping[str, object], command: str = "") -> dict[str, object]:
    """Read ``KIND/NAME``, as ``-o name`` prints it, wherever a command line has a kind and names, or names only.

    Args:
        values: The value of each option; ``None`` if it is absent.
        command: The command, to suggest the one for another kind.

    Raises:
        InvalidRequest: A name is of a kind that the command does not take.
    """
    kind, names, what = values.get("kind"), values.get("names"), values.get("what")
    read = dict(values)
    if isinstance(kind, str):
        read["kind"], *read["names"] = _spread([kind, *_words(names)])
    if what is not None:
        read["what"] = _spread(_words(what))
    if (job_set := _set_among(values)) is not None:
        read["jobs"], read["jobset"] = [], job_set
    several = nouns_with(command)
    for field, its in _NAMED.items():
        value, nouns = read.get(field), (several if field == "jobs" else ()) or its
        if isinstance(value, str):
            read[field] = _without_kind(value, nouns, command if field in _POSITIONAL else "")
        elif isinstance(value, list | tuple):
            words = _words(value)
            noun = find_noun(words[0]) if words[1:] and words[0][1:] else None  # j is a name, too
            if noun == Noun.JOB_SET and noun not in nouns:  # a job of that name would be taken for the set
                raise _not_for(noun, words[0], words[1], nouns, command)
            if noun is not None and noun in nouns:
                words = [f"{words[0]}/{_name_of_kind(word, noun)}" for word in words[1:]]
            kept = field == "jobs" and len(several) > 1
            read[field] = [_without_kind(word, nouns, command, kept=kept) for word in words]
    return read


_NAMED = {
    "job": (Noun.JOB, Noun.ARRAY),
    "jobs": (Noun.JOB, Noun.ARRAY),
    "array": (Noun.ARRAY,),
    "queue": (Noun.QUEUE,),
    "jobset": (Noun.JOB_SET,),
}
"""Fields of options that name things, with the kinds they take; ``jobs`` takes all kinds that support the command."""
_POSITIONAL = ("job", "jobs", "array")
"""The fields that name what a command acts on."""
_REPLICATED_JOB = "replicatedjob"
_INSTEAD = {
    ("attempts", Noun.JOB_SET): "holdfast describe jobset {0} lists its jobs, then: holdfast attempts JOB",
    ("cancel", Noun.JOB_SET): "holdfast delete jobset {0}, or to keep it: holdfast suspend jobset {0}",
    ("hold", Noun.JOB_SET): "holdfast suspend jobset {0}",
    ("release", Noun.JOB_SET): "holdfast resume jobset {0}",
    ("rerun", Noun.JOB): "holdfast retry {0}",
    ("retry", Noun.ARRAY): "holdfast rerun {0}",
    ("rerun", Noun.JOB_SET): "holdfast restart jobset {0}",
    ("retry", Noun.JOB_SET): "holdfast restart jobset {0}",
}
"""What to run instead for a kind that a command does not take."""


def _set_among(values: Mapping[str, object]) -> str | None:
    """Return the job set named in place of jobs, for a command that takes all jobs of a set, too."""
    named = _spread(_words(values.get("jobs"))) if values.get("jobset", "") is None else []
    if find_noun(named[0] if named[1:] else "") != Noun.JOB_SET:
        return None
    return Target(Noun.JOB_SET, named[1:]).only_name


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list | tuple) else []


def _spread(words: list[str]) -> list[str]:
    """Turn ``KIND/NAME...`` into ``KIND NAME...``; words without a kind stay as they are."""
    kind, slash, _ = words[0].partition("/") if words else ("", "", "")
    if kind.lower() == _REPLICATED_JOB and slash:
        return [kind, *(word.removeprefix(f"{kind}/") for word in words)]
    noun = find_noun(kind) if slash else None
    if noun is None:
        first = find_noun(words[0]) if words else None
        return words if first is None else [words[0], *(_name_of_kind(word, first) for word in words[1:])]
    return [kind, *(_name_of_kind(word, noun) for word in words)]


def _without_kind(word: str, nouns: Sequence[NounName], command: str, *, kept: bool = False) -> str:
    """Remove a kind that the command takes from a name; if it is ``kept``, only normalize its spelling."""
    kind, slash, name = word.partition("/")
    noun = find_noun(kind) if slash else None
    if noun is not None and noun not in nouns:
        raise _not_for(noun, word, name, nouns, command)
    return word if noun is None else f"{SINGULAR[noun]}/{name}" if kept else name


def _not_for(noun_name: NounName, word: str, name: str, nouns: Sequence[NounName], command: str) -> InvalidRequest:
    kinds = " and ".join(nouns) if len(nouns) < len(OF_WORK) else f"{', '.join(nouns[:-1])} and {nouns[-1]}"
    instead = _INSTEAD.get((command, noun_name))
    problem = Problem("NAME", f"{word!r} is of another kind", hint=instead and instead.format(name))
    msg = f"`{command}` is for {kinds}." if command else f"Only {kinds} can be named here."
    return InvalidRequest(msg, problems=[problem])


def _name_of_kind(word: str, *nouns: NounName) -> str:
    """Remove the kind from a name."""
    kind, slash, name = word.partition("/")
    noun = find_noun(kind) if slash else None
    if noun is None:
        return word
    if noun not in nouns:
        msg = "Only things of one kind can be named at once."
        hint = "run the command once for each kind"
        raise InvalidRequest(msg, problems=[Problem("NAME", f"{word!r} is of another kind", hint=hint)])
    return name


def required(names: Sequence[str], example: str) -> Sequence[str]:
    """Return the names, of which at least one is required.

    Raises:
        InvalidRequest: There are none.
    """
    if not names:
        msg = "No name is given."
        raise InvalidRequest(msg, problems=[Problem("NAME", "is required", hint=example)])
    return names


@dataclass(frozen=True, slots=True)
class Target:
    """Things of one kind."""

    noun: NounName
    names: Sequence[str]

    @property
    def only_name(self) -> str:
        """The only name.

        Raises:
            InvalidRequest: There are several.
        """
        if len(self.names) > 1:
            msg = "Only one name is allowed here."
            raise InvalidRequest(
                msg, problems=[Problem("NAME", f"{len(self.names)} are given: {', '.join(self.names)}")]
            )
        return self.names[0]


def task_or_job(client: Client, reference: str, index: int | None, *, command: str, what: str) -> JobView:
    """Find a job by its id or name, or a task by its array and index.

    Args:
        client: The connection.
        reference: The id or name of the job or array.
        index: The index of the task.
        command: The command, for the hint.
        what: What the command shows: tasks have it, arrays do not.

    Raises:
        InvalidRequest: An array is named without an index.
        NotFound: There is no such job or task.
    """
    if index is not None:
        return client.job(client.array_task(reference, index).id)
    try:
        return client.job(reference)
    except NotFound as error:
        if not _is_array(client, reference):
            raise
        msg = f"array {reference!r} has no {what} of its own; ask for one task"
        raise InvalidRequest(msg, hint=f"holdfast {command} {reference} --index 0") from error


def _is_array(client: Client, reference: str) -> bool:
    with suppress(NotFound):
        return bool(client.array(reference))
    return False


def job_or_set(words: Sequence[str]) -> Target:
    """Read ``[KIND] NAME...`` of a command that is about jobs, job sets or arrays; without a kind all name jobs."""
    if len(words) > 1:
        try:
            return Target(read_noun(words[0], tuple(OF_WORK)), words[1:])
        except InvalidRequest:
            pass
    return Target(Noun.JOB, words)


def do_each(names: Sequence[str], act: Callable[[str], object], cli: Cli, *, what: str, done: str | None) -> int:
    """Act on each name.

    Args:
        names: Of things of one kind.
        act: What to do; raises a ``HoldfastError`` when it is refused.
        cli: Where to print the results.
        what: The kind, in the singular.
        done: What to print after a success; ``None`` prints nothing.

    Returns:
        The exit code of the first refusal, 0 without one.
    """
    code = exit_codes.OK
    for name in names:
        try:
            act(name)
        except HoldfastError as error:
            cli.say(f"error: {what} {name}: {error}")
            code = code or exit_codes.of_error(error)
        else:
            if done is not None:
                cli.output().text(f"{what} {name} {done}")
    return code
