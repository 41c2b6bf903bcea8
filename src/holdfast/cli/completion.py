"""Completes the names of what there is, in every shell that Typer knows: bash, zsh, fish and PowerShell.

The shell starts a process for each press of Tab and waits for it. So it is over within a second, whatever becomes of
the server, and says nothing but names.
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
    """The command line as far as it is written."""

    params: Mapping[str, Any]


def complete_from(field: str) -> Callable[..., list[str]] | None:
    """Return what completes the argument or option that an option class calls so; ``None`` if nothing does.

    Typer calls it with what its parameters are named for: ``ctx`` and ``incomplete``.
    """
    if field in _OF_A_KIND:
        return _of_a_kind
    noun = _NOUNS.get(field)
    return None if noun is None else lambda incomplete: _begun(noun, incomplete)


_OF_A_KIND = {"kind", "names", "what"}
"""A kind, then names of things of that kind; or names of jobs."""
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
    words = _said(ctx.params)
    noun = find_noun(words[0]) if words else None
    if noun is not None:
        return _begun(noun, incomplete)
    kinds: list[str] = [kind for kind in NOUNS if not words and kind.startswith(incomplete)]
    return kinds if "kind" in ctx.params else [*kinds, *_begun(Noun.JOB, incomplete)]


def _said(params: Mapping[str, Any]) -> Sequence[str]:
    """Return the words before the one that is completed."""
    kind, what = params.get("kind"), params.get("what")
    return [str(kind)] if kind else [str(word) for word in what or ()]


def _begun(noun: NounName, incomplete: str) -> list[str]:
    """Return the names that begin so, none if there is any difficulty; end the process if it takes too long."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, WITHIN_S)
    names: list[str] = []
    with suppress(Exception):  # whatever it is, who types must not be interrupted by it
        names = [name for name in _asked(noun, incomplete) if name.startswith(incomplete)]
    return names[:_MOST]


def _asked(noun: NounName, incomplete: str) -> list[str]:
    from holdfast.app.connect import connect
    from holdfast.cli.things import READERS

    with connect() as client:
        if noun == Noun.JOB:
            return [*client.job_names(incomplete), *(thing.name for thing in client.arrays(limit=_MOST))]
        named = READERS[noun].listed(client) if noun in READERS else ()
        return sorted({str(getattr(thing, "name", None) or thing.id) for thing in named})
