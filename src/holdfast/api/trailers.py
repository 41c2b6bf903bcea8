"""Shortens a refusal by gRPC to what its headers have room for.

Its sentence and its details are headers. Clients accept 8 KiB of headers in all, and drop an answer with more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DETAILS = "grpc-status-details-bin"
"""The header with a ``google.rpc.Status``."""
SENTENCE_ROOM = 1_500
"""Bytes of an encoded sentence."""
_DETAILS_ROOM = 3_500
"""Bytes of the encoded details."""
_CUT = 200
"""Characters of a problem's path and of its text, if there is no room for all problems in full."""


def cut(sentence: str) -> str:
    """Shorten a sentence to what headers have room for."""
    room = SENTENCE_ROOM
    for place, character in enumerate(sentence):
        room -= 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode("utf-8", "replace"))
        if room < 0:
            return f"{sentence[:place]}..."
    return sentence


def fitting(
    sentence: str,
    problems: Sequence[Problem],
    described: Callable[[Problem], str],
    written: Callable[[str, Sequence[Problem]], bytes],
) -> bytes:
    """Return a status with as many problems as headers have room for.

    Args:
        sentence: The message of the refusal.
        problems: What is wrong.
        described: Words a problem without its path.
        written: Encodes a status of a sentence and problems.
    """
    # Do not encode thousands of long paths only to measure them.
    if len(problems) <= _DETAILS_ROOM and sum(len(problem.path) for problem in problems) <= _DETAILS_ROOM:
        whole = written(sentence, problems)
        if len(whole) <= _DETAILS_ROOM:
            return whole
    fits, room = list[Problem](), _DETAILS_ROOM - SENTENCE_ROOM
    for problem in problems:
        short = Problem(problem.path[:_CUT], described(problem)[:_CUT])
        room -= len(f"{short.path}{short.message}".encode("utf-8", "replace")) + 16
        if room < 0:
            break
        fits.append(short)
    if len(fits) < len(problems):
        fits.append(Problem("", f"and {len(problems) - len(fits)} more"))
    return written(cut(sentence), fits)
