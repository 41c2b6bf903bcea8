"""Tells a kind from names where a command takes both: ``wait jobset train``, ``wait jobset/train``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.nouns import Noun, find_noun, read_noun
from holdfast.errors import HoldfastError, InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client

JOBS_OR_SETS = (Noun.JOB, Noun.JOB_SET, Noun.ARRAY)


def spread(values: Mapping[str, object]) -> dict[str, object]:
    """Read ``KIND/NAME``, as ``-o name`` prints it, wherever a command line has a kind and names, or names only.

    Args:
        values: By option; ``None`` was not said.

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
    for field, nouns in _NAMED.items():
        value = read.get(field)
        if isinstance(value, str):
            read[field] = _plain(value, *nouns)
        elif isinstance(value, list | tuple):
            words = _words(value)
            said = find_noun(words[0]) if words[1:] and words[0][1:] else None  # j is a name, too
            read[field] = [_plain(one, *nouns) for one in (words[1:] if said in nouns else words)]
    return read


_NAMED = {
    "job": (Noun.JOB, Noun.ARRAY),
    "jobs": (Noun.JOB, Noun.ARRAY),
    "array": (Noun.ARRAY,),
    "queue": (Noun.QUEUE,),
    "jobset": (Noun.JOB_SET,),
}
"""Fields of options that name things, and of which kinds these may be."""
_REPLICATED_JOB = "replicatedjob"


def _set_among(values: Mapping[str, object]) -> str | None:
    """Return the job set that is named in the place of jobs, where a command is about all jobs of one, too."""
    named = _spread(_words(values.get("jobs"))) if values.get("jobset", "") is None else []
    if find_noun(named[0] if named[1:] else "") is not Noun.JOB_SET:
        return None
    return Target(Noun.JOB_SET, named[1:]).one


def _words(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


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


def _plain(word: str, *nouns: Noun) -> str:
    """Take the kind off a name."""
    kind, slash, name = word.partition("/")
    said = find_noun(kind) if slash else None
    if said is None:
        return word
    if said not in nouns:
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

    noun: Noun
    names: Sequence[str]

    @property
    def one(self) -> str:
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


def task_or_job(client: Client, reference: str, index: int | None) -> str:
    """Return what names a job: the reference itself, or with an index the id of that task of an array."""
    return reference if index is None else client.array_task(reference, index).id


def job_or_set(words: Sequence[str]) -> Target:
    """Read ``[KIND] NAME...`` of a command that is about jobs, job sets or arrays; without a kind all name jobs."""
    if len(words) > 1:
        try:
            return Target(read_noun(words[0], JOBS_OR_SETS), words[1:])
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
