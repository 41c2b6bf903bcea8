"""Completes kinds and names in every shell that Typer supports: bash, zsh, fish and PowerShell.

The shell starts a process for each press of Tab and waits for it. Completion therefore gives up after a second, and
prints nothing but names.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.nouns import NOUNS, Noun, find_noun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.cli.nouns import NounName

WITHIN_S = 1.0
_MOST = 200


class CommandLine(Protocol):
    """The part of a command line that has been typed."""

    params: Mapping[str, Any]


def complete_from(field: str) -> Callable[..., list[str]] | None:
    """Return the completer for a field of an options class; ``None`` if there is none.

    Typer passes arguments by the names of the completer's parameters: ``ctx`` and ``incomplete``.
    """
    if field in _OF_A_KIND:
        return _of_a_kind
    noun = _NOUNS.get(field)
    return None if noun is None else lambda incomplete: _matching_names(noun, incomplete)


_OF_A_KIND = {"kind", "names", "what"}
"""Fields that take a kind and names of that kind, or names of jobs."""
_NOUNS = {
    "job": Noun.JOB,
    "jobs": Noun.JOB,
    "after": Noun.JOB,
    "queue": Noun.QUEUE,
    "policy": Noun.RETRY_POLICY,
    "array": Noun.ARRAY,
    "jobset": Noun.JOB_SET,
    "notify": Noun.NOTIFIER,
}


def _of_a_kind(ctx: CommandLine, incomplete: str) -> list[str]:
    if not {"kind", "what"} & set(ctx.params):
        return []
    words = _typed_words(ctx.params)
    noun = find_noun(words[0]) if words else None
    if noun is not None:
        return _matching_names(noun, incomplete)
    kinds: list[str] = [kind for kind in NOUNS if not words and kind.startswith(incomplete)]
    return kinds if "kind" in ctx.params else [*kinds, *_matching_names(Noun.JOB, incomplete)]


def _typed_words(params: Mapping[str, Any]) -> Sequence[str]:
    """Return the words before the one being completed."""
    kind, what = params.get("kind"), params.get("what")
    return [str(kind)] if kind else [str(word) for word in what or ()]


def _matching_names(noun: NounName, incomplete: str) -> list[str]:
    """Return the names that start with ``incomplete``, none after an error; end the process if it takes too long."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, WITHIN_S)
    names: list[str] = []
    with suppress(Exception):  # no error may disturb the person who types
        names = [name for name in _names(noun, incomplete) if name.startswith(incomplete)]
    return names[:_MOST]


def _names(noun: NounName, incomplete: str) -> list[str]:
    from holdfast.app.connect import connect
    from holdfast.cli.things import READERS

    with connect() as client:
        if noun == Noun.JOB:
            return [*client.job_names(incomplete), *(thing.name for thing in client.arrays(limit=_MOST))]
        named = READERS[noun].listed(client) if noun in READERS else ()
        return sorted({str(getattr(thing, "name", None) or thing.id) for thing in named})
