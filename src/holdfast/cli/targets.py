"""Tells a kind from names where a command takes both: ``wait jobset train``, ``wait jobset/train``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.nouns import OF_WORK, SINGULAR, Noun, asked_of, find_noun, read_noun
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
        values: By option; ``None`` was not said.
        command: What is asked for, to say what does the same for things of another kind.

    Raises:
        InvalidRequest: A name says that it is of another kind than is meant.
    """
    kind, names, what = values.get("kind"), values.get("names"), values.get("what")
    read = dict(values)
    if isinstance(kind, str):
        read["kind"], *read["names"] = _spread([kind, *_words(names)])
    if what is not None:
        read["what"] = _spread(_words(what))
    if (job_set := _set_among(values)) is not None:
        read["jobs"], read["jobset"] = [], job_set
    several = asked_of(command)
    for field, its in _NAMED.items():
        value, nouns = read.get(field), (several if field == "jobs" else ()) or its
        if isinstance(value, str):
            read[field] = _meant(value, nouns, command if field in _POSITIONAL else "")
        elif isinstance(value, list | tuple):
            words = _words(value)
            noun = find_noun(words[0]) if words[1:] and words[0][1:] else None  # j is a name, too
            if noun == Noun.JOB_SET and noun not in nouns:  # a job of that name would be taken for the set
                raise _not_for(noun, words[0], words[1], nouns, command)
            if noun is not None and noun in nouns:
                words = [f"{words[0]}/{_plain(word, noun)}" for word in words[1:]]
            kept = field == "jobs" and len(several) > 1
            read[field] = [_meant(word, nouns, command, kept=kept) for word in words]
    return read


_NAMED = {
    "job": (Noun.JOB, Noun.ARRAY),
    "jobs": (Noun.JOB, Noun.ARRAY),
    "array": (Noun.ARRAY,),
    "queue": (Noun.QUEUE,),
    "jobset": (Noun.JOB_SET,),
}
"""Fields of options that name things, and of which kinds these may be; ``jobs`` of all of which that can be asked."""
_POSITIONAL = ("job", "jobs", "array")
"""Those that name what a command is about."""
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
"""What to do with a thing of a kind that a command is not for; elsewhere nothing does the same."""


def _set_among(values: Mapping[str, object]) -> str | None:
    """Return the job set that is named in the place of jobs, where a command is about all jobs of one, too."""
    named = _spread(_words(values.get("jobs"))) if values.get("jobset", "") is None else []
    if find_noun(named[0] if named[1:] else "") != Noun.JOB_SET:
        return None
    return Target(Noun.JOB_SET, named[1:]).only_name


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list | tuple) else []


def _spread(words: list[str]) -> list[str]:
    """Turn ``KIND/NAME...`` into ``KIND NAME...``; what names no kind stays as it is."""
    kind, slash, _ = words[0].partition("/") if words else ("", "", "")
    if kind.lower() == _REPLICATED_JOB and slash:
        return [kind, *(word.removeprefix(f"{kind}/") for word in words)]
    noun = find_noun(kind) if slash else None
    if noun is None:
        first = find_noun(words[0]) if words else None
        return words if first is None else [words[0], *(_plain(word, first) for word in words[1:])]
    return [kind, *(_plain(word, noun) for word in words)]


def _meant(word: str, nouns: Sequence[NounName], command: str, *, kept: bool = False) -> str:
    """Take the kind off a name that a command of these kinds is given; or if it is ``kept``, spell it one way."""
    kind, slash, name = word.partition("/")
    noun = find_noun(kind) if slash else None
    if noun is not None and noun not in nouns:
        raise _not_for(noun, word, name, nouns, command)
    return word if noun is None else f"{SINGULAR[noun]}/{name}" if kept else name


def _not_for(noun_name: NounName, word: str, name: str, nouns: Sequence[NounName], command: str) -> InvalidRequest:
    kinds = " and ".join(nouns) if len(nouns) < len(OF_WORK) else f"{', '.join(nouns[:-1])} and {nouns[-1]}"
    instead = _INSTEAD.get((command, noun_name))
    problem = Problem("NAME", f"{word!r} is none of the {kinds}", hint=instead and instead.format(name))
    msg = f"`{command}` is for {kinds}." if command else f"Only {kinds} can be named here."
    return InvalidRequest(msg, problems=[problem])


def _plain(word: str, *nouns: NounName) -> str:
    """Take the kind off a name."""
    kind, slash, name = word.partition("/")
    noun = find_noun(kind) if slash else None
    if noun is None:
        return word
    if noun not in nouns:
        msg = "Only things of one kind can be named at once."
        kinds = " and ".join(nouns)
        raise InvalidRequest(
            msg, problems=[Problem("NAME", f"{word!r} is none of the {kinds}", hint="ask for each kind")]
        )
    return name


def required(names: Sequence[str], example: str) -> Sequence[str]:
    """Return the names, of which there must be some.

    Raises:
        InvalidRequest: There are none.
    """
    if not names:
        msg = "Nothing is named."
        raise InvalidRequest(msg, problems=[Problem("NAME", "is required", hint=example)])
    return names


@dataclass(frozen=True, slots=True)
class Target:
    """Things of one kind."""

    noun: NounName
    names: Sequence[str]

    @property
    def only_name(self) -> str:
        """The name, where there may be only one.

        Raises:
            InvalidRequest: There are several.
        """
        if len(self.names) > 1:
            msg = "Only one can be named here."
            raise InvalidRequest(
                msg, problems=[Problem("NAME", f"{len(self.names)} were named: {', '.join(self.names)}")]
            )
        return self.names[0]


def task_or_job(client: Client, reference: str, index: int | None, *, command: str, has: str) -> JobView:
    """Find the job that is named, or with an index that task of an array.

    Args:
        client: To find it with.
        reference: Its id or name, or the array's.
        index: The task's.
        command: What is asked for.
        has: What each task of an array has, which the array itself has not.

    Raises:
        InvalidRequest: It is an array.
        NotFound: There is none.
    """
    if index is not None:
        return client.job(client.array_task(reference, index).id)
    try:
        return client.job(reference)
    except NotFound as error:
        if not _is_array(client, reference):
            raise
        msg = f"array {reference!r} has {has} for each of its tasks"
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
        cli: Where to tell it.
        what: The kind, in the singular.
        done: What a success is called; ``None`` says nothing of it.

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
