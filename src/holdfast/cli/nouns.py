"""The words for each kind of thing, such as ``jobs``, ``js`` or ``retry-policy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

from holdfast.domain.terms import entries, kinds
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


NounName = NewType("NounName", str)
"""One of ``NOUNS``."""


class Noun:
    """Kinds of things on the command line, as their plurals; every other kind of work is one, too."""

    JOB = NounName(kinds.JOB.plural)
    JOB_SET = NounName(kinds.JOB_SET.plural)
    ARRAY = NounName(kinds.ARRAY.plural)
    QUEUE = NounName(entries.QUEUE.spellings[1])
    DOMAIN = NounName(entries.DOMAIN.spellings[1])
    RETRY_POLICY = NounName(entries.POLICY.spellings[1])
    NODE = NounName("nodes")
    DEVICE = NounName("devices")
    CATEGORY = NounName(entries.CATEGORY.spellings[1])
    NOTIFIER = NounName(entries.NOTIFIER.spellings[1])
    SETTINGS = NounName("settings")
    AUDIT = NounName("audit")


OF_ENTRIES = {NounName(info.spellings[1]): info for info in entries.ENTRIES.values()}
"""What operators write."""
_SPELLINGS: dict[NounName, tuple[str, ...]] = {
    **{NounName(kind.plural): kind.spellings for kind in kinds.KINDS.values()},
    **{noun: info.spellings for noun, info in OF_ENTRIES.items()},
    Noun.NODE: ("node", "nodes"),
    Noun.DEVICE: ("device", "devices", "gpu", "gpus"),
    Noun.SETTINGS: ("settings", "setting"),
    Noun.AUDIT: ("audit", "auditlog"),
}
_BY_SPELLING = {spelling: noun for noun, spellings in _SPELLINGS.items() for spelling in spellings}

OF_WORK = {NounName(kind.plural): kind for kind in kinds.KINDS.values()}
"""Kinds of work, which can be waited for and explained."""
OWNERS = {noun: kind for noun, kind in OF_WORK.items() if kind.parts}
"""Kinds of work that are made of other work."""
NOUNS = tuple(_SPELLINGS)


def nouns_with(verb: str) -> Sequence[NounName]:
    """Return the kinds of work that support a verb."""
    return tuple(noun for noun, kind in OF_WORK.items() if verb in kind.acts)


SINGULAR = {noun: spellings[0] for noun, spellings in _SPELLINGS.items()}


def find_noun(text: str) -> NounName | None:
    """Find the kind with this spelling, if there is one."""
    return _BY_SPELLING.get(text.lower().replace("-", "").replace("_", ""))


def read_noun(text: str, allowed: Sequence[NounName] = NOUNS) -> NounName:
    """Read a kind in any accepted spelling: ``retrypolicy``, ``retry-policy``, ``retryPolicy``, ``jobs``.

    Raises:
        InvalidRequest: The kind is unknown, or does not fit the command.
    """
    noun = find_noun(text)
    if noun is None or noun not in allowed:
        message = "is unknown" if noun is None else "cannot be used with this command"
        problem = Problem("KIND", f"{text!r} {message}", allowed=tuple(allowed))
        msg = "The KIND is wrong."
        raise InvalidRequest(msg, problems=[problem])
    return noun
