"""Conditional requests: which version a caller says the thing must have that it means to change."""

from __future__ import annotations

import re

from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem

_TAG = re.compile(r'(?:W/)?"([!\x23-\x7e]*)"')


class VersionMatch(Struct, frozen=True):
    """What a caller says of the thing it means to change."""

    versions: frozenset[str] | None = None
    """It has one of these; ``None``: whatever it has."""
    exists: bool = False
    """It is there."""


def read_match(if_match: str | None) -> VersionMatch:
    """Read what a caller expects.

    A weak tag is taken for a strong one: proxies that compress answers weaken tags, and the version is the same.

    Raises:
        InvalidRequest: It is not a list of entity tags.
    """
    if if_match is None:
        return VersionMatch()
    tags = [tag.strip() for tag in if_match.split(",")]
    if tags == ["*"]:
        return VersionMatch(exists=True)
    matches = [_TAG.fullmatch(tag) for tag in tags]
    versions = frozenset(tag[1] for tag in matches if tag is not None)
    if None in matches:
        hint = 'send the ETag as it was answered, such as "01h2xcejqtf2nbrexx3vqjhp41.3"'
        raise InvalidRequest(problems=[Problem("header.If-Match", f"{if_match!r} is not an entity tag", hint=hint)])
    return VersionMatch(versions, exists=True)
