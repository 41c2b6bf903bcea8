"""Reads parameters that many endpoints take: list cursors, which are opaque to callers, and ``If-Match``."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import NoReturn

from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem

LARGEST_SEQ = 1 << 62
_NOT_OURS = "is not a cursor of this server"
_TAG = re.compile(r'(?:W/)?"([!\x23-\x7e]*)"')


def write_cursor(after: int | str | None, mark: str) -> str | None:
    """Write the cursor of what follows ``after`` in the list that has this mark; ``None`` when nothing does."""
    if after is None:
        return None
    text = json.dumps([after, mark], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_number(cursor: str | None, mark: str) -> int:
    """Read where a list by number continues; without a cursor, at its beginning.

    Raises:
        InvalidRequest: The cursor is not one of this list's.
    """
    if cursor is None:
        return 0
    after = _after(cursor, mark)
    if type(after) is not int or not 0 <= after < LARGEST_SEQ:
        _refuse(_NOT_OURS)
    return after


def read_name(cursor: str | None, mark: str) -> str:
    """Read where a list by name continues; without a cursor, at its beginning.

    Raises:
        InvalidRequest: The cursor is not one of this list's.
    """
    if cursor is None:
        return ""
    after = _after(cursor, mark)
    if type(after) is not str:
        _refuse(_NOT_OURS)
    return after


def _after(cursor: str, mark: str) -> object:
    try:
        after, written = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError):
        _refuse(_NOT_OURS)
    if written != mark:
        _refuse("belongs to a list with other filters")
    return after


def _refuse(message: str) -> NoReturn:
    hint = "pass next_cursor as it was given, with the same filters; or leave it out to start over"
    raise InvalidRequest(problems=[Problem("query.cursor", message, hint=hint)])


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
