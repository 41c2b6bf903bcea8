"""Conditional requests: which version a caller says a thing must have, and which one it has."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from holdfast.errors import InvalidRequest, Problem

_TAG = re.compile(r'(?:W/)?"([!\x23-\x7e]*)"')
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Match:
    """What a caller says of the thing it means to change."""

    versions: frozenset[str] | None = None
    """It has one of these; ``None``: whatever it has."""
    exists: bool = False
    """It is there."""


def _match(
    if_match: Annotated[
        str | None,
        Header(max_length=_LONGEST, description="The `ETag` it must have; else 409."),
    ] = None,
) -> Match:
    """Read what a caller expects.

    A weak tag is taken for a strong one: proxies that compress answers weaken tags, and the version is the same.
    """
    if if_match is None:
        return Match()
    tags = [tag.strip() for tag in if_match.split(",")]
    if tags == ["*"]:
        return Match(exists=True)
    found = [_TAG.fullmatch(tag) for tag in tags]
    versions = frozenset(tag[1] for tag in found if tag is not None)
    if None in found:
        hint = 'send the ETag as it was answered, such as "01h2xcejqtf2nbrexx3vqjhp41.3"'
        raise InvalidRequest(problems=[Problem("header.If-Match", f"{if_match!r} is not an entity tag", hint=hint)])
    return Match(versions, exists=True)


IfMatch = Annotated[Match, Depends(_match)]
"""A parameter of this type is given what the caller expects."""


def tagged(version: str) -> dict[str, str]:
    """Return the headers that tell a thing's version."""
    return {"ETag": f'"{version}"'}
